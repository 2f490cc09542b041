"""From conversations to the rows of train.jsonl and validation.jsonl."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from finetune_trainer.data import Report
from finetune_trainer.data.faults import Fault
from finetune_trainer.stage import StageError

if TYPE_CHECKING:
    from pathlib import Path

    from finetune_trainer.contract.runspec import RunSpec
    from finetune_trainer.data import Conversation
    from finetune_trainer.prepare.labels import Labelled, Labeller

TOO_LONG = "tooLong"


@dataclass
class Rows:
    """What was counted while one part of the split was written."""

    kept: int = 0
    tokens: int = 0
    """Of the rows that are kept."""
    trainable: int = 0
    unlearned_turns: int = 0
    lengths: list[int] = field(default_factory=list)
    """Of all rows, the ones that are too long included."""
    too_long: list[tuple[int, int]] = field(default_factory=list)
    """(line, length in tokens)."""

    def count(self, row: Conversation, labelled: Labelled, max_length: int) -> bool:
        """Count a row; a row that is too long is not kept, and never cut."""
        length = len(labelled.input_ids)
        self.lengths.append(length)
        if length > max_length:
            self.too_long.append((row.line, length))
            return False
        self.kept += 1
        self.tokens += length
        self.trainable += sum(label >= 0 for label in labelled.labels)
        self.unlearned_turns += labelled.unlearned_turns
        return True

    def histogram(self) -> dict[str, int]:
        """How many rows have up to so many tokens, in powers of two."""
        bounds = Counter(1 << max(0, length - 1).bit_length() for length in self.lengths)
        return {f"up to {bound}": bounds[bound] for bound in sorted(bounds)}


def tokenize(rows: list[Conversation], labeller: Labeller, max_length: int, name: str, target: Path) -> Rows:
    """Write every row as one JSON object per line; the faults of all of them are told together."""
    done, report = Rows(), Report(name)
    with target.open("w", encoding="utf-8") as file:
        for row in rows:
            try:
                labelled = labeller.label(row)
            except Fault as fault:
                report.add(fault)
                continue
            if done.count(row, labelled, max_length):
                file.write(_as_json(row, labelled) + "\n")
    if report.problem_count and (failure := report.failure()):
        raise StageError(failure.reason, failure.message)
    return done


def _as_json(row: Conversation, labelled: Labelled) -> str:
    prompt = [message.for_chat() for message in row.messages[:-1]]
    answer = row.messages[-1].content if row.messages else ""
    ids = {"input_ids": labelled.input_ids, "labels": labelled.labels}
    said = {"prompt": prompt, "answer": answer, "line": row.line}
    return json.dumps({**ids, **said}, ensure_ascii=False, separators=(",", ":"))


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
    if not all(part.kept for part in parts):
        dropped = f"{len(long)} of {total} rows have more than {limit} tokens"
        raise StageError("DatasetEmpty", f"{dropped}: without them nothing is left to learn from or to hold out.")


def _up(fraction: float) -> float:
    """Rounded up, so that the value fits."""
    return math.ceil(fraction * 1000) / 1000
