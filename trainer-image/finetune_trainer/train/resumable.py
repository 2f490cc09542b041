"""Makes a Trainer save through our CheckpointStore, and go on as if nothing had happened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from transformers import Trainer

from finetune_trainer.train.random_state import RandomState

if TYPE_CHECKING:
    from finetune_trainer.train.checkpoints import CheckpointStore

BYTES_PER_TRAINED = 12
"""An fp32 weight and its two moments."""
ROOM = 64 * 2**20
"""Tokenizer, trainer state and random state."""


class Resumable(Trainer):  # type: ignore[misc]
    """Mixed into a recipe's trainer, whose output folder is the store's staging folder."""

    store: CheckpointStore

    def evaluate(self, *args: Any, **kwargs: Any) -> Any:
        """Evaluate without a trace: a run that resumes behind an evaluation must draw the same random numbers."""
        random = RandomState()
        try:
            return super().evaluate(*args, **kwargs)
        finally:
            random.restore()

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        """Write into staging, then commit. TRL's own override is left out: it only adds a model card."""
        step = self.state.global_step
        if (self.store.folder / f"checkpoint-{step}").exists():  # saved before an evaluation, then asked to stop
            return
        trained = sum(parameter.numel() for parameter in self.model.parameters() if parameter.requires_grad)
        self.store.require_space(trained * BYTES_PER_TRAINED + ROOM)
        self.store.clear_staging()
        Trainer._save_checkpoint(self, model, trial)  # noqa: SLF001 - the point of this class
        self.store.commit(step)
