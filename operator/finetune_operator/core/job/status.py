"""The status of a FineTuneJob, out of a situation and the step that follows from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from finetune_trainer.contract.paths import GGUF, RunPaths
from finetune_trainer.contract.reasons import REASONS

from finetune_operator.api.v1alpha1.finetunejob import FineTuneJobStatus, ModelStatus
from finetune_operator.core import conditions, memory, phase, sizes, times
from finetune_operator.core.conditions import NOT_STARTED, Fact, no, yes
from finetune_operator.core.job import progress, records
from finetune_operator.core.job.stages import STAGES

if TYPE_CHECKING:
    from datetime import datetime

    from finetune_trainer.contract.results import StageResult

    from finetune_operator.api.v1alpha1.common import Condition, Hold
    from finetune_operator.api.v1alpha1.finetunejob import StageRecord
    from finetune_operator.core.job.serve import Served
    from finetune_operator.core.job.stages import StageRow
    from finetune_operator.core.job.steps import Situation, Step

_ENDED = frozenset({"Done", "Failed"})


def status_of(s: Situation, step: Step, result: StageResult | None, served: Served) -> FineTuneJobStatus:
    """The whole new status."""
    stages = with_attempt(s, step)
    found = _found(s, result)
    hold = _hold(s, step)
    facts = _facts(s, step, stages, hold, served)
    known = conditions.update(s.job.status.conditions, facts, s.job.metadata.generation, s.now)
    ended = step.action in _ENDED
    old = s.job.status
    return FineTuneJobStatus.model_validate(
        {
            **found,
            "observed_generation": s.job.metadata.generation,
            "phase": phase.of_job(known),
            "conditions": known,
            "run_digest": s.run.digest,
            "spec_digest": s.run.spec_digest,
            "retry_token": s.job.spec.retry_token,
            "stages": stages,
            "hold": hold,
            "queue": old.queue if step.action == "Queue" else None,
            "service": served.name,
            "started_at": (None if s.run.fresh else old.started_at) or (times.stamp(s.now) if stages else None),
            "finished_at": (old.finished_at or times.stamp(s.now)) if ended else None,
        }
    )


def with_attempt(s: Situation, step: Step) -> list[StageRecord]:
    """The records, with the attempt that starts now or that spec.suspend has ended."""
    if step.action == "Start" and s.row and not (s.record and s.record.outcome == "Running"):
        return records.replaced(s.records, records.begin(s.row, s.run, s.record, s.now))
    if step.action == "Suspended" and s.record and s.record.outcome == "Running":
        return records.replaced(s.records, records.suspended(s.record, s.now))
    return list(s.records)


def _found(s: Situation, result: StageResult | None) -> dict[str, Any]:
    """What the stages have found so far."""
    old = FineTuneJobStatus() if s.run.fresh else s.job.status
    found: dict[str, Any] = {
        "dataset": old.dataset,
        "base": old.base,
        "train": old.train,
        "export": old.export,
        "evaluation": old.evaluation,
        "memory": old.memory,
        "model": old.model,
        "progress": _progress(s, old),
    }
    return found | (_learned(s, old, result) if result else {})


def _learned(s: Situation, old: FineTuneJobStatus, result: StageResult) -> dict[str, Any]:
    """What the stage that has just succeeded adds."""
    if result.stage == "prepare":
        plan = memory.of_run(s.run.spec, result.model, s.job.spec.memory) if result.model else None
        return {"dataset": result.dataset, "base": result.model, "memory": plan}
    if result.stage == "train" and result.train:
        return {"train": result.train, "progress": progress.finished(result.train, old.progress)}
    if result.stage == "export":
        return {"export": result.export}
    return {"evaluation": result.evaluate, "model": _model(s, old, result)}


def _model(s: Situation, old: FineTuneJobStatus, result: StageResult) -> ModelStatus | None:
    """The published version. A result that is older than its attempt was found on the claim: it is used again."""
    evaluate, export, base = result.evaluate, old.export, old.base
    if evaluate is None or export is None or base is None:
        return None
    record = records.last(s.records, "evaluate")
    return ModelStatus(
        version=evaluate.version,
        path=str(RunPaths(s.run.digest).version(evaluate.version) / GGUF),
        digest=export.sha256,
        quantization=export.quantization,
        bytes=export.bytes,
        context_length=evaluate.context_length,
        base_revision=base.revision,
        layers=base.layers,
        key_value_heads=base.key_value_heads,
        head_dim=base.head_dim,
        reused=bool(record and record.started_at and result.finished_at and result.finished_at < record.started_at),
    )


def _progress(s: Situation, old: FineTuneJobStatus) -> Any:
    training = s.row is not None and s.row.reports and s.live is not None
    return progress.update(old.progress, s.facts.progress, s.now) if training else old.progress


def _hold(s: Situation, step: Step) -> Hold | None:
    """A hold ends when the pods are gone, and not before."""
    if s.busy or s.live:
        return s.job.status.hold
    wanted = step.action in {"Start", "Wait"} and s.row is not None and s.row.held
    return s.hold if wanted else None


def _facts(s: Situation, step: Step, stages: list[StageRecord], hold: Hold | None, served: Served) -> dict[str, Fact]:
    """Every condition, in the order in which people read them."""
    facts = {row.condition: _stage(row, s, step, stages) for row in STAGES}
    facts["Admitted"] = _admitted(s, step, hold)
    facts["Succeeded"] = _succeeded(s, step, served)
    facts["Failed"] = yes(step.reason, step.message) if step.action == "Failed" else no("NotFailed")
    suspended = step.action in {"Suspended", "Stop", "Stopping"}
    facts["Suspended"] = (
        Fact(step.action == "Suspended", step.reason, step.message) if suspended else no("NotSuspended")
    )
    return {kind: facts[kind] for kind in conditions.JOB_TYPES}


def _stage(row: StageRow, s: Situation, step: Step, stages: list[StageRecord]) -> Fact:
    record = records.last(stages, row.name)
    if record and record.outcome == "Succeeded":
        return yes(row.condition, record.message)
    if s.row is not row:
        return no(NOT_STARTED)
    if step.action == "Start" and record:
        return no("Running", f"Attempt {record.attempt} is running.")
    return no(step.reason, step.message)


def _admitted(s: Situation, step: Step, hold: Hold | None) -> Fact:
    if hold:
        return yes("Admitted", f"Holds {sizes.words(hold.host_bytes)} on node {hold.node}.")
    if step.action in _ENDED:
        return no("Released", "The run has ended; it holds nothing.")
    if step.action == "Suspended":
        return no("Suspended", "A suspended run holds nothing.")
    if step.action != "Queue":
        return no(NOT_STARTED)
    old = conditions.by_type(s.job.status.conditions).get("Admitted")
    return no(step.reason, old.message if _waits(old) and old else step.message)


def _waits(old: Condition | None) -> bool:
    """Has admission written its sum into the condition already?"""
    return old is not None and old.status == "False" and old.reason == "Queued"


def _succeeded(s: Situation, step: Step, served: Served) -> Fact:
    if step.action != "Done":
        return no(step.reason if step.action == "Failed" else "InProgress")
    if served.problem:
        return yes("ServeNameTaken", served.problem)
    record = records.last(s.records, STAGES[-1].name)
    return yes("Succeeded", record.message if record else "")


def invalid(old: FineTuneJobStatus, generation: int, message: str, now: datetime) -> FineTuneJobStatus:
    """The status of an object whose spec cannot be read."""
    facts = {kind: no(NOT_STARTED) for kind in conditions.JOB_TYPES}
    facts["Failed"] = yes("InvalidSpec", f"{message} {REASONS['InvalidSpec'].hint}")
    known = conditions.update(old.conditions, facts, generation, now)
    update = {"observed_generation": generation, "conditions": known, "phase": phase.of_job(known)}
    return old.model_copy(update=update)
