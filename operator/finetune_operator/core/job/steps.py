"""What a FineTuneJob does next: a table of rules, first match wins. This is where the way of a job is decided."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from finetune_trainer.contract.reasons import REASONS

from finetune_operator.core import classify, platforms, prerequisites, references, times
from finetune_operator.core.job import records

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from finetune_operator.api.v1alpha1.common import Hold
    from finetune_operator.api.v1alpha1.finetunejob import FineTuneJob, StageRecord
    from finetune_operator.core.classify import Outcome
    from finetune_operator.core.job.run import Run
    from finetune_operator.core.job.stages import StageRow
    from finetune_operator.core.types import Children, Facts, Manifest

Action = Literal["Done", "Failed", "Stop", "Stopping", "Suspended", "Run", "Wait", "Queue", "Start"]


@dataclass(frozen=True)
class Step:
    """The one thing to do now, and what the current stage's condition says about it."""

    action: Action
    reason: str = ""
    message: str = ""
    again: float | None = None
    """Seconds until it is worth looking again without a change."""


@dataclass(frozen=True)
class Situation:
    """A job, and all that is known about it at this moment; the records are up to date with its Jobs."""

    job: FineTuneJob
    run: Run
    row: StageRow | None
    """The current stage; None when all have succeeded."""
    record: StageRecord | None
    """The latest attempt of the current stage."""
    records: Sequence[StageRecord]
    outcome: Outcome
    """How the running attempt stands."""
    children: Children
    facts: Facts
    now: datetime
    live: Manifest | None = None
    """The Job of the running attempt, if it exists."""
    busy: tuple[Manifest, ...] = field(default=())
    """Pods and other Jobs of this object in which something may still run."""

    @property
    def hold(self) -> Hold | None:
        """The hold, unless its node is gone, or it is older than the end of a disrupted attempt: back in line."""
        hold, record = platforms.kept(self.job.status.hold, self.facts.nodes), self.record
        disrupted = record is not None and record.outcome == "Disrupted" and record.finished_at
        if hold and disrupted and times.parse(hold.since) < times.parse(str(disrupted)):
            return None
        return hold


def next_step(situation: Situation) -> Step:
    """The first rule that applies."""
    return next(step for rule in RULES if (step := rule(situation)) is not None)


def _done(s: Situation) -> Step | None:
    return Step("Done") if s.row is None else None


def _failed(s: Situation) -> Step | None:
    if s.record is None or not records.is_final(s.record, s.job.spec.retries):
        return None
    return Step("Failed", s.record.reason, explain(s.record))


def _suspended(s: Situation) -> Step | None:
    if not s.job.spec.suspend:
        return None
    if s.live and not _ending(s.live) and not classify.finished(s.live):
        return Step("Stop", "Suspending", "The running attempt is told to save its work and end.")
    if s.live or s.busy:
        return Step("Stopping", "Suspending", "Waiting for the pod to end.")
    return Step("Suspended", "Suspended", "spec.suspend is true; set it to false to go on.")


def _others_end(s: Situation) -> Step | None:
    """Two pods never work for one job at the same time."""
    if s.live and not _ending(s.live):
        return None
    return Step("Wait", "Ending", "Waiting for the pod of the earlier attempt to end.") if s.live or s.busy else None


def _running(s: Situation) -> Step | None:
    if s.live is None or s.record is None:
        return None
    running = f"Attempt {s.record.attempt} is running" + (f" on {s.outcome.node}." if s.outcome.node else ".")
    return Step("Run", s.outcome.reason or "Running", s.outcome.message or running)


def _pausing(s: Situation) -> Step | None:
    if s.record is None or s.record.outcome not in {"Failed", "Disrupted"}:
        return None
    pause = records.pause(s.records, s.record)
    rest = pause - times.seconds_since(s.record.finished_at, s.now)
    again = f" Attempt {s.record.attempt + 1} follows {int(pause)} s after the last."
    return Step("Wait", s.record.reason, explain(s.record) + again, rest) if rest > 0 else None


def _missing(s: Situation) -> Step | None:
    """Checked before prepare only: the later stages use what prepare has found."""
    if s.row is None or not s.row.online:
        return None
    wanted = references.of_job(s.job.metadata.name, s.job.spec)
    found = prerequisites.missing(s.job.metadata.namespace, wanted, s.facts)
    if found is None:
        return None
    return Step("Wait", found.reason, f"{found.message} {REASONS[found.reason].hint}", times.LOOK_AGAIN)


def _queued(s: Situation) -> Step | None:
    if s.row is None or not s.row.held or s.hold:
        return None
    return Step("Queue", "Queued", "Waiting for memory and GPUs.")


def _start(_situation: Situation) -> Step:
    return Step("Start", "Running", "The Job is made.")


RULES: tuple[Callable[[Situation], Step | None], ...] = (
    _done,
    _failed,
    _suspended,
    _others_end,
    _running,
    _pausing,
    _missing,
    _queued,
    _start,
)


def explain(record: StageRecord) -> str:
    """What happened, and what to do about it."""
    hint = REASONS[record.reason].hint if record.reason in REASONS else ""
    return f"{record.message} {hint}".strip()


def busy(children: Children, live: Manifest | None) -> tuple[Manifest, ...]:
    """Pods, and Jobs other than the live one, in which something may still run."""
    jobs = [job for job in children.jobs if job is not live and not classify.finished(job)]
    return (*jobs, *(pod for pod in children.pods if classify.alive(pod)))


def _ending(job: Manifest) -> bool:
    return "deletionTimestamp" in job["metadata"]
