"""What prepare learns about the base from config.json and the headers of its shards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from finetune_trainer.contract.results import ModelFacts
from finetune_trainer.stage import StageError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from finetune_trainer.contract.runspec import LoraSpec, ModelSpec, RunSpec
    from finetune_trainer.sources.models import BaseModel
    from finetune_trainer.sources.shards import Tensor

_UNTRAINED = {"visual", "vision_tower", "vision_model", "audio_tower", "multi_modal_projector", "mtp", "experts"}
"""Parts of a checkpoint whose modules LoRA's targets do not mean: other senses, draft heads, and fused experts."""
_EXPERTS_TOO = {"gate_proj", "up_proj", "down_proj"}
_NO_LINEAR = ("norm", "embed", "conv")
_SUFFIX = ".weight"
_MATRIX = 2


def check_config(config: dict[str, Any], model: ModelSpec) -> None:
    """Refuse what cannot be trained, before the weights are fetched."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES  # noqa: PLC0415 - takes seconds

    kind = config.get("model_type")
    if kind not in CONFIG_MAPPING_NAMES and not model.trust_remote_code:
        raise StageError(
            "ModelUnsupported",
            f"{model.source} is of model type '{kind}', which the installed transformers does not know.",
        )
    if "quantization_config" in config:
        method = config["quantization_config"].get("quant_method", "unknown")
        raise StageError(
            "ModelUnsupported", f"{model.source} is stored quantized ({method}); name its 16-bit repository."
        )


def modules(names: Iterable[str]) -> dict[str, str]:
    """Tensor of a module's weight → the last part of the module's path, for modules that may be trained."""
    weights = [name for name in names if name.endswith(_SUFFIX) and not _UNTRAINED & set(name.split("."))]
    return {name: name.removesuffix(_SUFFIX).rpartition(".")[2] for name in weights}


def check_targets(names: Collection[str], spec: RunSpec) -> None:
    """Each target that is asked for must be there, and none may be what the export cannot merge."""
    _check_experts(names, spec)
    found = set(modules(names).values())
    absent = [target for target in spec.lora.targets if target not in found]
    if absent:
        linear = sorted(name for name in found if not name.isdigit() and not any(part in name for part in _NO_LINEAR))
        raise StageError(
            "TargetNotFound", f"The model has no module named {', '.join(absent)}. It has: {', '.join(linear)}."
        )


def _check_experts(names: Iterable[str], spec: RunSpec) -> None:
    """Unsloth takes these names for the experts' too, and hours later no adapter on experts could be merged."""
    wanted = [target for target in spec.lora.targets if target in _EXPERTS_TOO]
    if spec.recipe == "unsloth" and wanted and any("experts" in name.split(".") for name in names):
        raise StageError(
            "InvalidSpec",
            f"method.lora.targets: {spec.model.source} is a mixture of experts, where {', '.join(wanted)} would put "
            "adapters on every expert, which cannot be exported. Name attention modules, for example q_proj, k_proj, "
            "v_proj and o_proj.",
        )


def trainable(tensors: list[Tensor], lora: LoraSpec) -> int:
    """Parameters of the adapter: rank x (in + out) for each matrix of a target."""
    targets = modules(tensor.name for tensor in tensors)
    chosen = [one for one in tensors if targets.get(one.name) in lora.targets and len(one.shape) == _MATRIX]
    return sum(lora.rank * sum(tensor.shape) for tensor in chosen)


def model_facts(model: BaseModel, config: dict[str, Any], tensors: list[Tensor], lora: LoraSpec) -> ModelFacts:
    """Everything that the memory plan and the status want to know."""
    text = config.get("text_config", config)
    heads = text.get("num_attention_heads") or 1
    hidden = text.get("hidden_size") or 0
    return ModelFacts(
        revision=model.revision,
        path=str(model.folder),
        architecture=(config.get("architectures") or [""])[0],
        parameters=sum(tensor.elements for tensor in tensors),
        bytes=sum(tensor.bytes for tensor in tensors),
        largest_tensor_bytes=max(tensor.bytes for tensor in tensors),
        hidden_size=hidden,
        layers=text.get("num_hidden_layers") or 0,
        vocab_size=text.get("vocab_size") or 0,
        intermediate_size=text.get("intermediate_size") or 0,
        key_value_heads=text.get("num_key_value_heads") or heads,
        head_dim=text.get("head_dim") or hidden // heads,
        trainable_parameters=trainable(tensors, lora),
    )
