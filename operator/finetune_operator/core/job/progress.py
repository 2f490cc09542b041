"""Progress out of a trainer's reports, in numbers and in words; 100 % is believed only with the result."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from finetune_operator.api.v1alpha1.finetunejob import Progress, ProgressDisplay
from finetune_operator.core import times

if TYPE_CHECKING:
    from datetime import datetime

    from finetune_trainer.contract.progress import TrainerStatus
    from finetune_trainer.contract.results import TrainFacts

WRITE_EVERY = 10.0
"""Seconds between two writes of the status for progress alone."""
FIRST_STEPS = 2
"""Before, there is no ETA: the first step compiles and warms up."""


def update(old: Progress | None, report: TrainerStatus | None, now: datetime) -> Progress | None:
    """The progress to show: the report's, unless it says nothing new or the last one was written just now."""
    if report is None or wait(old, now) > 0:
        return old
    new = from_report(report)
    if old and new == old.model_copy(update={"updated_at": None}):
        return old
    return new.model_copy(update={"updated_at": times.stamp(now)})


def wait(old: Progress | None, now: datetime) -> float:
    """Seconds until progress may be written again."""
    if old is None or old.updated_at is None:
        return 0.0
    return max(0.0, WRITE_EVERY - times.seconds_since(old.updated_at, now))


def from_report(report: TrainerStatus) -> Progress:
    """The numbers of a report, with percent and words of our own."""
    numbers = _numbers(report)
    step, total = _whole(numbers.get("step")), _whole(numbers.get("totalSteps"))
    resumed = _whole(numbers.get("resumedFromStep"))
    percent = min(99, 100 * step // total) if step is not None and total else None
    eta = _eta(report.estimated_remaining_seconds, step, resumed)
    loss = numbers.get("loss")
    return Progress(
        step=step,
        total_steps=total,
        epoch=numbers.get("epoch"),
        percent=percent,
        loss=loss,
        eval_loss=numbers.get("evalLoss"),
        learning_rate=numbers.get("learningRate"),
        tokens_per_second=numbers.get("tokensPerSecond"),
        eta_seconds=eta,
        resumed_from_step=resumed,
        display=_display(step, total, percent, loss, eta),
    )


def finished(facts: TrainFacts, old: Progress | None) -> Progress:
    """The last word on progress: only a complete result makes 100 %."""
    loss = facts.loss if facts.loss is not None else (old.loss if old else None)
    return (old or Progress()).model_copy(
        update={
            "step": facts.steps,
            "total_steps": facts.steps,
            "percent": 100,
            "loss": loss,
            "eval_loss": facts.eval_loss,
            "tokens_per_second": facts.tokens_per_second,
            "eta_seconds": None,
            "resumed_from_step": facts.resumed_from_step,
            "display": _display(facts.steps, facts.steps, 100, loss, None),
        }
    )


def _eta(estimate: int | None, step: int | None, resumed: int | None) -> int | None:
    """The trainer's estimate, once this attempt has made enough steps of its own to know."""
    own = (step or 0) - (resumed or 0)
    return estimate if own >= FIRST_STEPS else None


def _display(
    step: int | None, total: int | None, percent: int | None, loss: float | None, eta: int | None
) -> ProgressDisplay:
    return ProgressDisplay(
        step=f"{step}/{total}" if step is not None and total else None,
        percent=f"{percent}%" if percent is not None else None,
        loss=f"{loss:.3f}" if loss is not None else None,
        eta=times.words(eta) if eta is not None else None,
    )


def _numbers(report: TrainerStatus) -> dict[str, float]:
    """The metrics that are finite numbers; anybody's trainer may send anything."""
    found = {}
    for metric in report.metrics:
        try:
            value = float(metric.value)
        except ValueError:
            continue
        if math.isfinite(value):
            found[metric.name] = value
    return found


def _whole(number: float | None) -> int | None:
    return None if number is None else int(number)
