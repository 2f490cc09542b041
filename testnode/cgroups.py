"""The control group that all pods live in, in every hierarchy that the machine has (cgroup v1) or in the one (v2)."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from testnode.console import NodeError
from testnode.settings import CGROUP

ROOT = Path("/sys/fs/cgroup")
KILL_SECONDS = 20.0


def make() -> None:
    """Make the group; the kubelet refuses to start under one that is not there."""
    for hierarchy in _hierarchies():
        (hierarchy / CGROUP).mkdir(exist_ok=True)
    if _is_v2():
        controllers = (ROOT / "cgroup.controllers").read_text().split()
        (ROOT / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in controllers))


def kill_all() -> None:
    """Kill every process in the group, and wait until they are gone."""
    deadline = time.monotonic() + KILL_SECONDS
    while pids := set(_pids()):
        if time.monotonic() > deadline:
            raise NodeError(
                f"processes {sorted(pids)} in the control group {CGROUP} cannot be killed; see `ps` for their state"
            )
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)


def remove() -> None:
    """Remove the group and those below it, deepest first."""
    for hierarchy in _hierarchies():
        for folder, _, _ in os.walk(hierarchy / CGROUP, topdown=False):
            Path(folder).rmdir()


def _hierarchies() -> list[Path]:
    if _is_v2():
        return [ROOT]
    # A controller may have a second name (cpu for cpu,cpuacct), which is a link.
    return [path for path in sorted(ROOT.iterdir()) if path.is_dir() and not path.is_symlink()]


def _is_v2() -> bool:
    return (ROOT / "cgroup.controllers").exists()


def _pids() -> Iterator[int]:
    for hierarchy in _hierarchies():
        for procs in (hierarchy / CGROUP).rglob("cgroup.procs"):
            yield from (int(line) for line in procs.read_text().split())
