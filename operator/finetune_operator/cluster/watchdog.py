"""Compares the picture with the cluster, and notices when a watch has died without a word.

Every minute the metadata of everything that is watched is listed, which is cheap. What the list knows and no watch
has told for two rounds means a dead watch: the liveness probe fails, and Kubernetes starts the operator anew. What
is in the picture and not in the list for two rounds is gone: its deletion was missed while a watch reconnected.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import aiohttp

from finetune_operator.cluster.client import ApiError
from finetune_operator.cluster.resources import OWNERS, WATCHED, Key, Resource, key_of
from finetune_operator.cluster.store import version

if TYPE_CHECKING:
    from finetune_operator.cluster.client import Client
    from finetune_operator.cluster.observer import Observer
    from finetune_operator.cluster.queue import Queue

SECONDS = 60.0
RESYNC_ROUNDS = 5
LONGEST_WAIT = 300.0
"""A key that has waited for a worker this long means that the workers hang."""
_log = logging.getLogger(__name__)


class Watchdog:
    """What the liveness probe asks."""

    def __init__(self, client: Client, observer: Observer, queue: Queue, namespace: str | None) -> None:
        """Take the parts."""
        self._client = client
        self._observer = observer
        self._queue = queue
        self._namespace = namespace
        self._untold: dict[Key, int] = {}
        self._vanished: set[Key] = set()
        self._dead = ""

    def complaint(self) -> str:
        """Why the operator should be started anew; empty if all is well."""
        if self._dead:
            return self._dead
        if (seconds := self._queue.oldest()) > LONGEST_WAIT:
            return f"an object has waited for {seconds:.0f} s to be looked at"
        return ""

    async def run(self) -> None:
        """Look once a minute, and look at every object again every few minutes."""
        rounds = 0
        while True:
            await asyncio.sleep(SECONDS)
            rounds += 1
            try:
                await self.compare()
            except (ApiError, aiohttp.ClientError, TimeoutError) as error:
                _log.warning("watchdog: %s: %s", type(error).__name__, error)
            if rounds % RESYNC_ROUNDS == 0:
                self.resync()

    def resync(self) -> None:
        """Look at every object again: catches what no event has told."""
        for resource in OWNERS:
            for key in self._observer.store.keys(resource.kind):
                self._queue.add(key)

    async def compare(self) -> None:
        """One round over all kinds."""
        untold: dict[Key, int] = {}
        vanished: set[Key] = set()
        for resource in WATCHED:
            live = await self._list(resource)
            seen = self._observer.seen
            untold |= {key: rv for key, rv in live.items() if seen.get(key, 0) < rv}
            vanished |= {key for key in self._observer.store.keys(resource.kind) if key not in live}
        self._judge(untold)
        self._drop(vanished & self._vanished)
        self._untold, self._vanished = untold, vanished

    async def _list(self, resource: Resource) -> dict[Key, int]:
        pages = self._client.pages(resource, self._namespace, resource.selectors, metadata=True)
        return {key_of(item): version(item) async for page in pages for item in page}

    def _judge(self, untold: dict[Key, int]) -> None:
        """Untold a round ago, and that very change is untold still."""
        seen = self._observer.seen
        lost = [key for key, rv in self._untold.items() if key in untold and seen.get(key, 0) < rv]
        self._dead = f"no watch has told of {lost[0].kind} {lost[0]} for a minute" if lost else ""
        if self._dead:
            _log.error("watchdog: %s", self._dead)

    def _drop(self, keys: set[Key]) -> None:
        for key in keys:
            if found := self._observer.store.get(*key):
                _log.info("%s: %s was deleted, and no watch told of it", key, key.kind)
                self._observer.seen.pop(key, None)
                self._observer.gone(found)
