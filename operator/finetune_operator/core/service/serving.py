"""What an InferenceService resolves to: the model version, the server's settings, and the memory that it needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from finetune_server.argv import forbidden_args
from finetune_server.contract import GgufFacts, ServeSpec

from finetune_operator.api.v1alpha1.finetunejob import FineTuneJobStatus
from finetune_operator.api.v1alpha1.inferenceservice import ResolvedModel
from finetune_operator.core import conditions, memory, platforms, references

if TYPE_CHECKING:
    from finetune_server.contract import Acceleration

    from finetune_operator.api.v1alpha1.finetunejob import MemoryStatus
    from finetune_operator.api.v1alpha1.inferenceservice import InferenceService
    from finetune_operator.core.conditions import Fact
    from finetune_operator.core.types import Facts, Manifest

DEFAULT_CONTEXT = 16384
DEFAULT_PORT = 8080


@dataclass(frozen=True)
class Resolution:
    """The version to serve, if there is one, and what the condition ModelResolved says."""

    model: ResolvedModel | None
    fact: Fact


def resolve(service: InferenceService, job: Manifest | None) -> Resolution:
    """The version that the named job has published; the last one that was resolved stays when the job goes."""
    name, known = service.spec.model.from_fine_tune_job, service.status.model
    found = _published(name, job)
    if found:
        return Resolution(found, conditions.yes("ModelResolved", f"Version {found.version} of FineTuneJob {name}."))
    why = _why_not(name, service.metadata.namespace, job)
    if known:
        stays = f"Version {known.version} of FineTuneJob {known.job} is served. {why}"
        return Resolution(known, conditions.yes("ModelResolved", stays))
    return Resolution(None, conditions.no("WaitingForModel", why))


def _published(name: str, job: Manifest | None) -> ResolvedModel | None:
    status = FineTuneJobStatus.model_validate(job.get("status", {})) if job else None
    if status is None or status.model is None or not conditions.is_true(status.conditions, "Succeeded"):
        return None
    wanted = set(ResolvedModel.model_fields) - {"job"}
    return ResolvedModel(job=name, **status.model.model_dump(include=wanted))


def _why_not(name: str, namespace: str, job: Manifest | None) -> str:
    if job is None:
        return f"FineTuneJob {namespace}/{name} does not exist."
    phase = job.get("status", {}).get("phase", "Pending")
    return f"FineTuneJob {namespace}/{name} is {phase}; its model is served once it has succeeded."


def wrong_args(service: InferenceService) -> str | None:
    """A sentence about arguments that the user may not set, if there are any."""
    forbidden = forbidden_args(service.spec.extra_args or [])
    if not forbidden:
        return None
    told = ", ".join(f"{arg} is decided by {owner}" for arg, owner in forbidden.items())
    return f"spec.extraArgs: {told}."


def platform(service: InferenceService, facts: Facts) -> str:
    """The platform that the server runs on."""
    return platforms.resolve(service.spec, facts.settings, facts.nodes)


def serve_spec(service: InferenceService, model: ResolvedModel, on_platform: str) -> ServeSpec:
    """The server's settings, every default applied."""
    spec = service.spec
    acceleration: Acceleration = "cuda" if platforms.has_gpu(on_platform) else "cpu"
    said = {
        "context_length": spec.context_length or min(DEFAULT_CONTEXT, model.context_length or DEFAULT_CONTEXT),
        "parallel": spec.parallel,
        "kv_cache_type": spec.kv_cache_type,
        "reasoning": spec.reasoning,
        "extra_args": spec.extra_args,
    }
    open_to_all = references.api_key_secret(service.metadata.name, spec) is None
    return ServeSpec.model_validate(
        {
            "model_path": model.path,
            "alias": service.metadata.name,
            "acceleration": acceleration,
            "unified_memory": platforms.unified(on_platform),
            **({"api_key_file": None} if open_to_all else {}),
            **{key: value for key, value in said.items() if value is not None},
        }
    )


def needs(service: InferenceService, model: ResolvedModel, on_platform: str) -> MemoryStatus:
    """What the server needs with this model."""
    facts = GgufFacts.model_validate(model.model_dump(include=set(GgufFacts.model_fields)))
    return memory.of_server(serve_spec(service, model, on_platform), facts, service.spec.memory)


def port(service: InferenceService) -> int:
    """The port of the Service."""
    return (service.spec.service and service.spec.service.port) or DEFAULT_PORT


def url(service: InferenceService) -> str:
    """Where clients inside the cluster ask."""
    meta = service.metadata
    return f"http://{meta.name}.{meta.namespace}.svc.cluster.local:{port(service)}/v1"
