"""The status of an InferenceService, out of a view and the action that follows from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from finetune_trainer.contract.reasons import REASONS

from finetune_operator.api.v1alpha1.inferenceservice import InferenceServiceStatus
from finetune_operator.core import conditions, phase, references, sizes
from finetune_operator.core.conditions import NOT_STARTED, Fact, no, yes
from finetune_operator.core.service import serving

if TYPE_CHECKING:
    from datetime import datetime

    from finetune_operator.api.v1alpha1.common import Hold
    from finetune_operator.core.service.rollout import Action, View


def status_of(view: View, action: Action, *, serves: bool) -> InferenceServiceStatus:
    """The whole new status; serves says whether the server that clients reach is ready."""
    hold = _hold(view, action)
    service, model = view.service, view.resolution.model
    facts = _facts(view, action, hold, serves=serves)
    known = conditions.update(service.status.conditions, facts, service.metadata.generation, view.now)
    spec = serving.serve_spec(service, model, view.platform) if model else None
    key = references.api_key_secret(service.metadata.name, service.spec)
    return InferenceServiceStatus(
        observed_generation=service.metadata.generation,
        phase=phase.of_service(known),
        conditions=known,
        url=serving.url(service),
        api_key_secret=key[0] if key else None,
        model=model,
        context_length=spec.context_length if spec else None,
        slots=spec.parallel if spec else None,
        acceleration=spec.acceleration if spec else None,
        hold=hold,
    )


def _hold(view: View, action: Action) -> Hold | None:
    """A hold ends when the pods are gone, and not before."""
    ends = action == "Release" or (action == "Suspend" and view.at_rest)
    return None if ends else view.hold


def _facts(view: View, action: Action, hold: Hold | None, *, serves: bool) -> dict[str, Fact]:
    wanted = view.wanted
    return {
        "ModelResolved": view.resolution.fact,
        "Admitted": _admitted(view, action, hold),
        "Loaded": yes("Loaded", "The model is in memory.") if wanted.loaded else _not_loaded(view, action),
        "Ready": yes("Ready", f"Answers at {serving.url(view.service)}.") if serves else no("NotReady", wanted.message),
        "Degraded": yes(wanted.reason, wanted.message) if wanted.reason else no("NotDegraded"),
        "Yielded": no("NotYielded"),
        "Suspended": _suspended(view, action),
    }


def _admitted(view: View, action: Action, hold: Hold | None) -> Fact:
    if hold:
        return yes("Admitted", f"Holds {sizes.words(hold.host_bytes)} on node {hold.node}.")
    if action not in {"Queue", "Release"}:
        return no(NOT_STARTED)
    old = conditions.by_type(view.service.status.conditions).get("Admitted")
    waits = old is not None and old.status == "False" and old.reason == "Queued"
    return no("Queued", old.message if old and waits else "Waiting for memory and GPUs.")


def _not_loaded(view: View, action: Action) -> Fact:
    if action == "Missing" and view.missing:
        return no(view.missing.reason, f"{view.missing.message} {REASONS[view.missing.reason].hint}")
    if view.wanted.reason:
        return no(view.wanted.reason, view.wanted.message)
    return no("Loading") if action in {"Start", "Switch", "Load"} else no(NOT_STARTED)


def _suspended(view: View, action: Action) -> Fact:
    if action != "Suspend":
        return no("NotSuspended")
    if not view.at_rest:
        return no("Suspending", "Waiting for the server to end its requests.")
    return yes("Suspended", "spec.suspend is true; set it to false to serve again.")


def invalid(old: InferenceServiceStatus, generation: int, message: str, now: datetime) -> InferenceServiceStatus:
    """The status of an object whose spec cannot be read or used; what runs stays."""
    facts = {item.type: Fact(item.status == "True", item.reason, item.message) for item in old.conditions}
    wrong = {"Degraded": yes("InvalidSpec", f"{message} {REASONS['InvalidSpec'].hint}")}
    all_facts = {kind: (facts | wrong).get(kind, no(NOT_STARTED)) for kind in conditions.SERVICE_TYPES}
    known = conditions.update(old.conditions, all_facts, generation, now)
    update = {"observed_generation": generation, "conditions": known, "phase": phase.of_service(known)}
    return old.model_copy(update=update)
