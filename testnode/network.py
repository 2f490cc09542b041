"""The pods' network: a bridge on the host, addresses from one range, and the way out through the host."""

import json
from ipaddress import ip_network
from pathlib import Path

from testnode import host
from testnode.console import NodeError
from testnode.settings import BRIDGE, BRIDGE_ADDRESS, POD_CIDR, SERVICE_CIDR, Settings
from testnode.shell import attempt, run

NETWORK = "finetune-testnode"


def cni_config(settings: Settings) -> dict[str, object]:
    """What containerd gives the CNI plugins for each pod."""
    bridge = {
        "type": "bridge",
        "bridge": BRIDGE,
        "isGateway": True,
        "ipMasq": True,
        "hairpinMode": True,
        "ipam": {
            "type": "host-local",
            "ranges": [[{"subnet": POD_CIDR}]],
            "routes": [{"dst": "0.0.0.0/0"}],
            "dataDir": str(settings.node / "cni-addresses"),
        },
    }
    # Docker and others set the policy of FORWARD to DROP; the firewall plugin lets our pods through.
    plugins = [bridge, {"type": "firewall"}, {"type": "portmap", "capabilities": {"portMappings": True}}]
    return {"cniVersion": "0.4.0", "name": NETWORK, "plugins": plugins}


def ensure_network(settings: Settings) -> None:
    """Bring the bridge up, so that there is an address to listen on before the first pod."""
    if not Path("/proc/sys/net/bridge").exists():
        run(["modprobe", "br_netfilter"])  # without it service addresses do not work between pods of one bridge
    host.set_sysctl("net/bridge/bridge-nf-call-iptables", "1")
    host.set_sysctl("net/ipv4/ip_forward", "1")
    if not Path("/sys/class/net", BRIDGE).exists():
        run(["ip", "link", "add", BRIDGE, "type", "bridge"])
    run(["ip", "address", "replace", f"{BRIDGE_ADDRESS}/{POD_CIDR.partition('/')[2]}", "dev", BRIDGE])
    run(["ip", "link", "set", BRIDGE, "up"])
    _write_cni(settings)


def check_free(routes: str) -> None:
    """Refuse if another network of the machine (``ip -json route``) overlaps with the pods' or the services'."""
    for route in json.loads(routes):
        if route["dst"] == "default" or route.get("dev") == BRIDGE:
            continue
        for ours in (POD_CIDR, SERVICE_CIDR):
            if ip_network(ours).overlaps(ip_network(route["dst"])):
                raise NodeError(
                    f"the node's network {ours} is taken: {route['dst']} goes to {route.get('dev')} on this machine. "
                    "If that is another Kubernetes (k3s uses the same range), stop it, or use it instead of the node."
                )


def remove_network() -> None:
    """Remove the bridge and the ends of the pods' cables on it."""
    if not Path("/sys/class/net", BRIDGE).exists():
        return
    for link in json.loads(run(["ip", "-json", "link", "show", "master", BRIDGE]) or "[]"):
        attempt(["ip", "link", "delete", link["ifname"]])  # it may vanish with its network namespace meanwhile
    run(["ip", "link", "delete", BRIDGE])


def _write_cni(settings: Settings) -> None:
    folder = settings.node / "cni"
    folder.mkdir(exist_ok=True)
    (folder / "10-finetune.conflist").write_text(json.dumps(cni_config(settings), indent=1))
