"""Keys and certificates of the cluster, and the kubeconfigs that carry them."""

import json
import shutil
from base64 import b64encode
from dataclasses import dataclass
from pathlib import Path

from testnode.settings import API_PORT, API_SERVICE, BRIDGE_ADDRESS, NODE, Settings
from testnode.shell import attempt, run

VALID_DAYS = "365"
RENEW_SECONDS = str(24 * 60 * 60)
API_NAMES = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local")


@dataclass(frozen=True)
class Identity:
    """Who a certificate is for."""

    user: str
    group: str | None = None
    names: tuple[str, ...] = ()
    """Subject alternative names, for those who serve with it."""

    @property
    def subject(self) -> str:
        """As openssl wants it."""
        return (f"/O={self.group}" if self.group else "") + f"/CN={self.user}"


IDENTITIES = {
    "admin": Identity("finetune-testnode-admin", "system:masters"),
    "apiserver": Identity(
        "kube-apiserver",
        names=(
            "DNS:localhost",
            *(f"DNS:{name}" for name in API_NAMES),
            *(f"IP:{address}" for address in ("127.0.0.1", BRIDGE_ADDRESS, API_SERVICE)),
        ),
    ),
    "apiserver-to-kubelet": Identity("kube-apiserver-kubelet-client", "system:masters"),
    "kubelet": Identity(f"system:node:{NODE}", "system:nodes", (f"DNS:{NODE}", "IP:127.0.0.1", f"IP:{BRIDGE_ADDRESS}")),
    "kube-controller-manager": Identity("system:kube-controller-manager"),
    "kube-scheduler": Identity("system:kube-scheduler"),
    "kube-proxy": Identity("system:kube-proxy"),
    "coredns": Identity("finetune:coredns"),
    "local-path-provisioner": Identity("finetune:local-path-provisioner"),
}
"""The system: users have their rights from the API server itself; the finetune: users from addons.yaml."""


def ensure_pki(pki: Path) -> None:
    """Make every key and certificate that is missing; make all of them anew when one is about to expire."""
    if pki.exists() and not all(_is_fresh(pki / f"{name}.crt") for name in ("ca", *IDENTITIES)):
        shutil.rmtree(pki)
    if pki.exists():
        return
    pki.mkdir(parents=True, mode=0o700)
    _make_authority(pki)
    for name, identity in IDENTITIES.items():
        _issue(pki, name, identity)
    _make_service_account_keys(pki)


def write_kubeconfigs(settings: Settings) -> None:
    """One for the administrator, and one for each part that talks to the API server."""
    _write_kubeconfig(settings.pki, "admin", settings.kubeconfig)
    for name in IDENTITIES:
        _write_kubeconfig(settings.pki, name, kubeconfig_of(settings, name))


def kubeconfig_of(settings: Settings, name: str) -> Path:
    """The kubeconfig of one part."""
    return settings.pki / f"{name}.kubeconfig"


def _is_fresh(certificate: Path) -> bool:
    return attempt(["openssl", "x509", "-in", str(certificate), "-noout", "-checkend", RENEW_SECONDS]).returncode == 0


def _new_key(path: Path) -> None:
    run(["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", str(path)])


def _make_authority(pki: Path) -> None:
    _new_key(pki / "ca.key")
    subject = ["-subj", "/CN=finetune-testnode-ca", "-days", VALID_DAYS]
    run(["openssl", "req", "-x509", "-new", "-key", str(pki / "ca.key"), "-out", str(pki / "ca.crt"), *subject])


def _issue(pki: Path, name: str, identity: Identity) -> None:
    key, request, extensions = (pki / f"{name}.{suffix}" for suffix in ("key", "csr", "ext"))
    _new_key(key)
    run(["openssl", "req", "-new", "-key", str(key), "-subj", identity.subject, "-out", str(request)])
    extensions.write_text(_extensions(identity))
    authority = ["-CA", str(pki / "ca.crt"), "-CAkey", str(pki / "ca.key"), "-CAcreateserial"]
    output = ["-out", str(pki / f"{name}.crt"), "-days", VALID_DAYS, "-extfile", str(extensions)]
    run(["openssl", "x509", "-req", "-in", str(request), *authority, *output])
    request.unlink()
    extensions.unlink()


def _extensions(identity: Identity) -> str:
    lines = ["basicConstraints=critical,CA:FALSE", "extendedKeyUsage=clientAuth,serverAuth"]
    if identity.names:
        lines.append(f"subjectAltName={','.join(identity.names)}")
    return "\n".join(lines) + "\n"


def _make_service_account_keys(pki: Path) -> None:
    _new_key(pki / "sa.key")
    run(["openssl", "pkey", "-in", str(pki / "sa.key"), "-pubout", "-out", str(pki / "sa.pub")])


def _write_kubeconfig(pki: Path, name: str, target: Path) -> None:
    def data(file: str) -> str:
        return b64encode((pki / file).read_bytes()).decode()

    server = {"server": f"https://{BRIDGE_ADDRESS}:{API_PORT}", "certificate-authority-data": data("ca.crt")}
    user = {"client-certificate-data": data(f"{name}.crt"), "client-key-data": data(f"{name}.key")}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "finetune-testnode", "cluster": server}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": "finetune-testnode", "context": {"cluster": "finetune-testnode", "user": name}}],
        "current-context": "finetune-testnode",
    }
    target.touch(mode=0o600)
    target.write_text(json.dumps(config, indent=1) + "\n")  # JSON is YAML, and needs no library
