"""The adapter: where it may sit, and how it is written."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import torch

from finetune_trainer.stage import StageError

if TYPE_CHECKING:
    from collections.abc import Collection

    from finetune_trainer.train.job import TrainJob


def require_targets(model: Any, targets: list[str], also: Collection[str] = ()) -> None:
    """Every target must be a linear module of the model, or in ``also``; PEFT alone would pass over one that is not."""
    linear = sorted(
        {name.rpartition(".")[2] for name, module in model.named_modules() if isinstance(module, torch.nn.Linear)}
    )
    unknown = [target for target in targets if target not in {*linear, *also}]
    if unknown:
        raise StageError(
            "TargetNotFound", f"The model has no linear module {', '.join(unknown)}; it has {', '.join(linear)}."
        )


def save_adapter(model: Any, job: TrainJob) -> None:
    """Write the adapter in PEFT's format, whole or not at all, with the base's public name in it."""
    partial = job.adapter.with_name("adapter.partial")
    shutil.rmtree(partial, ignore_errors=True)
    shutil.rmtree(job.adapter, ignore_errors=True)
    model.active_peft_config.base_model_name_or_path = job.spec.model.source.removeprefix("hf://").partition("@")[0]
    # Never look at the base's own files to decide about embeddings: they are not trained.
    model.save_pretrained(partial, save_embedding_layers=False)
    partial.replace(job.adapter)
