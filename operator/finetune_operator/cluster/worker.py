"""Workers that take keys from the queue, one object at a time each, and never give up on an error."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import aiohttp

from finetune_operator import metrics
from finetune_operator.cluster.client import ApiError

if TYPE_CHECKING:
    from finetune_operator.cluster.queue import Queue
    from finetune_operator.cluster.reconcile import Reconciler
    from finetune_operator.cluster.resources import Key

WORKERS = 16
PATIENCE = 5
"""Looks in a row that found something to do; after that an object that does not settle is slowed down."""
LONGEST_PAUSE = 60.0
_log = logging.getLogger(__name__)


class Workers:
    """Looks at objects whenever something has changed."""

    def __init__(self, queue: Queue, reconcile: Reconciler) -> None:
        """Take the queue and what is done with its keys."""
        self._queue = queue
        self._reconcile = reconcile
        self._restless: dict[Key, int] = {}

    async def run(self) -> None:
        """Work until the queue is closed; what is being looked at then is finished."""
        async with asyncio.TaskGroup() as group:
            for number in range(WORKERS):
                group.create_task(self._work(), name=f"worker {number}")

    async def _work(self) -> None:
        while key := await self._queue.take():
            try:
                await self._look(key)
            finally:
                self._queue.done(key)

    async def _look(self, key: Key) -> None:
        try:
            with metrics.RECONCILE_SECONDS.labels(key.kind).time():
                again = await self._reconcile(key)
        except (ApiError, aiohttp.ClientError, TimeoutError) as error:
            self._failed(key, error, f"{type(error).__name__}: {error}")
        except Exception as error:  # noqa: BLE001 - a fault with one object must not stop the others' work
            self._failed(key, error, "this is a fault in the operator")
            _log.exception("%s: trace", key)
        else:
            self._succeeded(key, again)

    def _succeeded(self, key: Key, again: float | None) -> None:
        self._queue.settled(key)
        if again == 0:
            self._queue.add_after(key, self._pause(key))
            return
        self._restless.pop(key, None)
        if again is not None:
            self._queue.add_after(key, again)

    def _pause(self, key: Key) -> float:
        """None at first: a plan is repeated until there is nothing to do."""
        count = self._restless[key] = self._restless.get(key, 0) + 1
        if count <= PATIENCE:
            return 0.0
        _log.warning("%s: does not settle: it was changed %d times in a row", key, count)
        return min(2.0 ** (count - PATIENCE), LONGEST_PAUSE)

    def _failed(self, key: Key, error: Exception, why: str) -> None:
        metrics.ERRORS.labels(key.kind, type(error).__name__).inc()
        seconds = self._queue.failed(key)
        _log.warning("%s: %s; trying again in %.0f s", key, why, seconds)
