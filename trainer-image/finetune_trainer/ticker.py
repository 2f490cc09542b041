"""A thread that looks at something every few seconds."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable


class Ticker:
    """Calls ``look`` every ``interval`` seconds within a ``with`` block."""

    def __init__(self, name: str, interval: float, look: Callable[[], None]) -> None:
        """Nothing runs yet."""
        self._interval = interval
        self._look = look
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def __enter__(self) -> Self:
        """Start to look."""
        self._thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        """Look no more."""
        self._done.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._done.wait(self._interval):
            self._look()
