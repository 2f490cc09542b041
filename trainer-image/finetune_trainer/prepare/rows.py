"""From conversations to the rows of train.jsonl and validation.jsonl."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from finetune_trainer.data import Report
from finetune_trainer.data.faults import Fault
from finetune_trainer.stage import StageError

if TYPE_CHECKING:
    from pathlib import Path

    from finetune_trainer.contract.runspec import RunSpec
    from finetune_trainer.data import Conversation
    from finetune_trainer.prepare.labels import Labelled, Labeller

TOO_LONG = "tooLong"
_EXAMPLES = 10


@dataclass
class Rows:
    """One part of the split, tokenized, and what was counted on the way."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    """Of all rows, the ones that are too long included."""
    too_long: list[tuple[int, int]] = field(default_factory=list)
    """(line, length in tokens)."""
    trainable: int = 0
    unlearned_turns: int = 0

    @property
    def tokens(self) -> int:
        """Tokens of the rows that are kept."""
        return sum(len(row["input_ids"]) for row in self.rows)

    def add(self, row: Conversation, labelled: Labelled, max_length: int) -> None:
        """Take a row, or note that it is too long: it is never cut."""
        length = len(labelled.input_ids)
        self.lengths.append(length)
        if length > max_length:
            self.too_long.append((row.line, length))
            return
        self.trainable += sum(label >= 0 for label in labelled.labels)
        self.unlearned_turns += labelled.unlearned_turns
        self.rows.append(_as_json(row, labelled))

    def write(self, path: Path) -> None:
        """One JSON object per line."""
        with path.open("w", encoding="utf-8") as file:
            for row in self.rows:
                file.write(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n")

    def histogram(self) -> dict[str, int]:
        """How many rows have up to so many tokens, in powers of two."""
        bounds = Counter(1 << max(0, length - 1).bit_length() for length in self.lengths)
        return {f"up to {bound}": bounds[bound] for bound in sorted(bounds)}


def _as_json(row: Conversation, labelled: Labelled) -> dict[str, Any]:
    prompt = [message.for_chat() for message in row.messages[:-1]]
    answer = row.messages[-1].content if row.messages else ""
    ids = {"input_ids": labelled.input_ids, "labels": labelled.labels}
    return {**ids, "prompt": prompt, "answer": answer, "line": row.line}


def tokenize(rows: list[Conversation], labeller: Labeller, max_length: int, name: str) -> Rows:
    """Every row; the faults of all of them are told together."""
    done, report = Rows(), Report(name)
    for row in rows:
        try:
            done.add(row, labeller.label(row), max_length)
        except Fault as fault:
            report.add(fault)
    if report.problem_count and (failure := report.failure()):
        raise StageError(failure.reason, failure.message)
    return done


def check_lengths(parts: tuple[Rows, ...], spec: RunSpec) -> None:
    """Too many rows over the limit mean that the limit is wrong."""
    long = [one for part in parts for one in part.too_long]
    total = sum(len(part.lengths) for part in parts)
    limit, accepted = spec.training.max_length, spec.dataset.max_truncated_fraction
    if len(long) / total > accepted:
        line, longest = max(long, key=lambda one: one[1])
        over = f"{len(long)} of {total} rows are longer than training.maxLength {limit} tokens"
        keep = f"maxLength {longest} keeps every row"
        drop = f"dataset.maxTruncatedFraction {_up(len(long) / total)} drops the long ones"
        raise StageError("DatasetTooLong", f"{over}; the longest has {longest} (line {line}). {keep}; {drop}.")
    if not all(part.rows for part in parts):
        raise StageError(
            "DatasetEmpty", f"No row is left after dropping {len(long)} of {total} rows over {limit} tokens."
        )


def _up(fraction: float) -> float:
    """Rounded up, so that the value fits."""
    return math.ceil(fraction * 1000) / 1000
