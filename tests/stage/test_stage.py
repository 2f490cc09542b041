"""What every stage shares: the lock, the end by SIGTERM, and what a result promises."""

from __future__ import annotations

import errno
import logging
import os
import signal
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from threading import Event, Thread

import pytest
from finetune_trainer import stage
from finetune_trainer.contract.paths import RunPaths
from finetune_trainer.contract.results import StageResult, Termination
from finetune_trainer.contract.runspec import DatasetSpec, Identity, ModelSpec, RunSpec
from finetune_trainer.stage import StageError, as_stage_error, locked, run_stage

Work = Callable[[RunSpec, RunPaths], StageResult]


@pytest.fixture
def pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The mounts of a stage's pod."""
    spec = RunSpec(
        identity=Identity(namespace="a", name="b", uid="c"),
        model=ModelSpec(source="hf://owner/name"),
        dataset=DatasetSpec(source="pvc://claim/rows.jsonl"),
    )
    (tmp_path / "runspec.json").write_text(spec.to_json())
    (tmp_path / "termination").write_text("")
    monkeypatch.setattr(stage, "RUNSPEC_PATH", str(tmp_path / "runspec.json"))
    monkeypatch.setattr(stage, "TERMINATION_LOG", tmp_path / "termination")
    monkeypatch.setattr(stage, "RunPaths", lambda digest: RunPaths(digest, models=PurePosixPath(tmp_path / "models")))
    return tmp_path


def ending(pod: Path) -> Termination:
    return Termination.model_validate_json((pod / "termination").read_text())


def finished(_spec: RunSpec, paths: RunPaths) -> StageResult:
    return StageResult(stage="evaluate", run_digest=paths.run_digest, message="Done.")


def told_to_end(_spec: RunSpec, _paths: RunPaths) -> StageResult:
    os.kill(os.getpid(), signal.SIGTERM)
    Event().wait(10)
    raise AssertionError("SIGTERM was not heard")


def test_a_stage_that_leaves_no_file_still_leaves_its_result(pod: Path) -> None:
    assert run_stage("evaluate", finished) == 0
    assert ending(pod).reason == "Completed"
    assert len(list(pod.glob("models/runs/*/evaluate/result.json"))) == 1


def test_sigterm_ends_a_stage_which_says_so(pod: Path) -> None:
    before = signal.getsignal(signal.SIGTERM)
    assert run_stage("prepare", told_to_end) == 80
    assert ending(pod).reason == "Interrupted"
    assert signal.getsignal(signal.SIGTERM) == before


def test_who_waits_for_the_lock_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "finetune")
    entered = Event()

    def second() -> None:
        with locked(tmp_path / "lock"):
            entered.set()

    waiting = Thread(target=second)
    with locked(tmp_path / "lock"):
        waiting.start()
        while not caplog.messages:
            assert not entered.wait(0.01)
    waiting.join(10)
    assert entered.is_set()
    assert caplog.messages == [f"Another pod works in {tmp_path}; waiting until it has ended."]


UNFORESEEN = {
    "a reason of one's own": (StageError("ModelGated", "Closed."), "ModelGated", "Closed."),
    "full, with a path": (OSError(errno.ENOSPC, "full", "/models/x"), "DiskFull", "writing /models/x."),
    "full, without a path": (OSError(errno.ENOSPC, "full"), "DiskFull", "writing below /"),
    "full, in the words of safetensors": (RuntimeError("I/O error: No space left on device (os error 28)"), "DiskFull",
                                          "writing below /"),
    "not ours": (PermissionError(errno.EACCES, "denied", "/cache/hf"), "StorageNotWritable",
                 f"UID {os.getuid()} may not use /cache/hf: Permission denied."),
    "anything else": (KeyError("x"), "StageFailed", "KeyError: 'x' (test_stage.py:"),
}  # fmt: skip


@pytest.mark.parametrize(("error", "reason", "said"), UNFORESEEN.values(), ids=UNFORESEEN)
def test_an_unforeseen_error_gets_the_reason_that_fits_it(error: Exception, reason: str, said: str) -> None:
    with pytest.raises(type(error)) as raised:
        raise error
    found = as_stage_error(raised.value)
    assert found.reason.name == reason
    assert said in found.message
