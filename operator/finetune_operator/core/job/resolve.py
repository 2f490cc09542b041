"""FineTuneJobSpec → RunSpec: every default is applied here, once, and then frozen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from finetune_trainer.contract import runspec

from finetune_operator.core import platforms, sizes

if TYPE_CHECKING:
    from pydantic import BaseModel

    from finetune_operator.api.v1alpha1.finetunejob import FineTuneJob, FineTuneJobSpec
    from finetune_operator.core.types import Facts, Settings

DEFAULT_EPOCHS = 3.0
DISCRETE_FLOOR = sizes.GIB
"""Host memory that is never planned away where the GPU has a memory of its own."""


def run_spec(job: FineTuneJob, facts: Facts) -> runspec.RunSpec:
    """The settings of a run, resolved against the operator's settings and the nodes of this moment."""
    spec, settings = job.spec, facts.settings
    platform = platforms.resolve(spec, settings, facts.nodes)
    meta = job.metadata
    return runspec.RunSpec(
        identity=runspec.Identity(namespace=meta.namespace, name=meta.name, uid=meta.uid),
        model=runspec.ModelSpec(**_said(spec.model, "source", "chat_template", "trust_remote_code")),
        dataset=dataset(spec),
        lora=_lora(spec),
        training=_training(spec),
        evaluation=runspec.EvaluationSpec(**_said(spec.evaluation)),
        export=runspec.ExportSpec(**_said(spec.export)),
        recipe=_recipe(spec, platform),
        device="cuda" if platforms.has_gpu(platform) else "cpu",
        platform=platform,
        memory=_memory(spec, settings, platform),
        hub_endpoint=settings.hub_endpoint,
        allow_private_addresses=settings.allow_private_addresses,
        trainer_image=settings.trainer_image,
        server_image=settings.server_image,
        salt=meta.uid if spec.reuse == "Never" else "",
    )


def _said(model: BaseModel | None, *fields: str) -> dict[str, Any]:
    """The fields that the user set; the contract's own defaults fill the rest."""
    if model is None:
        return {}
    return model.model_dump(exclude_none=True, include=set(fields) or None)


def dataset(spec: FineTuneJobSpec) -> runspec.DatasetSpec:
    """How the rows are read; without the secret, which only the pod is given."""
    said = _said(spec.dataset)
    said.pop("token_secret_ref", None)
    return runspec.DatasetSpec.model_validate(said)


def _lora(spec: FineTuneJobSpec) -> runspec.LoraSpec:
    said = _said(spec.method.lora if spec.method else None)
    rank = said.get("rank", runspec.LoraSpec().rank)
    return runspec.LoraSpec.model_validate({"alpha": 2 * rank, **said})


def _training(spec: FineTuneJobSpec) -> runspec.TrainingSpec:
    said = _said(spec.training)
    if "max_steps" not in said:
        said.setdefault("epochs", DEFAULT_EPOCHS)
    return runspec.TrainingSpec.model_validate(said)


def _recipe(spec: FineTuneJobSpec, platform: str) -> runspec.Recipe:
    said = spec.runtime.recipe if spec.runtime else None
    if said and said != "auto":
        return said
    return "unsloth" if platforms.has_gpu(platform) else "trl"


def _memory(spec: FineTuneJobSpec, settings: Settings, platform: str) -> runspec.MemorySpec:
    """What is known before prepare has seen the model."""
    floor = settings.memory_floor_bytes if platforms.unified(platform) else DISCRETE_FLOOR
    return runspec.MemorySpec(host_bytes=sizes.parse(spec.memory) if spec.memory else 0, floor_bytes=floor)
