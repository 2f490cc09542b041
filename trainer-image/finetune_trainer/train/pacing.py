"""When to save, and how to leave in good order."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from transformers import TrainerCallback

from finetune_trainer.train.random_state import RandomState

if TYPE_CHECKING:
    from collections.abc import Callable

    from finetune_trainer.train.stopping import Stop

SAVE_SECONDS = 600.0
"""Between two checkpoints, if saveEverySteps is not said."""
FRESH_SECONDS = 30.0
"""A checkpoint younger than this is good enough to go into an evaluation with."""


class Pacing(TrainerCallback):  # type: ignore[misc]
    """Asks for checkpoints in time and before every evaluation; on a stop request saves and ends the loop.

    A stop between two micro-batches gives up the unfinished step: its weights are those of the last whole step, and
    the random state goes back to where the step began, so that the resumed run computes the very same step.
    """

    def __init__(self, every: int | None, stop: Stop, clock: Callable[[], float] = time.monotonic) -> None:
        """``every`` is saveEverySteps."""
        self._every = every
        self._stop = stop
        self._clock = clock
        self._saved_at = clock()
        self._random = RandomState()

    def on_train_begin(self, _args: Any, _state: Any, _control: Any, **_: Any) -> None:
        """The first checkpoint is due an interval after the start."""
        self._saved_at = self._clock()

    def on_step_begin(self, _args: Any, _state: Any, _control: Any, **_: Any) -> None:
        """Remember where the step began."""
        self._random = RandomState()

    def on_substep_end(self, _args: Any, state: Any, control: Any, **_: Any) -> None:
        """Between two micro-batches."""
        if self._stop.error:
            self._random.restore()
            self._leave(state, control)

    def on_step_end(self, _args: Any, state: Any, control: Any, **_: Any) -> None:
        """After a whole step."""
        if self._stop.error:
            self._leave(state, control)
        elif self._due(state):
            control.should_save = True

    def on_epoch_end(self, _args: Any, _state: Any, control: Any, **_: Any) -> None:
        """Whoever must leave does not evaluate first."""
        if self._stop.error:
            control.should_evaluate = False

    def on_prediction_step(self, _args: Any, _state: Any, _control: Any, **_: Any) -> None:
        """An evaluation is simply given up: a checkpoint was made before it."""
        if self._stop.error:
            raise self._stop.error

    def on_save(self, _args: Any, _state: Any, _control: Any, **_: Any) -> None:
        """A checkpoint was made."""
        self._saved_at = self._clock()

    def _leave(self, state: Any, control: Any) -> None:
        control.should_save = state.global_step > 0
        control.should_training_stop = True

    def _due(self, state: Any) -> bool:
        age = self._clock() - self._saved_at
        if state.global_step >= state.max_steps:
            return True
        if self._every is not None:
            return bool(state.global_step % self._every == 0)
        ends_epoch = float(state.epoch).is_integer()
        return age >= (FRESH_SECONDS if ends_epoch else SAVE_SECONDS)
