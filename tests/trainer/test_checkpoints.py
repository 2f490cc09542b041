"""A checkpoint is whole and of this run, or it is not resumed from."""

from __future__ import annotations

import json
import shutil
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from finetune_trainer.stage import StageError
from finetune_trainer.train.checkpoints import MARKER, Checkpoint, CheckpointStore

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

STAMP = {"run digest": "abc", "data": "d1", "torch version": "2.13.0"}


@pytest.fixture
def store(tmp_path: Path) -> CheckpointStore:
    return CheckpointStore(tmp_path / "checkpoints", STAMP, keep=2)


def save(store: CheckpointStore, step: int) -> Checkpoint:
    staged = store.staging / f"checkpoint-{step}" / "inner"
    staged.mkdir(parents=True)
    (staged.parent / "weights").write_text(f"weights of {step}")
    (staged / "state").write_text("state")
    return store.commit(step)


def test_the_newest_is_resumed_and_only_so_many_stay(store: CheckpointStore) -> None:
    for step in (5, 10, 100):
        save(store, step)
    newest = store.newest()
    assert newest
    assert newest.step == 100
    assert sorted(path.name for path in store.folder.glob("checkpoint-*")) == ["checkpoint-10", "checkpoint-100"]


def test_a_later_step_of_other_versions_does_not_push_out_what_was_just_saved(store: CheckpointStore) -> None:
    older = CheckpointStore(store.folder, STAMP | {"torch version": "2.12.0"}, keep=2)
    for step in (90, 100):
        save(older, step)
    save(store, 20)
    assert [path.name for path in store.folder.glob("checkpoint-*")] == ["checkpoint-20"]


def test_a_commit_carries_the_hash_of_every_file(store: CheckpointStore) -> None:
    marker = json.loads((save(store, 5).path / MARKER).read_text())
    assert marker["stamp"] == STAMP
    assert sorted(marker["files"]) == ["inner/state", "weights"]


def cut_file(path: Path) -> None:
    (path / "weights").write_text("weigh")


def lose_file(path: Path) -> None:
    (path / "inner" / "state").unlink()


def lose_marker(path: Path) -> None:
    (path / MARKER).unlink()


def other_data(path: Path) -> None:
    marker = json.loads((path / MARKER).read_text())
    marker["stamp"]["data"] = "d2"
    (path / MARKER).write_text(json.dumps(marker))


@pytest.mark.parametrize("damage", [cut_file, lose_file, lose_marker, other_data])
def test_what_is_not_whole_or_not_ours_is_passed_over_for_an_older_one(
    store: CheckpointStore, damage: Callable[[Path], None]
) -> None:
    save(store, 5)
    damage(save(store, 10).path)
    newest = store.newest()
    assert newest
    assert newest.step == 5


def test_the_log_says_why_one_is_passed_over(store: CheckpointStore, caplog: pytest.LogCaptureFixture) -> None:
    other_data(save(store, 5).path)
    assert store.newest() is None
    assert "Not resuming from checkpoint-5: it was made with another data." in caplog.text


def test_an_interrupted_save_is_no_checkpoint(store: CheckpointStore) -> None:
    (store.staging / "checkpoint-7").mkdir(parents=True)
    assert store.newest() is None
    store.clear_staging()
    assert not store.staging.exists()


def test_a_full_disk_is_noticed_before_the_save(store: CheckpointStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: SimpleNamespace(free=10))
    with pytest.raises(StageError, match=r"needs 11 bytes in .*checkpoints; 10 are free") as caught:
        store.require_space(11)
    assert caught.value.reason.name == "DiskFull"
