"""Notices a training that makes no more steps."""

from __future__ import annotations

import faulthandler
import os
import statistics
import sys
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from transformers import TrainerCallback

from finetune_trainer.stage import StageError, report_failure
from finetune_trainer.ticker import Ticker

if TYPE_CHECKING:
    from collections.abc import Callable

    from finetune_trainer.contract.paths import RunPaths

FIRST_STEP_SECONDS = 1200.0
"""The first step compiles kernels."""
LEAST_SECONDS = 600.0
MEDIANS = 10
"""A step may take this many times the usual."""
LOOK_SECONDS = 5.0


class Watchdog(TrainerCallback):  # type: ignore[misc]
    """Every sign of life is a beat; too long without one calls ``stalled``."""

    def __init__(self, stalled: Callable[[float], None], clock: Callable[[], float] = time.monotonic) -> None:
        """``stalled`` gets the seconds since the last beat."""
        self._stalled = stalled
        self._clock = clock
        self._beat_at = clock()
        self._steps: deque[float] = deque(maxlen=50)
        self._step_began = clock()

    def ticker(self) -> Ticker:
        """The thread that looks."""
        self._beat()
        return Ticker("watchdog", LOOK_SECONDS, self.look)

    @property
    def patience(self) -> float:
        """Seconds without a beat that are still fine."""
        if not self._steps:
            return FIRST_STEP_SECONDS
        return max(LEAST_SECONDS, MEDIANS * statistics.median(self._steps))

    def look(self) -> None:
        """Is it alive?"""
        silent = self._clock() - self._beat_at
        if silent > self.patience:
            self._stalled(silent)

    def on_step_begin(self, _args: Any, _state: Any, _control: Any, **_: Any) -> None:
        """A step starts."""
        self._step_began = self._clock()
        self._beat()

    def on_step_end(self, _args: Any, _state: Any, _control: Any, **_: Any) -> None:
        """A step is done."""
        self._steps.append(self._clock() - self._step_began)
        self._beat()

    def on_substep_end(self, _args: Any, _state: Any, _control: Any, **_: Any) -> None:
        """A micro-batch is done."""
        self._beat()

    def on_prediction_step(self, _args: Any, _state: Any, _control: Any, **_: Any) -> None:
        """A batch of the evaluation is done."""
        self._beat()

    def on_save(self, _args: Any, _state: Any, _control: Any, **_: Any) -> None:
        """A checkpoint is written."""
        self._beat()

    def _beat(self) -> None:
        self._beat_at = self._clock()


def give_up(paths: RunPaths, silent: float) -> None:
    """Show where every thread hangs, say why, and end the process: nothing in it can be trusted to end by itself."""
    faulthandler.dump_traceback(file=sys.stderr, all_threads=True)
    error = StageError("Stalled", f"No step for {silent:.0f} s; the log shows where each thread was.")
    os._exit(report_failure(paths, error))
