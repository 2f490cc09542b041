"""plan(): what to do about a FineTuneJob now. Pure; called alike for every change, tick and restart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import ValidationError

from finetune_operator.api.v1alpha1.common import ObjectMeta, manifest
from finetune_operator.api.v1alpha1.finetunejob import FineTuneJob, FineTuneJobStatus
from finetune_operator.core import claims, classify, events, memory, references, times, validation
from finetune_operator.core.job import attempts, networkpolicy, observe, progress, records, run, status, steps
from finetune_operator.core.job.serve import Served, serve
from finetune_operator.core.types import ObjectRef, Plan

if TYPE_CHECKING:
    from datetime import datetime

    from finetune_operator.core.job.steps import Situation, Step
    from finetune_operator.core.types import Children, Facts, Manifest


def plan(job: Manifest, children: Children, facts: Facts, now: datetime) -> Plan:
    """Look at everything, decide the next step, and say what to create, delete, write and tell."""
    if "deletionTimestamp" in job["metadata"]:
        return Plan()
    try:
        parsed = FineTuneJob.model_validate(job)
    except ValidationError as error:
        return _invalid(job, error, now)
    current = run.current(parsed, children, facts)
    situation, result = observe.observe(parsed, current, children, facts, now)
    step = steps.next_step(situation)
    served = serve(parsed, facts.service) if step.action == "Done" else Served(parsed.status.service)
    new = status.status_of(situation, step, result, served)
    changed = manifest(new) != manifest(parsed.status)
    return Plan(
        create=_create(situation, step, new),
        apply=(served.apply,) if served.apply else (),
        delete=_delete(situation, step),
        status=manifest(new) if changed else None,
        events=events.of_job(parsed.status, new) if changed else (),
        requeue_after=_again(situation, step),
    )


def _create(s: Situation, step: Step, new: FineTuneJobStatus) -> tuple[Manifest, ...]:
    """The Job, and what it needs."""
    if step.action != "Start" or s.row is None:
        return ()
    record = records.last(new.stages, s.row.name)
    attempt = attempts.Attempt(
        job=s.job,
        run=s.run,
        row=s.row,
        number=record.attempt if record else 1,
        memory_bytes=memory.of_stage(s.row.name, new.memory),
        hold=s.hold if s.row.held else None,
        deadline_seconds=_deadline(s),
        facts=s.facts,
    )
    wanted = references.of_job(s.job.metadata.name, s.job.spec)
    return (
        *claims.missing_defaults(s.job.metadata.namespace, wanted.claims, s.facts),
        *_config_map(s),
        attempts.manifest(attempt),
        networkpolicy.policy(s.job, s.row, s.facts.settings),
    )


def _config_map(s: Situation) -> tuple[Manifest, ...]:
    name = s.run.config_map_name(s.job)
    if any(item["metadata"]["name"] == name for item in s.children.config_maps):
        return ()
    return (run.config_map(s.job, s.run, s.facts.settings.progress_ca),)


def _deadline(s: Situation) -> int | None:
    """What is left of activeDeadlineSeconds after the earlier attempts at training."""
    limit = s.job.spec.active_deadline_seconds
    if limit is None or s.row is None or not s.row.reports:
        return None
    ended = [record for record in s.records if record.name == s.row.name and record.started_at and record.finished_at]
    spent = sum(
        (times.parse(str(record.finished_at)) - times.parse(str(record.started_at))).total_seconds() for record in ended
    )
    return max(1, limit - int(spent))


def _delete(s: Situation, step: Step) -> tuple[ObjectRef, ...]:
    """Jobs whose story is in the status already and that nobody needs, and the one that spec.suspend stops."""
    stopped = [s.live] if step.action == "Stop" and s.live else []
    gone = stopped + [job for job in s.children.jobs if job is not s.live and _superseded(s, job, step)]
    return tuple(_ref(job) for job in gone if "deletionTimestamp" not in job["metadata"])


def _superseded(s: Situation, job: Manifest, step: Step) -> bool:
    """Another run's, or an attempt that a later one has replaced, or one whose time to live is over."""
    labels = job["metadata"].get("labels", {})
    stage, attempt = labels.get(attempts.STAGE_LABEL, ""), int(labels.get(attempts.ATTEMPT_LABEL, "0"))
    if job["metadata"]["name"] != s.run.job_name(s.job, stage, attempt):
        return True
    if not classify.finished(job) or s.run.fresh:
        return False
    written = records.last(s.job.status.stages, stage)
    if written is None or written.attempt < attempt:
        return False
    return written.attempt > attempt or (written.outcome != "Running" and _expired(s, step))


def _expired(s: Situation, step: Step) -> bool:
    return step.action in {"Done", "Failed"} and _time_to_live(s) == 0


def _time_to_live(s: Situation) -> float | None:
    """Seconds until the Jobs of a finished run go; None: they stay."""
    limit, ended = s.job.spec.ttl_seconds_after_finished, s.job.status.finished_at
    if limit is None or ended is None:
        return None
    return max(0.0, limit - times.seconds_since(ended, s.now))


def _again(s: Situation, step: Step) -> float | None:
    """When it is worth looking again without a change."""
    if step.action in {"Done", "Failed"}:
        return _time_to_live(s) or None
    if step.action == "Run" and s.facts.progress and s.row and s.row.reports:
        return progress.wait(s.job.status.progress, s.now) or None
    return step.again


def _ref(job: Manifest) -> ObjectRef:
    return ObjectRef("batch/v1", "Job", job["metadata"]["namespace"], job["metadata"]["name"])


def _invalid(job: Manifest, error: ValidationError, now: datetime) -> Plan:
    """An object that got past the API server with a spec that we cannot read: say so, and touch nothing."""
    meta = ObjectMeta.model_validate(job["metadata"])
    old = FineTuneJobStatus.model_validate(job.get("status", {}))
    new = status.invalid(old, meta.generation, validation.sentence(error), now)
    if manifest(new) == manifest(old):
        return Plan()
    return Plan(status=manifest(new), events=events.of_job(old, new))
