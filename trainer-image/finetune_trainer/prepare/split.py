"""Holding rows out: drawn with a seed, so that the same rows are held out every time."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from finetune_trainer.stage import StageError

if TYPE_CHECKING:
    from finetune_trainer.contract.runspec import ValidationSpec
    from finetune_trainer.data import Conversation

DEFAULT_FRACTION = 0.1


@dataclass(frozen=True)
class Split:
    """Rows to learn from, and rows held out."""

    train: list[Conversation]
    validation: list[Conversation]

    def duplicates(self) -> int:
        """Held-out rows that are also learned: they make an evaluation look better than it is."""
        learned = {row.canonical() for row in self.train}
        return sum(row.canonical() in learned for row in self.validation)


def split(rows: list[Conversation], how: ValidationSpec, seed: int) -> Split:
    """Draw the rows to hold out; both parts keep the file's order."""
    count = how.rows or max(1, round(len(rows) * (how.fraction or DEFAULT_FRACTION)))
    if count >= len(rows):
        message = f"{len(rows)} usable rows, and {count} are to be held out: nothing is left to learn from."
        raise StageError("DatasetEmpty", message)
    drawn = set(random.Random(seed).sample(range(len(rows)), count))  # noqa: S311 - a draw, not a secret
    train = [row for index, row in enumerate(rows) if index not in drawn]
    return Split(train, [rows[index] for index in sorted(drawn)])
