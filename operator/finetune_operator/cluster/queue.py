"""A queue of keys: each at most once, never two workers on one key, with times to look again and back-off on errors."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from finetune_operator import metrics

if TYPE_CHECKING:
    from finetune_operator.cluster.resources import Key

FIRST_BACKOFF, LONGEST_BACKOFF = 0.5, 120.0


class Queue:
    """Keys that wait to be looked at."""

    def __init__(self) -> None:
        """Begin empty."""
        self._waiting: dict[Key, float] = {}
        self._busy: set[Key] = set()
        self._again: set[Key] = set()
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        self._failures: dict[Key, int] = {}
        self._wake = asyncio.Event()
        self._closed = False

    def add(self, key: Key) -> None:
        """Look at it soon; if somebody is at it right now, once more afterwards."""
        if key in self._busy:
            self._again.add(key)
            return
        self._waiting.setdefault(key, asyncio.get_running_loop().time())
        self._wake.set()
        metrics.QUEUE_DEPTH.set(len(self._waiting))

    def add_after(self, key: Key, seconds: float) -> None:
        """Look at it in a while; an earlier time wins."""
        loop = asyncio.get_running_loop()
        if timer := self._timers.get(key):
            if not timer.cancelled() and timer.when() <= loop.time() + seconds:
                return
            timer.cancel()
        self._timers[key] = loop.call_later(seconds, self._due, key)

    def close(self) -> None:
        """Nobody gets a key any more."""
        self._closed = True
        self._wake.set()

    async def take(self) -> Key | None:
        """The key that has waited longest; it is the caller's until done(). None: the queue is closed."""
        while not self._waiting and not self._closed:
            self._wake.clear()
            await self._wake.wait()
        if self._closed:
            return None
        key = next(iter(self._waiting))
        del self._waiting[key]
        self._busy.add(key)
        metrics.QUEUE_DEPTH.set(len(self._waiting))
        return key

    def done(self, key: Key) -> None:
        """The caller is through with it."""
        self._busy.discard(key)
        if key in self._again:
            self._again.discard(key)
            self.add(key)

    def failed(self, key: Key) -> float:
        """Look again after a pause that doubles each time; says how long."""
        count = self._failures[key] = self._failures.get(key, 0) + 1
        seconds = min(FIRST_BACKOFF * 2.0 ** (count - 1), LONGEST_BACKOFF)
        self.add_after(key, seconds)
        return seconds

    def settled(self, key: Key) -> None:
        """It went well: the next error begins with a short pause."""
        self._failures.pop(key, None)

    def forget(self, key: Key) -> None:
        """The object is gone."""
        self.settled(key)
        if timer := self._timers.pop(key, None):
            timer.cancel()

    def oldest(self) -> float:
        """Seconds that the first key has waited."""
        first = next(iter(self._waiting.values()), None)
        return 0.0 if first is None else asyncio.get_running_loop().time() - first

    def _due(self, key: Key) -> None:
        self._timers.pop(key, None)
        self.add(key)
