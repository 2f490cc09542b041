"""plan(): what to do about an InferenceService now. Pure, like the plan of a FineTuneJob."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import ValidationError

from finetune_operator.api.v1alpha1.common import ObjectMeta, manifest
from finetune_operator.api.v1alpha1.inferenceservice import InferenceService, InferenceServiceStatus
from finetune_operator.core import events, platforms, prerequisites, references, times, validation
from finetune_operator.core.service import health, rollout, server, serving, status
from finetune_operator.core.service.rollout import View
from finetune_operator.core.service.server import Revision
from finetune_operator.core.types import ObjectRef, Plan

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from finetune_operator.core.service.health import Health
    from finetune_operator.core.service.rollout import Action
    from finetune_operator.core.types import Children, Facts, Manifest


def plan(service: Manifest, children: Children, facts: Facts, now: datetime) -> Plan:
    """Look at everything, decide what to do, and say what to create, apply, delete, write and tell."""
    if "deletionTimestamp" in service["metadata"]:
        return Plan()
    try:
        parsed = InferenceService.model_validate(service)
    except ValidationError as error:
        return _invalid(service, validation.sentence(error), now)
    if wrong := serving.wrong_args(parsed):
        return _invalid(service, wrong, now)
    view = _view(parsed, children, facts, now)
    action = rollout.next_action(view)
    new = status.status_of(view, action, serves=_serves(view, action))
    changed = manifest(new) != manifest(parsed.status)
    return Plan(
        create=_create(view),
        apply=(*_deployment(view, action), *_service(view, action)),
        delete=_delete(view, action),
        status=manifest(new) if changed else None,
        events=events.of_service(parsed.status, new) if changed else (),
        requeue_after=times.LOOK_AGAIN if action in {"Missing", "Wait"} else None,
    )


def _view(service: InferenceService, children: Children, facts: Facts, now: datetime) -> View:
    resolution = serving.resolve(service, facts.job)
    platform = serving.platform(service, facts)
    revision = _revision(service, resolution, platform, facts)
    return View(
        service=service,
        resolution=resolution,
        platform=platform,
        needs=serving.needs(service, resolution.model, platform) if resolution.model else None,
        revision=revision,
        missing=_missing(service, facts),
        wanted=_health(children, revision.selector) if revision else health.Health(),
        children=children,
        facts=facts,
        now=now,
    )


def _revision(
    service: InferenceService, resolution: serving.Resolution, platform: str, facts: Facts
) -> Revision | None:
    model, hold = resolution.model, platforms.kept(service.status.hold, facts.nodes)
    if model is None or hold is None:
        return None
    return Revision(
        service=service,
        model=model,
        spec=serving.serve_spec(service, model, platform),
        memory_bytes=serving.needs(service, model, platform).host,
        hold=hold,
        settings=facts.settings,
    )


def _missing(service: InferenceService, facts: Facts) -> prerequisites.Missing | None:
    """The Secret that the user names, or the claim; a Secret of ours is made, not waited for."""
    wanted = references.of_service(service.metadata.name, service.spec)
    if _key_is_ours(service) and wanted.secrets[0][0] not in facts.secret_keys:
        wanted = references.References(claims=wanted.claims)
    return prerequisites.missing(service.metadata.namespace, wanted, facts)


def _key_is_ours(service: InferenceService) -> bool:
    auth = service.spec.auth
    return auth is None or (auth.type != "None" and auth.api_key_secret_ref is None)


def _create(view: View) -> tuple[Manifest, ...]:
    """The key: early, so that clients can be set up while the model is made."""
    secret = server.api_key_secret(view.service)
    missing = _key_is_ours(view.service) and secret["metadata"]["name"] not in view.facts.secret_keys
    return (secret,) if missing else ()


def _deployment(view: View, action: Action) -> tuple[Manifest, ...]:
    return (server.deployment(view.revision),) if action == "Start" and view.revision else ()


def _service(view: View, action: Action) -> tuple[Manifest, ...]:
    """Clients reach the wanted revision once it is ready, or at once if there is no other."""
    existing = _existing(view)
    if view.revision is None or action not in {"Start", "Switch"}:
        return ()
    if action == "Start" and view.others and existing:
        return ()
    desired = server.service_of(view.service, view.revision.selector)
    return () if existing and _same_service(existing, desired) else (desired,)


def _existing(view: View) -> Manifest | None:
    name = view.service.metadata.name
    return next((item for item in view.children.services if item["metadata"]["name"] == name), None)


def _same_service(existing: Manifest, desired: Manifest) -> bool:
    """Compares what we set; the API server fills in the rest."""
    ours, theirs = desired["spec"], existing["spec"]
    if not any(ours["ports"][0].items() <= port.items() for port in theirs.get("ports", [])):
        return False
    return all(theirs.get(key) == ours[key] for key in ("selector", "type"))


def _delete(view: View, action: Action) -> tuple[ObjectRef, ...]:
    """Every server when suspended, and the old ones when they have to make room or have been replaced."""
    gone = {"Suspend": view.children.deployments, "Clear": view.others, "Switch": view.others}.get(action, ())
    return tuple(
        ObjectRef("apps/v1", "Deployment", item["metadata"]["namespace"], item["metadata"]["name"])
        for item in gone
        if "deletionTimestamp" not in item["metadata"]
    )


def _serves(view: View, action: Action) -> bool:
    """Is the server ready that clients reach now, or after this plan?"""
    if action == "Suspend":
        return False
    if action == "Switch":
        return view.wanted.ready
    existing = _existing(view)
    return existing is not None and _health(view.children, existing["spec"].get("selector", {})).ready


def _health(children: Children, selector: Mapping[str, str]) -> Health:
    """How the revision does that this selector means."""
    revision = selector.get(server.REVISION_LABEL)
    deployment = next((item for item in children.deployments if _of_revision(item, revision)), None)
    own = [pod for pod in children.pods if _of_revision(pod, revision)]
    return health.judge(deployment, own, children.events)


def _of_revision(item: Manifest, revision: str | None) -> bool:
    labels: dict[str, str] = item["metadata"].get("labels", {})
    return labels.get(server.REVISION_LABEL) == revision


def _invalid(service: Manifest, message: str, now: datetime) -> Plan:
    """Say what is wrong, and touch nothing: what was served before is served on."""
    meta = ObjectMeta.model_validate(service["metadata"])
    old = InferenceServiceStatus.model_validate(service.get("status", {}))
    new = status.invalid(old, meta.generation, message, now)
    if manifest(new) == manifest(old):
        return Plan()
    return Plan(status=manifest(new), events=events.of_service(old, new))
