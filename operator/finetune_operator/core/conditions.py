"""Conditions: all types always present, lastTransitionTime moves only with the status, messages are cut."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from finetune_operator.api.v1alpha1.common import Condition
from finetune_operator.core import times

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

JOB_TYPES = ("Prepared", "Admitted", "Trained", "Exported", "Evaluated", "Succeeded", "Failed", "Suspended")
SERVICE_TYPES = ("ModelResolved", "Admitted", "Loaded", "Ready", "Degraded", "Yielded", "Suspended")
MESSAGE_LENGTH = 2000

NOT_STARTED = "NotStarted"
STICKY = frozenset({"ImagePullFailed"})
"""Reasons whose first message stays: the kubelet says the same thing in two ways by turns."""


class Fact(NamedTuple):
    """What a condition says, before time and generation are added."""

    status: bool
    reason: str
    message: str = ""


def yes(reason: str, message: str = "") -> Fact:
    """True, and why."""
    return Fact(status=True, reason=reason, message=message)


def no(reason: str, message: str = "") -> Fact:
    """False, and why."""
    return Fact(status=False, reason=reason, message=message)


def cut(message: str, length: int = MESSAGE_LENGTH) -> str:
    """The message, shortened with a mark if it is too long."""
    return message if len(message) <= length else message[: length - 2] + " …"


def by_type(conditions: Iterable[Condition]) -> dict[str, Condition]:
    """Type → condition."""
    return {condition.type: condition for condition in conditions}


def is_true(conditions: Iterable[Condition], kind: str) -> bool:
    """Is the condition of this type True?"""
    return any(condition.type == kind and condition.status == "True" for condition in conditions)


def update(
    previous: Iterable[Condition], facts: Mapping[str, Fact], generation: int | None, now: datetime
) -> list[Condition]:
    """The new conditions, in the order of facts."""
    known = by_type(previous)
    return [_condition(kind, fact, known.get(kind), generation, now) for kind, fact in facts.items()]


def _condition(kind: str, fact: Fact, old: Condition | None, generation: int | None, now: datetime) -> Condition:
    status = "True" if fact.status else "False"
    same = old is not None and old.status == status
    told = old.message if old and same and old.reason == fact.reason and fact.reason in STICKY else fact.message
    return Condition.model_validate(
        {
            "type": kind,
            "status": status,
            "reason": fact.reason or NOT_STARTED,
            "message": cut(told),
            "observed_generation": generation,
            "last_transition_time": old.last_transition_time if old and same else times.stamp(now),
        }
    )
