"""Phases are computed from conditions by a table, first match wins. They are for people and never decide anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from finetune_operator.core import conditions as c

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from finetune_operator.api.v1alpha1 import finetunejob, inferenceservice
    from finetune_operator.api.v1alpha1.common import Condition

    Known = dict[str, Condition]
    Predicate = Callable[[Known], bool]

BEFORE_THE_FIRST_ATTEMPT = frozenset({c.NOT_STARTED, "SecretNotFound", "ConfigMapNotFound", "ClaimNotFound"})


def _is(*kinds: str) -> Predicate:
    return lambda known: all(kind in known and known[kind].status == "True" for kind in kinds)


def _reason(kind: str, reasons: Iterable[str]) -> Predicate:
    return lambda known: kind not in known or known[kind].reason in reasons


def _always(_known: Known) -> bool:
    return True


JOB: Sequence[tuple[Predicate, finetunejob.Phase]] = (
    (_is("Failed"), "Failed"),
    (_is("Succeeded"), "Succeeded"),
    (_is("Suspended"), "Suspended"),
    (_is("Exported", "Admitted"), "Evaluating"),
    (_is("Trained", "Admitted"), "Exporting"),
    (_is("Prepared", "Admitted"), "Training"),
    (_is("Prepared"), "Queued"),
    (_reason("Prepared", BEFORE_THE_FIRST_ATTEMPT), "Pending"),
    (_always, "Preparing"),
)

SERVICE: Sequence[tuple[Predicate, inferenceservice.Phase]] = (
    (_is("Suspended"), "Suspended"),
    (_is("Ready"), "Ready"),
    (_is("Degraded"), "Failed"),
    (_is("ModelResolved", "Admitted"), "Loading"),
    (_is("ModelResolved"), "Queued"),
    (_reason("ModelResolved", (c.NOT_STARTED,)), "Pending"),
    (_always, "WaitingForModel"),
)


def of_job(conditions: Iterable[Condition]) -> finetunejob.Phase:
    """The phase of a FineTuneJob."""
    known = c.by_type(conditions)
    return next(phase for holds, phase in JOB if holds(known))


def of_service(conditions: Iterable[Condition]) -> inferenceservice.Phase:
    """The phase of an InferenceService."""
    known = c.by_type(conditions)
    return next(phase for holds, phase in SERVICE if holds(known))
