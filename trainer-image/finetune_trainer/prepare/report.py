"""report.json, and the same in one sentence and in the counts of the status."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from finetune_trainer.contract.results import DatasetFacts
from finetune_trainer.prepare.rows import TOO_LONG
from finetune_trainer.stage import write_file

if TYPE_CHECKING:
    from pathlib import Path

    from finetune_trainer.data import Report
    from finetune_trainer.prepare.rows import Rows
    from finetune_trainer.prepare.split import Split

_EXAMPLES = 10


@dataclass(frozen=True)
class Counted:
    """Everything that was counted about the data of a run."""

    reports: list[Report]
    """Of the dataset, and of the validation set if it is one of its own."""
    split: Split
    train: Rows
    validation: Rows

    @cached_property
    def facts(self) -> DatasetFacts:
        """The counts that go into the status."""
        return DatasetFacts(
            read=sum(report.read for report in self.reports),
            kept=self.train.kept + self.validation.kept,
            dropped=self._dropped(),
            validation_rows=self.validation.kept,
            tokens=self.train.tokens,
            trainable_tokens=self.train.trainable,
            longest=max(self.train.lengths + self.validation.lengths),
            digest="-".join(report.digest() for report in self.reports),
        )

    @cached_property
    def duplicates(self) -> int:
        """Held-out rows that are also learned."""
        return self.split.duplicates()

    def sentence(self) -> str:
        """The counts for people."""
        facts, duplicates = self.facts, self.duplicates
        dropped = ", ".join(f"{count} {reason}" for reason, count in facts.dropped.items())
        parts = [
            f"{facts.read} rows read, {self.train.kept} to learn from, {facts.validation_rows} held out",
            f"; dropped: {dropped}" if dropped else "",
            f"; {duplicates} held-out rows are also learned" if duplicates else "",
            f"; {facts.tokens} tokens, {facts.trainable_tokens} of them learned.",
        ]
        return "".join(parts)

    def write(self, path: Path) -> None:
        """report.json."""
        write_file(path, json.dumps(self._report(), ensure_ascii=False, indent=2))

    def _dropped(self) -> dict[str, int]:
        dropped: Counter[str] = Counter()
        for report in self.reports:
            dropped += report.dropped
        too_long = len(self.train.too_long) + len(self.validation.too_long)
        return dict(dropped + Counter({TOO_LONG: too_long}))

    def _report(self) -> dict[str, Any]:
        return {
            "dataset": self.facts.model_dump(by_alias=True),
            "files": [_file(report) for report in self.reports],
            "duplicatesAcrossSplit": self.duplicates,
            "train": _part(self.train),
            "validation": _part(self.validation),
        }


def _file(report: Report) -> dict[str, Any]:
    return {
        "name": report.file,
        "format": report.format,
        "read": report.read,
        "dropped": dict(report.dropped),
        "droppedLines": report.dropped_lines,
        "notes": dict(report.notes),
    }


def _part(part: Rows) -> dict[str, Any]:
    longest = sorted(part.too_long, key=lambda one: -one[1])[:_EXAMPLES]
    return {
        "rows": part.kept,
        "tokens": part.tokens,
        "trainableTokens": part.trainable,
        "unlearnedTurns": part.unlearned_turns,
        "lengths": part.histogram(),
        "tooLong": [{"line": line, "tokens": length} for line, length in longest],
    }
