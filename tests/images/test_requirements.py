"""The requirements.lock files: what uv.lock says, hashed, and without what the base image brings."""

import re
from pathlib import Path

import pytest

from testnode.console import NodeError
from testnode.images import requirements
from testnode.images.requirements import HEADER, LOCKS, Lock

ROOT = Path(__file__).parents[2]
every_lock = pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.folder)


def entries(lock: Lock) -> list[str]:
    text = lock.path(ROOT).read_text().removeprefix(HEADER)
    return [entry for entry in text.replace("\\\n", " ").splitlines() if entry.strip()]


@every_lock
def test_it_is_what_uv_lock_says(lock: Lock) -> None:
    assert requirements.current(ROOT, lock), "run `make requirements` and commit the result"


@every_lock
def test_every_entry_has_one_version_and_hashes(lock: Lock) -> None:
    assert [it for it in entries(lock) if not re.match(r"[a-z0-9-]+==\S+ .*--hash=sha256:[0-9a-f]{64}", it)] == []


@every_lock
def test_torch_and_its_like_are_left_to_the_base(lock: Lock) -> None:
    names = {entry.split("==")[0] for entry in entries(lock)}
    assert names & {"torch", "torchvision", "torchaudio", "triton", "xformers"} == set()
    assert [name for name in names if name.startswith(("nvidia-", "cuda-"))] == []


def test_the_constraints_of_the_base_name_torch() -> None:
    assert "\ntorch==" in requirements.constraints(ROOT)


def test_a_stale_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements, "export", lambda _root, lock: f"what {lock.package} needs\n")
    for lock in LOCKS:
        lock.path(tmp_path).parent.mkdir()
    requirements.write(tmp_path)
    requirements.check(tmp_path)
    LOCKS[0].path(tmp_path).write_text("something else\n")
    with pytest.raises(NodeError, match=r"operator/requirements.lock: not what uv.lock says; run `make requirements`"):
        requirements.check(tmp_path)
