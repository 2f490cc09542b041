"""Which objects hold memory and GPUs, and which wait for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from finetune_operator.api.v1alpha1.common import Hold, manifest
from finetune_operator.api.v1alpha1.finetunejob import FineTuneJob, MemoryStatus
from finetune_operator.api.v1alpha1.inferenceservice import InferenceService
from finetune_operator.core import conditions, phase, platforms, times
from finetune_operator.core.service import serving
from finetune_operator.core.types import Holder

if TYPE_CHECKING:
    from finetune_operator.core.types import Facts, Manifest


def holder_of(about: Manifest, facts: Facts) -> Holder | None:
    """The object as admission sees it; None if it neither holds nor waits."""
    try:
        if about["kind"] == "FineTuneJob":
            return _of_job(FineTuneJob.model_validate(about))
        return _of_service(InferenceService.model_validate(about), facts)
    except ValidationError:
        return _unreadable(about)  # its own plan says what is wrong with it


def _unreadable(about: Manifest) -> Holder | None:
    """A spec that cannot be read asks for nothing, but what it holds is still in use."""
    said = about.get("status", {}).get("hold")
    if said is None:
        return None
    hold, meta = Hold.model_validate(said), about["metadata"]
    return Holder(
        kind=about["kind"],
        namespace=meta["namespace"],
        name=meta["name"],
        uid=meta["uid"],
        priority=0,
        since=times.parse(hold.since),
        platform=platforms.CPU,
        **_amounts(hold, MemoryStatus()),
    )


def _of_job(job: FineTuneJob) -> Holder | None:
    """A job waits from Prepared on, and keeps its place in the queue through disruptions and suspension."""
    status = job.status
    waits = phase.of_job(status.conditions) == "Queued" and not job.spec.suspend and not job.metadata.deletion_timestamp
    if status.hold is None and (not waits or status.memory is None):
        return None
    memory = status.memory or MemoryStatus()
    return _holder("FineTuneJob", job, status.hold, memory, memory.platform, "Prepared")


def _of_service(service: InferenceService, facts: Facts) -> Holder | None:
    """A service waits once its model is known."""
    status = service.status
    platform = serving.platform(service, facts)
    admitted = conditions.by_type(status.conditions).get("Admitted")
    queued = admitted is not None and admitted.reason == "Queued"
    waits = queued and not service.spec.suspend and not service.metadata.deletion_timestamp
    if status.hold is None and (not waits or status.model is None):
        return None
    needs = serving.needs(service, status.model, platform) if status.model else MemoryStatus()
    return _holder("InferenceService", service, status.hold, needs, platform, "ModelResolved")


def _holder(
    kind: str,
    about: FineTuneJob | InferenceService,
    hold: Hold | None,
    needs: MemoryStatus,
    platform: str,
    waits_since: str,
) -> Holder:
    meta = about.metadata
    condition = conditions.by_type(about.status.conditions).get(waits_since)
    since = condition.last_transition_time if condition else meta.creation_timestamp
    return Holder(
        kind=kind,
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        priority=(about.spec.priority or 0) if isinstance(about, FineTuneJob) else 0,
        since=times.parse(since),
        platform=platform,
        node_selector=about.spec.node_selector or {},
        tolerations=tuple(manifest(toleration) for toleration in about.spec.tolerations or ()),
        **_amounts(hold, needs),
    )


def _amounts(hold: Hold | None, needs: MemoryStatus) -> dict[str, Any]:
    """What it has, or what it asks for."""
    if hold:
        return {"host_bytes": hold.host_bytes, "device_bytes": hold.device_bytes, "gpus": hold.gpus, "node": hold.node}
    return {"host_bytes": needs.host, "device_bytes": needs.device, "gpus": needs.gpus}
