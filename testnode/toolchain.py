"""The programs that a node is made of: Debian's for what Debian has, the rest built from the Go module proxy."""

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from testnode.console import NodeError, note, step, tail
from testnode.settings import Settings
from testnode.shell import run

DEBIAN_PACKAGES = {
    "etcd": "etcd-server",
    "containerd": "containerd",
    "runc": "runc",
    "/usr/lib/cni/bridge": "containernetworking-plugins",
    "iptables": "iptables",
    "ip": "iproute2",
    "busybox": "busybox-static",
    "openssl": "openssl",
}
"""Program (a name on PATH, or a path) and the package that brings it."""

BUILDS = {
    "kube": "./cmd/kube",
    "coredns": "./cmd/coredns",
    "local-path-provisioner": "github.com/rancher/local-path-provisioner",
    "helm": "helm.sh/helm/v3/cmd/helm",
}
"""Program and the Go package that it is built from."""

KUBE_PARTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl")
"""Names under which ``kube`` is a part of Kubernetes (symbolic links)."""

GO_MODULE = Path(__file__).parent / "go"
POLICY = Path("/usr/sbin/policy-rc.d")


def ensure_tools(settings: Settings) -> None:
    """Install and build what is missing."""
    packages = missing_packages()
    if packages:
        with step(f"installing {' '.join(packages)} (apt-get)"), _no_services_started():
            _apt_get(packages)
    _ensure_built(settings)


def missing_packages() -> list[str]:
    """The Debian packages whose programs are not there."""
    return sorted({package for program, package in DEBIAN_PACKAGES.items() if shutil.which(program) is None})


def build_key(compiler: str, sources: Path = GO_MODULE) -> str:
    """Changes when the sources or the compiler (its version and flags) do: the programs are then built again."""
    digest = hashlib.sha256(compiler.encode())
    for path in sorted(path for path in sources.rglob("*") if path.is_file()):
        digest.update(f"{path.relative_to(sources)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def linker_flags(go_mod: str) -> str:
    """Flags that put Kubernetes' version, which is that of the module, into the programs; clients look at it."""
    version = re.search(r"^\s*k8s\.io/kubernetes (v(\d+)\.(\d+)\.\d+)", go_mod, re.MULTILINE)
    if version is None:
        raise NodeError(f"{GO_MODULE}/go.mod does not require k8s.io/kubernetes")
    full, major, minor = version.groups()
    component, helm = "k8s.io/component-base/version.", "helm.sh/helm/v3/pkg/chartutil.k8sVersion"
    values = {f"{component}gitVersion": full, f"{component}gitMajor": major, f"{component}gitMinor": minor}
    # What `helm template` takes the cluster's version to be, when there is no cluster.
    values |= {f"{helm}Major": major, f"{helm}Minor": minor}
    return " ".join(["-s -w", *(f"-X {name}={value}" for name, value in values.items())])


def _ensure_built(settings: Settings) -> None:
    if shutil.which("go") is None:
        raise NodeError(
            "Go is not installed, and the node is built with it: install Go 1.24 or later (https://go.dev/dl)"
        )
    marker, key = settings.bin / ".testnode-build", build_key(run(["go", "version"]) + _flags())
    if marker.exists() and marker.read_text() == key:
        return
    settings.bin.mkdir(parents=True, exist_ok=True)
    note("building Kubernetes, CoreDNS, local-path-provisioner and helm: 15 to 20 minutes on 2 cores, only this once")
    for program, package in BUILDS.items():
        with step(f"building {program}"):
            _go_build(settings, program, package)
    for name in KUBE_PARTS:
        _link(settings.bin / name)
    marker.write_text(key)


def _go_build(settings: Settings, program: str, package: str) -> None:
    log, fresh = settings.cache / f"build-{program}.log", settings.bin / f"{program}.new"
    argv = ["nice", "go", "build", "-trimpath", "-ldflags", _flags(), "-o", str(fresh), package]
    with log.open("w") as output:
        done = subprocess.run(argv, cwd=GO_MODULE, env=_go_env(), stdout=output, stderr=output, check=False)
    if done.returncode != 0:
        raise NodeError(f"`{' '.join(argv)}` in {GO_MODULE} ended with status {done.returncode}\n{tail(log)}")
    fresh.replace(settings.bin / program)  # by rename, because the old one may be running


def _flags() -> str:
    return linker_flags((GO_MODULE / "go.mod").read_text())


def _go_env() -> Mapping[str, str]:
    return {**os.environ, "CGO_ENABLED": "0"}


def _link(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to("kube")


def _apt_get(packages: list[str]) -> None:
    quiet = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq"]
    run([*quiet, "update"])
    run([*quiet, "install", "--yes", "--no-install-recommends", *packages])


@contextmanager
def _no_services_started() -> Iterator[None]:
    """Debian starts what it installs, and nobody asked for an etcd and a containerd of the machine's own."""
    if POLICY.exists():
        yield
        return
    POLICY.write_text("#!/bin/sh\nexit 101\n")
    POLICY.chmod(0o755)
    try:
        yield
    finally:
        POLICY.unlink()
