"""Where the node lives and which numbers it uses; everything else asks here."""

import os
from dataclasses import dataclass
from pathlib import Path

NODE = "node1"
BRIDGE = "finetune0"
BRIDGE_ADDRESS = "10.42.0.1"
"""The host on the pods' network. The API server and the kubelet listen here, so nothing is open to the outside."""
POD_CIDR = "10.42.0.0/24"
SERVICE_CIDR = "10.43.0.0/16"
API_SERVICE = "10.43.0.1"
DNS_SERVICE = "10.43.0.10"
DNS_PORT = 10053
DNS_READY_PORT = 10054
ETCD_PORT = 12479
"""Not 2379: a Debian machine may already run an etcd of its own there."""
ETCD_PEER_PORT = 12480
API_PORT = 6443
HUB_PORT = 8089
CGROUP = "finetune-testnode"
GPU = "nvidia.com/gpu"
PAUSE_IMAGE = "localhost/finetune/pause:1"
BUSYBOX_IMAGE = "localhost/finetune/busybox:1"
CONTAINERD_NAMESPACE = "k8s.io"
"""The namespace of containerd in which the kubelet looks for images."""

LISTENERS = {
    ("127.0.0.1", ETCD_PORT): "etcd",
    ("127.0.0.1", ETCD_PEER_PORT): "etcd",
    (BRIDGE_ADDRESS, API_PORT): "kube-apiserver",
    ("127.0.0.1", 10257): "kube-controller-manager",
    ("127.0.0.1", 10259): "kube-scheduler",
    ("127.0.0.1", 10248): "kubelet",
    (BRIDGE_ADDRESS, 10250): "kubelet",
    ("127.0.0.1", 10249): "kube-proxy",
    ("127.0.0.1", 10256): "kube-proxy",
    (BRIDGE_ADDRESS, DNS_PORT): "coredns",
    ("127.0.0.1", DNS_READY_PORT): "coredns",
}
"""Every address that the node listens on, and which process does."""


def cache_folder() -> Path:
    """The one folder that everything of ours is cached in."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("FINETUNE_CACHE") or Path(base) / "finetune-operator").absolute()


@dataclass(frozen=True)
class Settings:
    """The folders of one node."""

    cache: Path
    run: Path = Path("/run/finetune-testnode")
    """Sockets and mounts of running containers; a short path, because a socket's may have 107 bytes."""

    @property
    def hub(self) -> Path:
        """The model hub's repositories; survive ``down``."""
        return self.cache / "hub"

    @property
    def bin(self) -> Path:
        """Built programs; survives ``down``."""
        return self.cache / "bin"

    @property
    def store(self) -> Path:
        """Images in containerd; survives ``down``, so that the next ``up`` need not load gigabytes again."""
        return self.cache / "containerd"

    @property
    def node(self) -> Path:
        """State of the running node; gone after ``down``."""
        return self.cache / "node"

    @property
    def pki(self) -> Path:
        """Keys, certificates and the kubeconfigs made of them."""
        return self.node / "pki"

    @property
    def log(self) -> Path:
        """One log file for each process."""
        return self.node / "log"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig, the one that people use."""
        return self.node / "kubeconfig"

    @property
    def storage(self) -> Path:
        """Volumes of the storage class ``local-path``."""
        return self.node / "storage"

    @property
    def socket(self) -> Path:
        """Where containerd listens."""
        return self.run / "containerd.sock"
