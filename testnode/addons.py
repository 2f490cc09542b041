"""Cluster DNS, local storage and the GPU's runtime class.

CoreDNS and local-path-provisioner are processes of the host and not pods: that saves two images, and pods see no
difference. DNS has its usual service address; behind it is the host instead of a pod.
"""

import json
from string import Template

from testnode import processes
from testnode.control_plane import apply, manifest
from testnode.pki import kubeconfig_of
from testnode.processes import Daemon
from testnode.settings import (
    BRIDGE_ADDRESS,
    BUSYBOX_IMAGE,
    DNS_PORT,
    DNS_READY_PORT,
    DNS_SERVICE,
    NODE,
    Settings,
)
from testnode.waiting import unanswered, wait_until

START_SECONDS = 60


def coredns(settings: Settings) -> Daemon:
    """The cluster's DNS server."""
    file, kubeconfig = settings.node / "Corefile", kubeconfig_of(settings, "coredns")
    return Daemon("coredns", (str(settings.bin / "coredns"), "-conf", str(file)), (file, kubeconfig))


def local_path(settings: Settings) -> Daemon:
    """The provisioner of k3s: a volume is a folder on the node."""
    kubeconfig = kubeconfig_of(settings, "local-path-provisioner")
    config, helper = settings.node / "local-path.json", settings.node / "helper-pod.yaml"
    argv = (
        str(settings.bin / "local-path-provisioner"),
        "start",
        f"--config={config}",
        f"--kubeconfig={kubeconfig}",
        "--namespace=local-path-storage",
        "--configmap-name=local-path-config",
        "--service-account-name=local-path-provisioner",
        f"--helper-image={BUSYBOX_IMAGE}",
        f"--helper-pod-file={helper}",
    )
    return Daemon("local-path-provisioner", argv, (kubeconfig, config, helper))


def ensure_addons(settings: Settings) -> None:
    """Apply the objects, start the two processes, and wait until DNS answers."""
    write_configs(settings)
    apply(settings, fill("addons.yaml"))
    for daemon in (coredns(settings), local_path(settings)):
        processes.ensure(settings, daemon)
    wait_until(lambda: unready(settings), START_SECONDS, processes.log_of(settings, "coredns"))


def write_configs(settings: Settings) -> None:
    """The files that the two processes read."""
    kubeconfig = str(kubeconfig_of(settings, "coredns"))
    (settings.node / "Corefile").write_text(fill("Corefile", kubeconfig=kubeconfig))
    (settings.node / "helper-pod.yaml").write_text(fill("helper-pod.yaml", image=BUSYBOX_IMAGE))
    paths = {"nodePathMap": [{"node": NODE, "paths": [str(settings.storage)]}]}
    (settings.node / "local-path.json").write_text(json.dumps(paths))


def fill(name: str, **values: str) -> str:
    """A file of manifests/ with the node's numbers filled in."""
    numbers = {
        "bridge_address": BRIDGE_ADDRESS,
        "dns_service": DNS_SERVICE,
        "dns_port": str(DNS_PORT),
        "dns_ready_port": str(DNS_READY_PORT),
    }
    return Template(manifest(name)).substitute(numbers | values)


def unready(settings: Settings) -> str | None:
    """What DNS or storage lack."""
    for name in ("coredns", "local-path-provisioner"):
        if error := processes.died(settings, name):
            raise error
    lack = unanswered(f"http://127.0.0.1:{DNS_READY_PORT}/ready")
    return f"CoreDNS is not ready: {lack}" if lack else None
