"""A LoRA adapter as PEFT saves it: one update for each tensor of the base that it changes."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from safetensors import safe_open
from safetensors.torch import load_file

from finetune_trainer.export.names import stored_names
from finetune_trainer.stage import StageError

if TYPE_CHECKING:
    from pathlib import Path

    import torch

    from finetune_trainer.export.checkpoint import Checkpoint

WEIGHTS = "adapter_model.safetensors"
CONFIG = "adapter_config.json"
_PREFIX = "base_model.model."
_A, _B = ".lora_A.weight", ".lora_B.weight"
_NOT_MERGED = (
    "fan_in_fan_out",
    "use_dora",
    "lora_bias",
    "rank_pattern",
    "alpha_pattern",
    "modules_to_save",
    "target_parameters",
)
"""Settings of PEFT that change what Δ is; an adapter with one of them is refused rather than merged wrongly."""


@dataclass(frozen=True)
class Update:
    """W becomes W + scale · B · A."""

    tensor: str
    """Name in the base's files."""
    a: torch.Tensor
    b: torch.Tensor
    scale: float


def read_adapter(folder: Path, base: Checkpoint) -> dict[str, Update]:
    """Every update, by the name of the base's tensor."""
    scale = _scale(read_config(folder))
    weights = load_file(folder / WEIGHTS)
    modules = _modules(weights)
    names = stored_names([f"{module.removeprefix(_PREFIX)}.weight" for module in modules], base)
    updates = (
        Update(name, weights[module + _A].float(), weights[module + _B].float(), scale)
        for module, name in zip(modules, names, strict=True)
    )
    return {update.tensor: update for update in updates}


def count_modules(folder: Path) -> int:
    """How many modules the adapter changes, counted from the file alone."""
    with safe_open(folder / WEIGHTS, framework="pt") as file:
        return sum(key.endswith(_A) for key in file.keys())  # noqa: SIM118 - not a dict


def read_config(folder: Path) -> dict[str, Any]:
    """PEFT's settings of this adapter, if we can merge what they describe."""
    config: dict[str, Any] = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    strange = [name for name in _NOT_MERGED if config.get(name)]
    if config.get("peft_type") != "LORA" or config.get("bias", "none") != "none" or strange:
        raise StageError(
            "MergeNotProven",
            f"{folder / CONFIG} asks for what the merge does not cover: {strange or 'not plain LoRA'}.",
        )
    return config


def _scale(config: dict[str, Any]) -> float:
    rank, alpha = config["r"], config["lora_alpha"]
    return float(alpha / math.sqrt(rank) if config.get("use_rslora") else alpha / rank)


def _modules(weights: dict[str, torch.Tensor]) -> list[str]:
    """The modules that have an A and a B; any other key is one that we would leave out in silence."""
    modules = sorted(key.removesuffix(_A) for key in weights if key.endswith(_A))
    known = {module + end for module in modules for end in (_A, _B)}
    if known != set(weights):
        raise StageError(
            "MergeNotProven", f"The adapter has keys that the merge does not know: {sorted(known ^ set(weights))[:3]}."
        )
    return modules
