"""Posts Events, one after the other, beside the real work: telling about a change never delays the next one."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import aiohttp

from finetune_operator.cluster import events
from finetune_operator.cluster.client import ApiError
from finetune_operator.cluster.resources import key_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from finetune_operator.cluster.client import Client
    from finetune_operator.core.types import EventRecord, Manifest

MOST_WAITING = 10_000
_log = logging.getLogger(__name__)


class Teller:
    """What is told, in its order."""

    def __init__(self, client: Client, clock: Callable[[], datetime]) -> None:
        """Take the client and the clock."""
        self._client = client
        self._clock = clock
        self._waiting: asyncio.Queue[Manifest] = asyncio.Queue(MOST_WAITING)

    def tell(self, about: Manifest, records: Iterable[EventRecord]) -> None:
        """Post Events soon; the same ones about the same version of an object are told once."""
        for place, record in enumerate(records):
            try:
                self._waiting.put_nowait(events.manifest(about, record, place, self._clock()))
            except asyncio.QueueFull:
                _log.warning("%s: too many Events wait; this one is not told: %s", key_of(about), record.message)

    async def run(self) -> None:
        """Post whatever is told."""
        while True:
            event = await self._waiting.get()
            await self._post(event)
            self._waiting.task_done()

    async def flush(self) -> None:
        """Until everything is told."""
        await self._waiting.join()

    async def _post(self, event: Manifest) -> None:
        """An Event that cannot be posted is no reason to fail: the status says the same."""
        try:
            await self._client.create_event(event)
        except (ApiError, aiohttp.ClientError, TimeoutError) as error:
            about = event["involvedObject"]
            _log.info("%s/%s: Event %s not posted: %s", about["namespace"], about["name"], event["reason"], error)
