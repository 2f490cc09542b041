"""The kubelet, which runs the pods, and kube-proxy, which gives services their addresses."""

import json

from testnode import processes
from testnode.control_plane import kubectl
from testnode.pki import kubeconfig_of
from testnode.processes import Daemon
from testnode.settings import BRIDGE_ADDRESS, CGROUP, DNS_SERVICE, GPU, NODE, POD_CIDR, Settings
from testnode.shell import attempt, run
from testnode.waiting import unanswered, wait_until

START_SECONDS = 60


def config(settings: Settings) -> dict[str, object]:
    """A KubeletConfiguration."""
    pki = settings.pki
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": BRIDGE_ADDRESS,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(pki / "ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(pki / "kubelet.crt"),
        "tlsPrivateKeyFile": str(pki / "kubelet.key"),
        "containerRuntimeEndpoint": f"unix://{settings.socket}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{CGROUP}",
        "failCgroupV1": False,
        "failSwapOn": False,
        "clusterDNS": [DNS_SERVICE],
        "clusterDomain": "cluster.local",
        "resolvConf": "",
        "podCIDR": POD_CIDR,
        "podLogsDir": str(settings.node / "pod-logs"),
        "volumePluginDir": str(settings.node / "volume-plugins"),
        # A full disk of the machine must not evict the tests' pods, nor remove images that no registry has.
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        "imageGCHighThresholdPercent": 100,
    }


def kubelet(settings: Settings) -> Daemon:
    """The kubelet, under the name and address of the node."""
    file, kubeconfig = settings.node / "kubelet.json", kubeconfig_of(settings, "kubelet")
    argv = (
        str(settings.bin / "kubelet"),
        f"--config={file}",
        f"--kubeconfig={kubeconfig}",
        f"--root-dir={settings.node / 'kubelet'}",
        f"--cert-dir={settings.node / 'kubelet' / 'pki'}",
        f"--hostname-override={NODE}",
        f"--node-ip={BRIDGE_ADDRESS}",
    )
    return Daemon("kubelet", argv, (file, kubeconfig, settings.pki / "kubelet.crt", settings.pki / "ca.crt"))


def kube_proxy(settings: Settings) -> Daemon:
    """kube-proxy by iptables; the limits of connection tracking stay as the machine has them."""
    kubeconfig = kubeconfig_of(settings, "kube-proxy")
    argv = (
        str(settings.bin / "kube-proxy"),
        f"--kubeconfig={kubeconfig}",
        f"--hostname-override={NODE}",
        "--proxy-mode=iptables",
        f"--cluster-cidr={POD_CIDR}",
        f"--nodeport-addresses={POD_CIDR}",
        "--healthz-bind-address=127.0.0.1:10256",
        "--metrics-bind-address=127.0.0.1:10249",
        "--conntrack-max-per-core=0",
        "--conntrack-min=0",
        "--conntrack-tcp-timeout-established=0",
        "--conntrack-tcp-timeout-close-wait=0",
    )
    return Daemon("kube-proxy", argv, (kubeconfig,))


def ensure_kubelet(settings: Settings) -> None:
    """Start both, and wait until the node is ready; then say that it has a GPU."""
    (settings.node / "kubelet.json").write_text(json.dumps(config(settings), indent=1))
    for daemon in (kubelet(settings), kube_proxy(settings)):
        processes.ensure(settings, daemon)
    wait_until(lambda: unready(settings), START_SECONDS, processes.log_of(settings, "kubelet"))
    advertise_gpu(settings)


def advertise_gpu(settings: Settings) -> None:
    """A GPU that is not there: enough for the scheduler to count, and for a pod to ask for."""
    status = {"capacity": {GPU: "1"}, "allocatable": {GPU: "1"}}
    patch = json.dumps({"status": status})
    run(kubectl(settings, "patch", "node", NODE, "--subresource=status", "--type=merge", f"--patch={patch}"))


def unready(settings: Settings) -> str | None:
    """What the node lacks to run pods."""
    for name in ("kubelet", "kube-proxy"):
        if error := processes.died(settings, name):
            raise error
    # A kubelet that just came back has a node that is called ready since before it went.
    if lack := unanswered("http://127.0.0.1:10248/healthz"):
        return f"the kubelet is not healthy: {lack}"
    answer = attempt(kubectl(settings, "get", "node", NODE, "--output=json"))
    if answer.returncode != 0:
        return f"the kubelet has not registered the node: {answer.stderr.strip()}"
    conditions = {entry["type"]: entry for entry in json.loads(answer.stdout)["status"].get("conditions", [])}
    ready = conditions.get("Ready", {"status": "Unknown", "message": "no condition yet"})
    return None if ready["status"] == "True" else f"node {NODE} is not Ready: {ready['message']}"
