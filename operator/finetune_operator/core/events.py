"""Events on transitions: what `kubectl describe` tells, as one story. Compared are the old and the new status."""

from __future__ import annotations

from typing import TYPE_CHECKING

from finetune_operator.core import conditions, sizes
from finetune_operator.core.conditions import cut
from finetune_operator.core.job.stages import BY_NAME
from finetune_operator.core.types import EventRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from finetune_operator.api.v1alpha1.common import Condition
    from finetune_operator.api.v1alpha1.finetunejob import FineTuneJobStatus, StageRecord
    from finetune_operator.api.v1alpha1.inferenceservice import InferenceServiceStatus

MESSAGE_LENGTH = 900
"""The API server takes 1024 bytes."""


def of_job(old: FineTuneJobStatus, new: FineTuneJobStatus) -> tuple[EventRecord, ...]:
    """What has happened between two states of a FineTuneJob, in the order in which it happened."""
    told = [event for teller in _TELLERS for event in teller(old, new)]
    return tuple(EventRecord(kind, reason, cut(message, MESSAGE_LENGTH)) for kind, reason, message in told)


def of_service(old: InferenceServiceStatus, new: InferenceServiceStatus) -> tuple[EventRecord, ...]:
    """What has happened between two states of an InferenceService."""
    before, after = conditions.by_type(old.conditions), conditions.by_type(new.conditions)
    events = []
    if old.model and new.model and old.model.version != new.model.version:
        events.append(EventRecord("Normal", "NewVersion", f"Version {new.model.version} follows {old.model.version}."))
    for kind, warns in _SERVICE_STORY:
        condition = after[kind]
        if condition.status == "True" and not _same(before.get(kind), condition):
            reason = condition.reason if warns else kind
            events.append(EventRecord("Warning" if warns else "Normal", reason, cut(condition.message, MESSAGE_LENGTH)))
    return tuple(events)


_SERVICE_STORY = (
    ("ModelResolved", False),
    ("Loaded", False),
    ("Ready", False),
    ("Degraded", True),
    ("Suspended", False),
)
"""Conditions that are told when they become True, and whether as a warning."""

Told = tuple[str, str, str]


def _ended(old: FineTuneJobStatus, new: FineTuneJobStatus) -> Iterator[Told]:
    """Attempts that have ended."""
    before = {(record.name, record.attempt): record.outcome for record in old.stages}
    for record in new.stages:
        if before.get((record.name, record.attempt)) == record.outcome:
            continue
        if record.outcome == "Succeeded":
            yield "Normal", BY_NAME[record.name].condition, _success(record, new)
        elif record.outcome == "Failed":
            yield "Warning", record.reason, f"Attempt {record.attempt} of {record.name}: {record.message}"
        elif record.outcome == "Disrupted":
            yield (
                "Normal",
                "Disrupted",
                f"Attempt {record.attempt} of {record.name} ended: {record.reason}. It is repeated.",
            )


def _success(record: StageRecord, new: FineTuneJobStatus) -> str:
    """One sentence with the numbers that people ask for."""
    if record.name == "prepare" and (data := new.dataset):
        return (
            f"{data.read} rows read, {data.kept} kept, {data.validation_rows} held out; "
            f"{data.trainable_tokens} tokens to learn from."
        )
    if record.name == "train" and (train := new.train) and train.loss is not None:
        first = f"{train.first_loss:.3f} → " if train.first_loss is not None else ""
        return f"{train.steps} steps, loss {first}{train.loss:.3f}."
    if record.name == "export" and (export := new.export):
        return f"{export.quantization}, {sizes.words(export.bytes)}."
    if record.name == "evaluate" and (scores := new.evaluation):
        return f"Exact match {scores.base.exact_match:.0%} (base) → {scores.tuned.exact_match:.0%} (tuned)."
    return record.message


def _published(old: FineTuneJobStatus, new: FineTuneJobStatus) -> Iterator[Told]:
    if new.model and new.model != old.model:
        found = "An equal run had made it before: it is used again." if new.model.reused else ""
        yield "Normal", "Published", f"Version {new.model.version} ({new.model.quantization}). {found}".strip()


def _began(old: FineTuneJobStatus, new: FineTuneJobStatus) -> Iterator[Told]:
    """Attempts that have begun."""
    before = {(record.name, record.attempt) for record in old.stages}
    for record in new.stages:
        if record.outcome == "Running" and (record.name, record.attempt) not in before:
            where = f" on node {new.hold.node}" if new.hold else ""
            yield "Normal", BY_NAME[record.name].started, f"Attempt {record.attempt} of {record.name}{where}."


def _resumed(old: FineTuneJobStatus, new: FineTuneJobStatus) -> Iterator[Told]:
    before = old.progress.resumed_from_step if old.progress else None
    step = new.progress.resumed_from_step if new.progress else None
    if step is not None and step != before:
        yield "Normal", "Resumed", f"Training goes on from step {step}."


def _blocked(old: FineTuneJobStatus, new: FineTuneJobStatus) -> Iterator[Told]:
    """Something outside keeps the current stage from running: told once, when it starts."""
    before, after = conditions.by_type(old.conditions), conditions.by_type(new.conditions)
    for row in BY_NAME.values():
        condition = after[row.condition]
        if condition.reason in _BLOCKING and _reason(before, row.condition) != condition.reason:
            yield "Warning", condition.reason, condition.message


_BLOCKING = frozenset(
    {"SecretNotFound", "ConfigMapNotFound", "ClaimNotFound", "ImagePullFailed", "PodRejected", "Unschedulable"}
)


def _suspended(old: FineTuneJobStatus, new: FineTuneJobStatus) -> Iterator[Told]:
    if new.phase == "Suspended" and old.phase != "Suspended":
        yield "Normal", "Suspended", "Nothing runs; the work so far is kept."
    if old.phase == "Suspended" and new.phase != "Suspended":
        yield "Normal", "Unsuspended", "The job goes on."


def _finished(old: FineTuneJobStatus, new: FineTuneJobStatus) -> Iterator[Told]:
    before, after = conditions.by_type(old.conditions), conditions.by_type(new.conditions)
    if after["Failed"].status == "True" and not _same(before.get("Failed"), after["Failed"]):
        yield "Warning", "Failed", f"{after['Failed'].reason}: {after['Failed'].message}"
    if after["Succeeded"].status == "True" and _reason(before, "Succeeded") != after["Succeeded"].reason:
        kind = "Normal" if after["Succeeded"].reason == "Succeeded" else "Warning"
        yield kind, after["Succeeded"].reason, after["Succeeded"].message


def _served(old: FineTuneJobStatus, new: FineTuneJobStatus) -> Iterator[Told]:
    if new.service and new.service != old.service:
        yield "Normal", "ServiceCreated", f"InferenceService {new.service} serves the model."


def _same(old: Condition | None, new: Condition) -> bool:
    return old is not None and (old.status, old.reason) == (new.status, new.reason)


def _reason(known: dict[str, Condition], kind: str) -> str:
    return known[kind].reason if kind in known else ""


_TELLERS: tuple[Callable[[FineTuneJobStatus, FineTuneJobStatus], Iterator[Told]], ...] = (
    _ended,
    _published,
    _suspended,
    _began,
    _resumed,
    _blocked,
    _finished,
    _served,
)
"""In the order of causes: what ended, what followed from it, what starts next. A new story is a new row here.

That a job waits for memory is told by admission, which alone knows whether it has to.
"""
