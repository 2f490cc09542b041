"""Rows as prepare left them, and how a few of them become one batch."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from datasets import Dataset

if TYPE_CHECKING:
    from pathlib import Path

    from finetune_trainer.contract.runspec import TrainingSpec

IGNORED = -100
"""The label of a token that is read but not learned."""


def read_rows(path: Path) -> Dataset:
    """The columns that training needs: input_ids and labels."""
    with path.open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return Dataset.from_dict({column: [row[column] for row in rows] for column in ("input_ids", "labels")})


def total_steps(training: TrainingSpec, rows: int) -> int:
    """Optimizer steps of the whole run: maxSteps, or as many as the epochs take."""
    if training.max_steps is not None:
        return training.max_steps
    batches = math.ceil(rows / training.batch_size)
    per_epoch = math.ceil(batches / training.gradient_accumulation)
    return max(1, math.ceil((training.epochs or 1) * per_epoch))


@dataclass(frozen=True)
class PadRight:
    """Collates rows of different lengths: shape (rows, longest)."""

    pad: int

    def __call__(self, rows: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
        """One batch."""
        return {
            "input_ids": self._stack([row["input_ids"] for row in rows], self.pad),
            "labels": self._stack([row["labels"] for row in rows], IGNORED),
            "attention_mask": self._stack([[1] * len(row["input_ids"]) for row in rows], 0),
        }

    @staticmethod
    def _stack(rows: list[list[int]], fill: int) -> torch.Tensor:
        longest = max(len(row) for row in rows)
        return torch.tensor([row + [fill] * (longest - len(row)) for row in rows])
