"""Asking a training to stop: by SIGTERM or because the host runs out of memory."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

from finetune_trainer.stage import StageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType


class Stop:
    """A request to stop, with its reason. The training loop looks at it after every micro-batch."""

    def __init__(self) -> None:
        """Nobody has asked yet."""
        self.error: StageError | None = None
        self.in_loop = False
        """True while the training loop runs and will look; outside of it, SIGTERM ends the work at once."""

    def request(self, reason: str, message: str) -> None:
        """Ask; the first reason stays."""
        self.error = self.error or StageError(reason, message)

    @contextmanager
    def looked_at(self) -> Iterator[None]:
        """Within this block somebody looks at the request."""
        self.in_loop = True
        try:
            yield
        finally:
            self.in_loop = False

    @contextmanager
    def on_sigterm(self) -> Iterator[None]:
        """Within this block SIGTERM is a request to stop."""
        before = signal.signal(signal.SIGTERM, self._signalled)
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, before)

    def _signalled(self, _number: int, _frame: FrameType | None) -> None:
        self.request("Interrupted", "The pod was asked to stop.")
        if not self.in_loop:
            raise StageError("Interrupted", "The pod was asked to stop outside of the training steps.")
