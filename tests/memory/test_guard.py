"""How much memory is left: the host's, the container's, the smaller one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from finetune_trainer.guard import GIB, Floors, available, cgroup_available, cgroup_limit, require_memory
from finetune_trainer.stage import StageError

if TYPE_CHECKING:
    from pathlib import Path


def write_meminfo(folder: Path, gib: float) -> Path:
    path = folder / "meminfo"
    path.write_text(
        f"MemTotal:  99999999 kB\nMemFree:  1 kB\nMemAvailable:  {int(gib * 2**20)} kB\nHugePages_Total: 0\n"
    )
    return path


def write_v2(folder: Path, limit: str, usage: int, file: int) -> Path:
    root = folder / "v2"
    root.mkdir()
    (root / "memory.max").write_text(f"{limit}\n")
    (root / "memory.current").write_text(f"{usage}\n")
    (root / "memory.stat").write_text(
        f"anon 5\nfile {file}\nactive_file {file // 2}\ninactive_file {file // 2}\nshmem 7\n"
    )
    return root


def write_v1(folder: Path, limit: int, usage: int, file: int) -> Path:
    root = folder / "v1"
    (root / "memory").mkdir(parents=True)
    (root / "memory" / "memory.limit_in_bytes").write_text(f"{limit}\n")
    (root / "memory" / "memory.usage_in_bytes").write_text(f"{usage}\n")
    stat = f"cache {file}\nactive_file 1\ntotal_active_file {file // 2}\ntotal_inactive_file {file // 2}\n"
    (root / "memory" / "memory.stat").write_text(stat)
    return root


def test_page_cache_does_not_count_as_used_in_v2(tmp_path: Path) -> None:
    root = write_v2(tmp_path, str(10 * GIB), usage=7 * GIB, file=4 * GIB)
    assert cgroup_available(root) == 7 * GIB


def test_page_cache_does_not_count_as_used_in_v1(tmp_path: Path) -> None:
    root = write_v1(tmp_path, 10 * GIB, usage=7 * GIB, file=4 * GIB)
    assert cgroup_available(root) == 7 * GIB


def test_no_limit_is_no_limit(tmp_path: Path) -> None:
    assert cgroup_limit(write_v2(tmp_path, "max", 1, 0)) is None
    assert cgroup_limit(write_v1(tmp_path, 9223372036854771712, 1, 0)) is None
    assert cgroup_limit(tmp_path) is None


@pytest.mark.parametrize(("host", "limit", "expected"), [(5, "max", 5), (5, str(3 * GIB), 3), (2, str(3 * GIB), 2)])
def test_the_smaller_one_counts(tmp_path: Path, host: float, limit: str, expected: float) -> None:
    root = write_v2(tmp_path, limit, usage=0, file=0)
    assert available(write_meminfo(tmp_path, host), root) == expected * GIB


@pytest.mark.parametrize(
    ("host", "limit_gib", "needed", "reason"),
    [(16, 8, 8, None), (16, 8, 9, "MemoryPlanExceeded"), (4, 8, 5, "HostMemoryPressure")],
    ids=["fits", "the pod can never hold it", "the host cannot hold it now"],
)
def test_before_loading(tmp_path: Path, host: float, limit_gib: int, needed: int, reason: str | None) -> None:
    root = write_v2(tmp_path, str(limit_gib * GIB), usage=0, file=0)
    meminfo = write_meminfo(tmp_path, host)
    if reason is None:
        require_memory(needed * GIB, meminfo, root)
        return
    with pytest.raises(StageError, match=f"alone need {needed}.0 GiB") as caught:
        require_memory(needed * GIB, meminfo, root)
    assert caught.value.reason.name == reason


@pytest.mark.parametrize(("free", "called"), [(16, []), (14.9, ["soft"]), (12, ["soft"]), (11.9, ["hard"])])
def test_two_floors(free: float, called: list[str]) -> None:
    heard: list[str] = []
    floors = Floors.above(12 * GIB, largest_tensor=2 * GIB)
    floors.look(int(free * GIB), lambda _text: heard.append("soft"), lambda _text: heard.append("hard"))
    assert heard == called
