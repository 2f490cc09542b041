"""One pass at the largest shape before the first step: too little memory shows now, not in an hour."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import torch
from transformers import TrainerCallback

from finetune_trainer.train.random_state import RandomState

if TYPE_CHECKING:
    from finetune_trainer.contract.runspec import RunSpec

log = logging.getLogger("finetune")
GIB = 2**30


class WarmUp(TrainerCallback):  # type: ignore[misc]
    """Runs the probe when model and optimizer are ready; CUDA only, since a CPU has no such sudden end."""

    def __init__(self, spec: RunSpec, trainer: Any) -> None:
        """Takes the trainer for its model, prepared for mixed precision."""
        self._spec = spec
        self._trainer = trainer

    def on_train_begin(self, _args: Any, _state: Any, _control: Any, **_: Any) -> None:
        """Probe; gradients are thrown away and the random state goes back."""
        if self._spec.device != "cuda":
            return
        random = RandomState()
        try:
            largest_batch(self._trainer, self._spec.training.batch_size, self._spec.training.max_length)
        finally:
            self._trainer.model.zero_grad(set_to_none=True)
            random.restore()
        log.info(
            "Warm-up at the largest batch: %.1f GiB of device memory at the peak.",
            torch.cuda.max_memory_reserved() / GIB,
        )


def largest_batch(trainer: Any, rows: int, length: int) -> None:
    """Forward and backward over random tokens, all of them learned, as a training step does it.

    The Trainer calls ``train()`` on the model only in its first step, and a model that does not train recomputes
    nothing: without that call the probe would need the memory of a run without gradient checkpointing.
    """
    vocabulary = trainer.model.config.get_text_config().vocab_size
    ids = torch.randint(0, vocabulary, (rows, length), device=trainer.args.device)
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": ids}
    trainer.model_wrapped.train()
    with trainer.compute_loss_context_manager():
        loss = trainer.compute_loss(trainer.model_wrapped, inputs)
    trainer.accelerator.backward(loss)
