"""etcd, the API server, the controllers and the scheduler: how each is run, and when it is ready."""

import shutil
from pathlib import Path

from testnode import processes
from testnode.pki import kubeconfig_of
from testnode.processes import Daemon
from testnode.settings import (
    API_PORT,
    BRIDGE_ADDRESS,
    ETCD_PEER_PORT,
    ETCD_PORT,
    POD_CIDR,
    SERVICE_CIDR,
    Settings,
)
from testnode.shell import attempt, run
from testnode.waiting import wait_until

START_SECONDS = 120
ETCD_URL = f"http://127.0.0.1:{ETCD_PORT}"


def etcd(settings: Settings) -> Daemon:
    """Without fsync: a test cluster may lose its state with the power, and gains much speed."""
    argv = (
        shutil.which("etcd") or "etcd",
        f"--data-dir={settings.node / 'etcd'}",
        f"--listen-client-urls={ETCD_URL}",
        f"--advertise-client-urls={ETCD_URL}",
        f"--listen-peer-urls=http://127.0.0.1:{ETCD_PEER_PORT}",
        "--unsafe-no-fsync=true",
    )
    return Daemon("etcd", argv)


def api_server(settings: Settings) -> Daemon:
    """With the admission plugins that are on by default, Pod Security among them."""
    pki = settings.pki
    argv = (
        str(settings.bin / "kube-apiserver"),
        f"--etcd-servers={ETCD_URL}",
        f"--bind-address={BRIDGE_ADDRESS}",
        f"--advertise-address={BRIDGE_ADDRESS}",
        f"--secure-port={API_PORT}",
        f"--tls-cert-file={pki / 'apiserver.crt'}",
        f"--tls-private-key-file={pki / 'apiserver.key'}",
        f"--client-ca-file={pki / 'ca.crt'}",
        f"--service-account-key-file={pki / 'sa.pub'}",
        f"--service-account-signing-key-file={pki / 'sa.key'}",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        f"--service-cluster-ip-range={SERVICE_CIDR}",
        "--allow-privileged=true",
        f"--kubelet-certificate-authority={pki / 'ca.crt'}",
        f"--kubelet-client-certificate={pki / 'apiserver-to-kubelet.crt'}",
        f"--kubelet-client-key={pki / 'apiserver-to-kubelet.key'}",
        "--kubelet-preferred-address-types=InternalIP",
    )
    certificates = tuple(pki / name for name in ("ca.crt", "apiserver.crt", "apiserver-to-kubelet.crt", "sa.pub"))
    return Daemon("kube-apiserver", argv, certificates)


def controller_manager(settings: Settings) -> Daemon:
    """Each controller with the rights of its own service account, as in a real cluster."""
    pki, kubeconfig = settings.pki, kubeconfig_of(settings, "kube-controller-manager")
    argv = (
        str(settings.bin / "kube-controller-manager"),
        f"--kubeconfig={kubeconfig}",
        "--bind-address=127.0.0.1",
        f"--service-account-private-key-file={pki / 'sa.key'}",
        f"--root-ca-file={pki / 'ca.crt'}",
        f"--cluster-signing-cert-file={pki / 'ca.crt'}",
        f"--cluster-signing-key-file={pki / 'ca.key'}",
        "--use-service-account-credentials=true",
        "--leader-elect=false",
        f"--cluster-cidr={POD_CIDR}",
        "--allocate-node-cidrs=false",
    )
    return Daemon("kube-controller-manager", argv, (kubeconfig,))


def scheduler(settings: Settings) -> Daemon:
    """One of it, so it need not be elected."""
    kubeconfig = kubeconfig_of(settings, "kube-scheduler")
    argv = (
        str(settings.bin / "kube-scheduler"),
        f"--kubeconfig={kubeconfig}",
        "--bind-address=127.0.0.1",
        "--leader-elect=false",
    )
    return Daemon("kube-scheduler", argv, (kubeconfig,))


def ensure_control_plane(settings: Settings) -> None:
    """Start the four, and wait until the API server says that it is ready."""
    processes.ensure(settings, etcd(settings))
    processes.ensure(settings, api_server(settings))
    wait_until(lambda: unready(settings), START_SECONDS, processes.log_of(settings, "kube-apiserver"))
    for daemon in (controller_manager(settings), scheduler(settings)):
        processes.ensure(settings, daemon)
    log = processes.log_of(settings, "kube-controller-manager")
    wait_until(lambda: _no_default_account(settings), START_SECONDS, log)


def kubectl(settings: Settings, *arguments: str) -> list[str]:
    """The command line of kubectl as administrator of the node."""
    return [str(settings.bin / "kubectl"), f"--kubeconfig={settings.kubeconfig}", *arguments]


def apply(settings: Settings, manifest: str) -> None:
    """Make the objects of a manifest what it says."""
    run(kubectl(settings, "apply", "--server-side", "--force-conflicts", "-f", "-"), stdin=manifest)


def unready(settings: Settings) -> str | None:
    """What the API server lacks."""
    for name in ("etcd", "kube-apiserver"):
        if error := processes.died(settings, name):
            raise error
    answer = attempt(kubectl(settings, "get", "--raw=/readyz"))
    return None if answer.returncode == 0 else f"the API server is not ready: {_last_line(answer.stderr)}"


def _no_default_account(settings: Settings) -> str | None:
    """No pod can be made in a namespace before the controllers have given it its service account."""
    if error := processes.died(settings, "kube-controller-manager"):
        raise error
    answer = attempt(kubectl(settings, "get", "serviceaccount", "default", "--namespace=default"))
    return None if answer.returncode == 0 else "the controllers have not made the default service account"


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else "no answer"


def manifest(name: str) -> str:
    """The text of a file in manifests/."""
    return (Path(__file__).parent / "manifests" / name).read_text()
