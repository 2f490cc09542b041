"""Everything that a recipe gets: settings, folders, rows, and whom to tell."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datasets import Dataset

    from finetune_trainer.contract.paths import RunPaths
    from finetune_trainer.contract.results import ModelFacts
    from finetune_trainer.contract.runspec import RunSpec
    from finetune_trainer.train.checkpoints import CheckpointStore
    from finetune_trainer.train.stopping import Stop


@dataclass(frozen=True)
class TrainJob:
    """One training."""

    spec: RunSpec
    paths: RunPaths
    model: ModelFacts
    rows: Dataset
    validation: Dataset
    checkpoints: CheckpointStore
    stop: Stop

    @property
    def base(self) -> str:
        """The folder of the base model."""
        return self.model.path

    @property
    def device(self) -> str:
        """The one device that everything lies on. With its number: the Trainer takes "cuda" for another one."""
        return "cuda:0" if self.spec.device == "cuda" else "cpu"

    @property
    def tokenizer(self) -> str:
        """The folder of the tokenizer, as prepare left it."""
        return str(self.paths.stage("prepare") / "tokenizer")

    @property
    def folder(self) -> Path:
        """The train stage's own folder."""
        return Path(self.paths.stage("train"))

    @property
    def adapter(self) -> Path:
        """Where the trained adapter goes."""
        return self.folder / "adapter"

    @property
    def losses(self) -> Path:
        """One JSON line per step."""
        return self.folder / "losses.jsonl"
