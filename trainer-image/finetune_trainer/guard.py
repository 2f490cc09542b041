"""How much memory this process may still take, and what to do before the host has none left.

/proc/meminfo shows the host even inside a container; the cgroup shows the container's limit, with the page cache
counted as used although the kernel would give it back. What is available is the smaller of the two.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from finetune_trainer.stage import StageError

if TYPE_CHECKING:
    from collections.abc import Callable

GIB = 2**30
MEMINFO = Path("/proc/meminfo")
CGROUP = Path("/sys/fs/cgroup")
UNLIMITED = 2**60
"""cgroup v1 writes a number near 2^63 for "no limit"."""


def _numbers(text: str) -> dict[str, int]:
    """``name value`` or ``name: value kB`` lines."""
    fields = (line.replace(":", " ").split() for line in text.splitlines())
    return {field[0]: int(field[1]) for field in fields if len(field) > 1 and field[1].isdigit()}


def host_available(meminfo: Path = MEMINFO) -> int:
    """MemAvailable of the host in bytes."""
    return _numbers(meminfo.read_text())["MemAvailable"] * 1024


@dataclass(frozen=True)
class CgroupFiles:
    """The same three facts have other names in cgroup v1 and v2."""

    limit: str
    usage: str
    stat: str
    file_keys: tuple[str, str]


V2 = CgroupFiles("memory.max", "memory.current", "memory.stat", ("active_file", "inactive_file"))
V1 = CgroupFiles(
    "memory/memory.limit_in_bytes",
    "memory/memory.usage_in_bytes",
    "memory/memory.stat",
    ("total_active_file", "total_inactive_file"),
)


def cgroup_limit(root: Path = CGROUP) -> int | None:
    """The container's memory limit in bytes; None if it has none."""
    files = _cgroup_files(root)
    text = (root / files.limit).read_text().strip() if files else "max"
    return None if text == "max" or int(text) >= UNLIMITED else int(text)


def cgroup_available(root: Path = CGROUP) -> int | None:
    """What the container may still take in bytes; None if it has no limit."""
    limit, files = cgroup_limit(root), _cgroup_files(root)
    if limit is None or files is None:
        return None
    stat = _numbers((root / files.stat).read_text())
    reclaimable = sum(stat.get(key, 0) for key in files.file_keys)
    return limit - max(0, int((root / files.usage).read_text()) - reclaimable)


def _cgroup_files(root: Path) -> CgroupFiles | None:
    return next((files for files in (V2, V1) if (root / files.limit).exists()), None)


def available(meminfo: Path = MEMINFO, root: Path = CGROUP) -> int:
    """What this process may still take in bytes."""
    host, container = host_available(meminfo), cgroup_available(root)
    return host if container is None else min(host, container)


def require_memory(needed: int, meminfo: Path = MEMINFO, root: Path = CGROUP) -> None:
    """Refuse to start what cannot fit; ``needed`` is what is certain, without any estimate."""
    limit = cgroup_limit(root)
    if limit is not None and limit < needed:
        raise StageError(
            "MemoryPlanExceeded",
            f"Weights and optimizer alone need {needed / GIB:.1f} GiB; the pod's limit is {limit / GIB:.1f} GiB.",
        )
    free = available(meminfo, root)
    if free < needed:
        raise StageError(
            "HostMemoryPressure",
            f"Weights and optimizer alone need {needed / GIB:.1f} GiB; {free / GIB:.1f} GiB are available.",
        )


@dataclass(frozen=True)
class Floors:
    """Two marks of the host's available memory, in bytes."""

    hard: int
    """Below it the host itself is in danger: exit at once."""
    soft: int
    """Below it there is just enough left to write a checkpoint: do that and exit."""

    @classmethod
    def above(cls, floor: int, largest_tensor: int) -> Floors:
        """Saving needs memory too: the largest tensor and a GiB for the rest."""
        return cls(hard=floor, soft=floor + largest_tensor + GIB)

    def look(self, free: int, soft: Callable[[str], None], hard: Callable[[str], None]) -> None:
        """Call what fits the available memory."""
        text = f"The host has {free / GIB:.1f} GiB left, less than the floor of"
        if free < self.hard:
            hard(f"{text} {self.hard / GIB:.1f} GiB.")
        elif free < self.soft:
            soft(f"{text} {self.soft / GIB:.1f} GiB at which training saves and leaves.")
