"""Writes down every step: losses.jsonl, one line for people, one report to the operator."""

from __future__ import annotations

import json
import logging
import math
import statistics
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from transformers import TrainerCallback

from finetune_trainer.stage import StageError
from finetune_trainer.train.progress import make_report

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from finetune_trainer.train.progress import Reporter

log = logging.getLogger("finetune")

PRINT_SECONDS = 2.0
"""Between two lines for people, but for the first and the last."""


class Losses:
    """losses.jsonl: one line per step, in order, also across attempts."""

    def __init__(self, path: Path, resumed_step: int) -> None:
        """Keep what a former attempt wrote up to the step that this one goes on from."""
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        kept = [row for row in map(_parse, lines) if row and row["step"] <= resumed_step]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(row) + "\n" for row in kept), encoding="utf-8")
        self._path = path
        self._last_line_at = path.stat().st_size
        self.first: float | None = kept[0]["loss"] if kept else None
        self.last: dict[str, Any] = kept[-1] if kept else {}

    def add(self, row: dict[str, Any]) -> None:
        """Append one step."""
        self._last_line_at = self._path.stat().st_size
        self.first = row["loss"] if self.first is None else self.first
        self._write(row)

    def complete(self, **more: float) -> None:
        """Add numbers to the last step's line, which are known later (its evaluation)."""
        if self.last:
            self._write(self.last | more)

    def _write(self, row: dict[str, Any]) -> None:
        with self._path.open("r+", encoding="utf-8") as file:
            file.truncate(self._last_line_at)
            file.seek(self._last_line_at)
            file.write(json.dumps(row) + "\n")
        self.last = row


def _parse(line: str) -> dict[str, Any] | None:
    """A row, or None for the half line of a process that was killed."""
    try:
        row: dict[str, Any] = json.loads(line)
    except ValueError:
        return None
    return row


class Journal(TrainerCallback):  # type: ignore[misc]
    """Follows a training, step by step."""

    def __init__(
        self, losses: Losses, reporter: Reporter, resumed_step: int | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """``resumed_step`` is None for a run from the beginning."""
        self.losses = losses
        self._reporter = reporter
        self._resumed_step = resumed_step
        self._clock = clock
        self._durations: deque[float] = deque(maxlen=20)
        self._seconds_before: float = losses.last.get("seconds", 0.0)
        self._began = self._step_began = clock()
        self._tokens_before = 0
        self._printed_at = -math.inf
        self.tokens_per_second: float | None = None
        self.eval_loss: float | None = None
        self.evaluated_step = -1

    @property
    def seconds(self) -> float:
        """Spent on steps, all attempts together."""
        return self._seconds_before + self._clock() - self._began

    def on_train_begin(self, _args: Any, state: Any, _control: Any, **_: Any) -> None:
        """Say where this attempt starts."""
        self._began = self._step_began = self._clock()
        self._tokens_before = state.num_input_tokens_seen
        self._send(state, {})

    def on_step_begin(self, _args: Any, _state: Any, _control: Any, **_: Any) -> None:
        """A step starts."""
        self._step_began = self._clock()

    def on_step_end(self, _args: Any, state: Any, _control: Any, **_: Any) -> None:
        """A step is done."""
        self._durations.append(self._clock() - self._step_began)
        elapsed = self._clock() - self._began
        self.tokens_per_second = (state.num_input_tokens_seen - self._tokens_before) / max(elapsed, 1e-9)

    def on_log(self, _args: Any, state: Any, _control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
        """The loss of a step is known."""
        if not logs or "loss" not in logs:
            return
        loss, rate = float(logs["loss"]), float(logs["learning_rate"])
        if not math.isfinite(loss):
            raise StageError(
                "StageFailed", f"The loss became {loss} at step {state.global_step}: lower training.learningRate."
            )
        self.losses.add(
            {"step": state.global_step, "loss": loss, "learningRate": rate, "seconds": round(self.seconds, 3)}
        )
        self._send(state, {"loss": loss, "learningRate": rate})
        self._print(state, loss)

    def on_evaluate(
        self, _args: Any, state: Any, _control: Any, metrics: dict[str, Any] | None = None, **_: Any
    ) -> None:
        """The loss on the held-out rows is known."""
        self.eval_loss = float((metrics or {})["eval_loss"])
        self.evaluated_step = state.global_step
        self.losses.complete(evalLoss=self.eval_loss)
        log.info("step %d/%d  loss on held-out rows %.4f", state.global_step, state.max_steps, self.eval_loss)
        self._send(state, {"loss": self.losses.last.get("loss"), "learningRate": self.losses.last.get("learningRate")})

    def _eta(self, state: Any) -> float | None:
        if not self._durations:
            return None
        remaining: int = state.max_steps - state.global_step
        return statistics.median(self._durations) * remaining

    def _send(self, state: Any, numbers: dict[str, float | None]) -> None:
        more = {
            "epoch": state.epoch,
            "evalLoss": self.eval_loss,
            "tokensPerSecond": self.tokens_per_second,
            "resumedFromStep": self._resumed_step,
        }
        self._reporter.send(make_report(state.global_step, state.max_steps, self._eta(state), numbers | more))

    def _print(self, state: Any, loss: float) -> None:
        last = state.global_step >= state.max_steps
        if not last and self._clock() - self._printed_at < PRINT_SECONDS:
            return
        self._printed_at = self._clock()
        eta = self._eta(state) or 0.0
        speed = self.tokens_per_second or 0.0
        log.info(
            "step %d/%d  loss %.4f  %.0f tokens/s  %.0f s left", state.global_step, state.max_steps, loss, speed, eta
        )
