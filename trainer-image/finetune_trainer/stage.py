"""What every stage shares: read the RunSpec, hold the run's lock, write the result, end with the right exit code.

A stage is a function ``work(spec, paths) -> StageResult`` that raises StageError for what a person must know.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from finetune_trainer.contract.paths import CACHE_MOUNT, MODELS_MOUNT, RESULT, TERMINATION_LOG, RunPaths, Stage
from finetune_trainer.contract.reasons import REASONS
from finetune_trainer.contract.results import StageResult, Termination
from finetune_trainer.contract.runspec import RUNSPEC_PATH, RunSpec
from finetune_trainer.files import settle_all

if TYPE_CHECKING:
    from types import FrameType

log = logging.getLogger("finetune")
Work = Callable[[RunSpec, RunPaths], StageResult]

_NO_SPACE = {errno.ENOSPC, errno.EDQUOT}
_NOT_WRITABLE = {errno.EACCES, errno.EPERM, errno.EROFS}


class StageError(Exception):
    """A failure with a reason out of the table; the message says what, where and what was found."""

    def __init__(self, reason: str, message: str) -> None:
        """Take the reason's name and one or more sentences."""
        super().__init__(message)
        self.reason = REASONS[reason]
        self.message = message


def now() -> str:
    """The time as Kubernetes writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def write_file(path: Path, text: str) -> None:
    """Write, fsync, rename: readers see the old file or the whole new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    with partial.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


def read_result(paths: RunPaths, stage: Stage, name: str = RESULT) -> StageResult | None:
    """The complete result that a stage left, or None; one of another run digest does not count."""
    path = Path(paths.stage(stage) / name)
    if not path.exists():
        return None
    result = StageResult.model_validate_json(path.read_text(encoding="utf-8"))
    return result if result.run_digest == paths.run_digest else None


def require_result(paths: RunPaths, stage: Stage, name: str = RESULT) -> StageResult:
    """The result of an earlier stage, without which this one cannot work."""
    result = read_result(paths, stage, name)
    if result is None:
        missing = paths.stage(stage) / name
        raise StageError("StageFailed", f"{missing} is missing: the {stage} stage of this run has not finished.")
    return result


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock: two pods never work in one folder. Waits for the other one to end, and says so."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            log.info("Another pod works in %s; waiting until it has ended.", path.parent)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def run_stage(stage: Stage, work: Work, result_name: str = RESULT) -> int:
    """Run one stage to its end and return the exit status for the process."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stdout)
    spec = RunSpec.model_validate_json(Path(RUNSPEC_PATH).read_text(encoding="utf-8"))
    paths = RunPaths(spec.digest())
    try:
        with _ended_by_sigterm(), _writable(paths), locked(Path(paths.lock)):
            result = work(spec, paths)
            folder = Path(paths.stage(stage))
            folder.mkdir(parents=True, exist_ok=True)
            settle_all(folder)  # a result on the disk promises that all it speaks of is there too
            write_file(folder / result_name, result.to_json())
    except Exception as error:  # noqa: BLE001 - whatever happened must reach the person who waits
        return report_failure(paths, as_stage_error(error))
    log.info("%s", result.message)
    _terminate(Termination(reason="Completed", message=result.message, run_digest=paths.run_digest, result=result))
    return 0


def as_stage_error(error: Exception) -> StageError:
    """Give an unforeseen error the reason that fits it best."""
    if isinstance(error, StageError):
        return error
    traceback.print_exception(error)
    number, path = getattr(error, "errno", None), getattr(error, "filename", None)
    if number in _NO_SPACE or "No space left on device" in str(error):  # the text: libraries in Rust keep the number
        return StageError("DiskFull", f"No space left while writing {path or f'below {_fullest()}'}.")
    if number in _NOT_WRITABLE and path:
        return StageError("StorageNotWritable", f"UID {os.getuid()} may not use {path}: {os.strerror(number)}.")
    last = traceback.extract_tb(error.__traceback__)[-1]
    return StageError("StageFailed", f"{type(error).__name__}: {error} ({Path(last.filename).name}:{last.lineno})")


def _fullest() -> str:
    """The volume with the least room: a failed write itself names no file."""
    places = [str(place) for place in (MODELS_MOUNT, CACHE_MOUNT, tempfile.gettempdir()) if Path(place).exists()]
    return min(places, key=lambda place: shutil.disk_usage(place).free)


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Within this block SIGTERM ends the work; the first process of a container would not hear it otherwise."""
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise StageError("Interrupted", "The pod was asked to stop.")


@contextmanager
def _writable(paths: RunPaths) -> Iterator[None]:
    """Probe the claim first: a UID that may not write must not be found out after hours."""
    probe = Path(paths.root) / ".probe"
    try:
        probe.parent.mkdir(parents=True, exist_ok=True)
        probe.write_text("")
        probe.unlink()
    except OSError as error:
        if error.errno not in _NOT_WRITABLE:
            raise
        raise StageError(
            "StorageNotWritable", f"UID {os.getuid()} may not write to {error.filename}: {error.strerror}."
        ) from error
    yield


def report_failure(paths: RunPaths, error: StageError) -> int:
    """Say why a stage failed, in the log and in the termination message; returns the exit status."""
    log.error("%s: %s %s", error.reason.name, error.message, error.reason.hint)
    _terminate(Termination(reason=error.reason.name, message=error.message, run_digest=paths.run_digest))
    return error.reason.exit_code


def _terminate(termination: Termination) -> None:
    path = Path(TERMINATION_LOG)
    if path.exists():  # outside of a pod there is none
        path.write_text(termination.to_message(), encoding="utf-8")
