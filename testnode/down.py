"""Taking the node down: nothing of it stays but what is cached (programs and images).

Nothing here asks Kubernetes to be tidy, because it must work as well after a crash: processes are killed by control
group, and then each kind of thing they leave is removed.
"""

import os
import shutil
import signal
from contextlib import suppress
from pathlib import Path

from testnode import cgroups, containerd, host, network, preflight, processes
from testnode.console import NodeError, note, step
from testnode.settings import Settings
from testnode.shell import run

CONTROLLING = (
    "local-path-provisioner",
    "coredns",
    "kube-proxy",
    "kubelet",
    "kube-scheduler",
    "kube-controller-manager",
    "kube-apiserver",
    "etcd",
)
"""The node's processes besides containerd, in the order in which they are stopped; what serves tests goes before."""


def down(settings: Settings) -> None:
    """Remove the node, whatever state it is in."""
    preflight.check_rights()
    before = host.recall(settings)
    if before is None:
        note("the node is not up")
        return
    with step("stopping Kubernetes"):
        others = set(processes.names(settings)) - {*CONTROLLING, "containerd"}
        for name in (*sorted(others), *CONTROLLING):
            processes.stop(settings, name)
    with step("killing the pods"):
        cgroups.kill_all()
    with step("deleting the containers"):
        _delete_containers(settings)
    with step("mounts, network, control groups and packet filter"):
        unmount_all(settings)
        network.remove_network()
        cgroups.remove()
        _forget_addresses()
        _forget_logs(settings)
        host.restore(before)
    with step("files"):
        shutil.rmtree(settings.run, ignore_errors=True)
        shutil.rmtree(settings.node)
    note(f"the node is down; {settings.bin} and {settings.store} stay as a cache for the next time")


def mounts_below(mountinfo: str, folders: tuple[Path, ...]) -> list[str]:
    """Mount points at or below the folders, the latest first, from the text of /proc/self/mountinfo."""
    points = (line.split()[4].encode().decode("unicode_escape") for line in mountinfo.splitlines())
    return [point for point in reversed(list(points)) if any(Path(point).is_relative_to(folder) for folder in folders)]


def unmount_all(settings: Settings) -> None:
    """Unmount what containers and volumes have mounted."""
    folders = (settings.run, settings.node, settings.store)
    for point in mounts_below(Path("/proc/self/mountinfo").read_text(), folders):
        run(["umount", point])


def _delete_containers(settings: Settings) -> None:
    """Through containerd, which keeps the images; if it does not work, nobody can tell them apart, and all go."""
    try:
        containerd.ensure_containerd(settings)
        containerd.forget_containers(settings)
        keep_images = True
    except NodeError as error:
        note(f"\ncontainerd does not work, so its images are removed too: {error}")
        keep_images = False
    processes.stop(settings, "containerd")
    _kill_shims(settings)
    if not keep_images:
        unmount_all(settings)
        shutil.rmtree(settings.store)


def _kill_shims(settings: Settings) -> None:
    for pid in containerd.shims(settings):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _forget_addresses(results: Path = Path("/var/lib/cni/results")) -> None:
    """The results that CNI keeps of each pod's network, in a folder which cannot be chosen."""
    for path in results.glob(f"{network.NETWORK}-*-eth0"):
        pod = path.name.removeprefix(f"{network.NETWORK}-").removesuffix("-eth0")
        (results / f"cni-loopback-{pod}-lo").unlink(missing_ok=True)
        path.unlink()


def _forget_logs(settings: Settings, links: Path = Path("/var/log/containers")) -> None:
    """The kubelet's links to the logs of containers, in a folder which cannot be chosen either."""
    for link in links.glob("*.log"):
        if link.is_symlink() and link.readlink().is_relative_to(settings.node):
            link.unlink()
