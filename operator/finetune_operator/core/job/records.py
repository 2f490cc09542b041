"""Records of attempts: what happened, kept in the status so that Jobs may go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from finetune_trainer.contract.reasons import REASONS, Reason, Retry

from finetune_operator.api.v1alpha1.finetunejob import StageRecord
from finetune_operator.core import times
from finetune_operator.core.conditions import cut
from finetune_operator.core.job.stages import STAGES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from finetune_operator.core.classify import Outcome
    from finetune_operator.core.job.run import Run
    from finetune_operator.core.job.stages import StageRow

DEFAULT_RETRIES = 3
FIRST_PAUSE = 30.0
LONGEST_PAUSE = 300.0
DISRUPTIONS_AT_ONCE = 2
"""Disruptions in a row that are repeated without a pause: a node that refuses every pod must not make a storm."""
KEPT_PER_STAGE = 6
"""Enough to tell the story and to count the pauses up to the longest one."""
MESSAGE_LENGTH = 1000


def last(records: Sequence[StageRecord], stage: str) -> StageRecord | None:
    """The latest attempt of a stage."""
    return max((record for record in records if record.name == stage), key=lambda record: record.attempt, default=None)


def current_stage(records: Sequence[StageRecord]) -> StageRow | None:
    """The first stage that has not succeeded; None when all have."""
    for row in STAGES:
        record = last(records, row.name)
        if record is None or record.outcome != "Succeeded":
            return row
    return None


def begin(row: StageRow, run: Run, previous: StageRecord | None, now: datetime) -> StageRecord:
    """A new attempt."""
    return StageRecord(
        name=row.name,
        attempt=previous.attempt + 1 if previous else 1,
        run_digest=run.digest,
        outcome="Running",
        failures=previous.failures if previous else 0,
        started_at=times.stamp(now),
    )


def end(record: StageRecord, outcome: Outcome, now: datetime) -> StageRecord:
    """The record of an attempt that has ended with this outcome."""
    counts = outcome.kind == "Failed" and REASONS[outcome.reason].retry is Retry.BUDGET
    return record.model_copy(
        update={
            "outcome": outcome.kind,
            "reason": outcome.reason,
            "message": cut(outcome.message, MESSAGE_LENGTH),
            "failures": record.failures + counts,
            "finished_at": times.stamp(now),
        }
    )


def suspended(record: StageRecord, now: datetime) -> StageRecord:
    """The record of an attempt that spec.suspend ended."""
    return record.model_copy(update={"outcome": "Suspended", "finished_at": times.stamp(now)})


def retried(record: StageRecord) -> StageRecord:
    """A new retryToken forgives a failure and gives the whole budget again."""
    return record.model_copy(update={"outcome": "Retried", "failures": 0})


def replaced(records: Sequence[StageRecord], new: StageRecord) -> list[StageRecord]:
    """The records with this one in its place, without the oldest ones."""
    others = [record for record in records if (record.name, record.attempt) != (new.name, new.attempt)]
    of_stage = [record for record in others if record.name == new.name]
    dropped = of_stage[: max(0, len(of_stage) + 1 - KEPT_PER_STAGE)]
    return [record for record in others if record not in dropped] + [new]


def is_final(record: StageRecord, retries: int | None) -> bool:
    """Does the whole job fail with this attempt?"""
    if record.outcome != "Failed":
        return False
    rule = reason_of(record).retry
    budget = DEFAULT_RETRIES if retries is None else retries
    return rule is Retry.NEVER or (rule is Retry.BUDGET and record.failures > budget)


def pause(records: Sequence[StageRecord], record: StageRecord) -> float:
    """Seconds to wait before the next attempt: 30, 60, 120, 240, 300, … while attempts fail; 0 otherwise."""
    streak = 0
    for earlier in sorted(records, key=lambda item: item.attempt):
        if earlier.name == record.name:
            streak = streak + 1 if earlier.outcome in {"Failed", "Disrupted"} else 0
    if record.outcome == "Disrupted":
        streak -= DISRUPTIONS_AT_ONCE
    return min(FIRST_PAUSE * 2 ** (streak - 1), LONGEST_PAUSE) if streak > 0 else 0.0


def reason_of(record: StageRecord) -> Reason:
    """The row of the table of reasons; a name that this version does not know is a plain failure."""
    return REASONS.get(record.reason, REASONS["StageFailed"])
