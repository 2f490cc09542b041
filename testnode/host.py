"""What the machine was like before the node came up, so that it can be like that again."""

import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

from testnode import iptables
from testnode.console import note
from testnode.processes import BOOT_ID
from testnode.settings import Settings

SYSCTLS = (
    "net/ipv4/ip_forward",
    "net/ipv4/conf/all/route_localnet",
    "net/bridge/bridge-nf-call-iptables",
    "net/bridge/bridge-nf-call-ip6tables",
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
)
"""The kernel settings that the kubelet, kube-proxy, CNI and we change."""

FOREIGN_FOLDERS = (
    "/run/containerd",
    "/run/mount",
    "/run/netns",
    "/var/lib/cni",
    "/var/lib/kubelet",
    "/var/log/containers",
    "/var/log/pods",
)
"""Folders that containerd, CNI, the kubelet and mount make, wherever their own folders are said to be."""


@dataclass(frozen=True)
class Before:
    """The state of the machine before the node."""

    boot: str
    iptables: dict[str, str]
    sysctls: dict[str, str]
    folders: list[str]
    """Those of FOREIGN_FOLDERS that somebody else made."""


def remember(settings: Settings) -> None:
    """Write down the state of the machine, unless that of this boot is written already."""
    known = recall(settings)
    if known is not None and known.boot == _boot():
        return
    _file(settings).write_text(json.dumps(asdict(_look())))


def recall(settings: Settings) -> Before | None:
    """What was written down, or None if the node was never up."""
    file = _file(settings)
    return Before(**json.loads(file.read_text())) if file.exists() else None


def restore(before: Before) -> None:
    """Make the machine what it was: packet filter, kernel settings, folders."""
    if before.boot == _boot():
        for family, saved in before.iptables.items():
            iptables.remove_ours(family, saved)
        for name, value in before.sysctls.items():
            _set(name, value)
    for folder in set(FOREIGN_FOLDERS) - set(before.folders):
        _remove_unused(Path(folder))


def set_sysctl(name: str, value: str) -> None:
    """Change a kernel setting that ``restore`` puts back."""
    if name not in SYSCTLS:
        raise ValueError(f"{name} is not in SYSCTLS, so it would never be put back")
    _set(name, value)


def _look() -> Before:
    return Before(
        boot=_boot(),
        iptables={family: iptables.save(family) for family in iptables.FAMILIES},
        sysctls={name: path.read_text().strip() for name in SYSCTLS if (path := Path("/proc/sys", name)).exists()},
        folders=[folder for folder in FOREIGN_FOLDERS if Path(folder).exists()],
    )


def _file(settings: Settings) -> Path:
    return settings.node / "before.json"


def _boot() -> str:
    return BOOT_ID.read_text().strip()


def _set(name: str, value: str) -> None:
    path = Path("/proc/sys", name)
    if path.read_text().strip() != value:
        path.write_text(value)


def _remove_unused(folder: Path) -> None:
    """Remove a folder that holds no files but dead sockets and links; another's files in it are left alone."""
    if not folder.exists():
        return
    if any(path.is_file() for path in folder.rglob("*")):
        note(f"{folder} was not there before, but holds files that the node does not know, and stays")
        return
    shutil.rmtree(folder)
