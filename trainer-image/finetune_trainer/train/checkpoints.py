"""Checkpoints that are whole or not there: stage, hash, fsync, mark, rename, and only then rotate."""

from __future__ import annotations

import json
import logging
import os
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from finetune_trainer.files import settle_folder, sha256_of
from finetune_trainer.stage import StageError, write_file

if TYPE_CHECKING:
    from pathlib import Path

log = logging.getLogger("finetune")

MARKER = "COMPLETE.json"
STAGING = ".staging"


@dataclass(frozen=True)
class Checkpoint:
    """A complete checkpoint on disk."""

    step: int
    path: Path


@dataclass(frozen=True)
class CheckpointStore:
    """The checkpoints of one run, ``checkpoint-<step>`` each."""

    folder: Path
    stamp: dict[str, str]
    """What a checkpoint must agree with to be resumed: run digest, data digest, versions."""
    keep: int
    """Newest complete ones that stay."""

    @property
    def staging(self) -> Path:
        """Where the trainer writes; never resumed from."""
        return self.folder / STAGING

    def clear_staging(self) -> None:
        """Remove what an interrupted save left."""
        shutil.rmtree(self.staging, ignore_errors=True)

    def require_space(self, needed: int) -> None:
        """Fail before a save that cannot fit."""
        self.folder.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(self.folder).free
        if free < needed:
            raise StageError("DiskFull", f"A checkpoint needs {needed} bytes in {self.folder}; {free} are free.")

    def commit(self, step: int) -> Checkpoint:
        """Make the staged ``checkpoint-<step>`` complete, then remove those too many."""
        staged = self.staging / f"checkpoint-{step}"
        files = {str(path.relative_to(staged)): _seal(path) for path in sorted(staged.rglob("*")) if path.is_file()}
        marker = {"step": step, "stamp": self.stamp, "files": files}
        write_file(staged / MARKER, json.dumps(marker, sort_keys=True, indent=1))
        settle_folder(staged)
        target = self.folder / staged.name
        shutil.rmtree(target, ignore_errors=True)
        staged.replace(target)
        settle_folder(self.folder)
        self._rotate(step)
        return Checkpoint(step, target)

    def newest(self) -> Checkpoint | None:
        """The newest checkpoint that is whole and of this very run; says why others are passed over."""
        for checkpoint in self._marked():
            flaw = self._flaw(checkpoint)
            if flaw is None:
                return checkpoint
            log.warning("Not resuming from %s: %s.", checkpoint.path.name, flaw)
        return None

    def _marked(self) -> list[Checkpoint]:
        found = [
            Checkpoint(int(path.parent.name.rpartition("-")[2]), path.parent)
            for path in self.folder.glob(f"checkpoint-*/{MARKER}")
        ]
        return sorted(found, key=lambda checkpoint: checkpoint.step, reverse=True)

    def _flaw(self, checkpoint: Checkpoint) -> str | None:
        """Why it cannot be resumed, or None."""
        marker: dict[str, Any] = json.loads((checkpoint.path / MARKER).read_text(encoding="utf-8"))
        if marker["stamp"] != self.stamp:
            wrong = [name for name in self.stamp if marker["stamp"].get(name) != self.stamp[name]]
            return f"it was made with another {', '.join(wrong)}"
        for name, seal in marker["files"].items():
            path = checkpoint.path / name
            if not path.exists() or sha256_of(path) != seal["sha256"]:
                return f"{name} is missing or damaged"
        return None

    def _rotate(self, newest: int) -> None:
        """A later step than the one just saved was passed over when this training began: it must not push it out."""
        marked = self._marked()
        kept = [checkpoint for checkpoint in marked if checkpoint.step <= newest][: self.keep]
        for checkpoint in (one for one in marked if one not in kept):
            (checkpoint.path / MARKER).unlink()  # first: a half removed folder must not look complete
            shutil.rmtree(checkpoint.path)


def _seal(path: Path) -> dict[str, Any]:
    """Bring a file to the disk and say what it holds."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
    return {"bytes": path.stat().st_size, "sha256": sha256_of(path)}
