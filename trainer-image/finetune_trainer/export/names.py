"""From the names of a loaded model's parameters to the names in its files: mostly the same, but not always."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import torch

from finetune_trainer.stage import StageError

if TYPE_CHECKING:
    from finetune_trainer.export.checkpoint import Checkpoint

_EMBEDDINGS = ("lm_head.weight", "embed_tokens.weight")


def stored_names(loaded: list[str], base: Checkpoint) -> list[str]:
    """The name in the files for each name of the loaded model."""
    stored = {tensor.name for tensor in base.tensors()}
    _refuse_tied(loaded, base)
    same = {name: name for name in stored}
    mapping = same if stored.issuperset(loaded) else same | _converted(base, stored)
    missing = [name for name in loaded if name not in mapping]
    if missing:
        raise StageError(
            "MergeNotProven", f"The adapter changes {missing[0]}, which is not in {base.folder} ({len(missing)} such)."
        )
    return [mapping[name] for name in loaded]


def _refuse_tied(loaded: list[str], base: Checkpoint) -> None:
    """A tied embedding is one tensor with two uses: changing it for one changes both."""
    config = json.loads((base.folder / "config.json").read_text(encoding="utf-8"))
    tied = config.get("tie_word_embeddings", config.get("text_config", {}).get("tie_word_embeddings", False))
    found = [name for name in loaded if name.endswith(_EMBEDDINGS)]
    if tied and found:
        raise StageError(
            "MergeNotProven",
            f"The adapter changes {found[0]}, but this model ties its embeddings: take it out of method.lora.targets.",
        )


def _converted(base: Checkpoint, stored: set[str]) -> dict[str, str]:
    """Loaded name → stored name by transformers' own conversion, for tensors that it only renames."""
    from transformers import AutoConfig, AutoModelForCausalLM  # noqa: PLC0415 - seconds, for the few models that need it
    from transformers.conversion_mapping import get_model_conversion_mapping  # noqa: PLC0415
    from transformers.core_model_loading import WeightConverter, rename_source_key  # noqa: PLC0415

    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(base.folder))
    transforms = get_model_conversion_mapping(model)
    converters = [transform for transform in transforms if isinstance(transform, WeightConverter)]
    renamings = [transform for transform in transforms if transform not in converters]
    state = model.state_dict()
    renamed = (
        (name, *rename_source_key(name, renamings, converters, model.base_model_prefix, state))
        for name in sorted(stored)
    )
    return {loaded: name for name, loaded, converter in renamed if converter is None}
