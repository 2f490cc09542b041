"""Bring the records of a job up to date with its Jobs and pods: the past, before the next step is decided."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from finetune_operator.core import classify
from finetune_operator.core.classify import Outcome
from finetune_operator.core.job import records, steps
from finetune_operator.core.job.steps import Situation

if TYPE_CHECKING:
    from datetime import datetime

    from finetune_trainer.contract.results import StageResult

    from finetune_operator.api.v1alpha1.finetunejob import FineTuneJob, StageRecord
    from finetune_operator.core.job.run import Run
    from finetune_operator.core.types import Children, Facts, Manifest


class Observed(NamedTuple):
    """A situation, and the result of the attempt that has just succeeded, if one has."""

    situation: Situation
    result: StageResult | None


def observe(job: FineTuneJob, run: Run, children: Children, facts: Facts, now: datetime) -> Observed:
    """Judge the running attempt, if there is one, and write down how it ended."""
    known = [] if run.fresh else _forgiven(job)
    known += _unrecorded(job, run, known, children, now)
    running = next((record for record in known if record.outcome == "Running"), None)
    live = _job_of(job, run, running, children) if running else None
    outcome = _outcome(live, run, children, facts) if live else Outcome("Running")
    if running and outcome.kind not in {"Running", "Waiting"}:
        known, live = records.replaced(known, records.end(running, outcome, now)), None
    row = records.current_stage(known)
    situation = Situation(
        job=job,
        run=run,
        row=row,
        record=records.last(known, row.name) if row else None,
        records=known,
        outcome=outcome,
        children=children,
        facts=facts,
        now=now,
        live=live,
        busy=steps.busy(children, live),
    )
    return Observed(situation, outcome.result)


def _forgiven(job: FineTuneJob) -> list[StageRecord]:
    """The records; a new retryToken forgives the failure that ended the job."""
    known = list(job.status.stages)
    if job.spec.retry_token == job.status.retry_token:
        return known
    return [records.retried(record) if record.outcome == "Failed" else record for record in known]


def _unrecorded(
    job: FineTuneJob, run: Run, known: list[StageRecord], children: Children, now: datetime
) -> list[StageRecord]:
    """The attempt whose Job was made but not written down, because the operator ended in between."""
    row = records.current_stage(known)
    if row is None or any(record.outcome == "Running" for record in known):
        return []
    begun = records.begin(row, run, records.last(known, row.name), now)
    return [begun] if _job_of(job, run, begun, children) else []


def _job_of(job: FineTuneJob, run: Run, record: StageRecord, children: Children) -> Manifest | None:
    name = run.job_name(job, record.name, record.attempt)
    return next((item for item in children.jobs if item["metadata"]["name"] == name), None)


def _outcome(live: Manifest, run: Run, children: Children, facts: Facts) -> Outcome:
    own = [pod for pod in children.pods if classify.belongs_to(pod, live)]
    return classify.classify(live, own, children.events, run.digest, facts.logs)
