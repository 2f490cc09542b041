"""The one task that gives out memory and GPUs: for all objects at once, never from within a look at one of them."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import aiohttp

from finetune_operator.cluster.client import CONFLICT, NOT_FOUND, ApiError
from finetune_operator.cluster.resources import key_of
from finetune_operator.core import admission

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import datetime

    from finetune_operator.cluster.client import Client
    from finetune_operator.cluster.nodes import Nodes
    from finetune_operator.cluster.observer import Observer
    from finetune_operator.cluster.situation import Gatherer
    from finetune_operator.cluster.teller import Teller
    from finetune_operator.core.types import Decision, Facts, Holder, Manifest

PAUSE = 0.2
"""Between rounds: a burst of events makes one round."""
WAITING_SECONDS, IDLE_SECONDS = 10.0, 60.0
"""How often nodes are read while somebody waits, and otherwise."""
_log = logging.getLogger(__name__)


class Admission:
    """Rounds of decisions, woken by events."""

    def __init__(self, client: Client, observer: Observer, nodes: Nodes, gatherer: Gatherer, teller: Teller) -> None:
        """Take the parts."""
        self._client = client
        self._observer = observer
        self._nodes = nodes
        self._gatherer = gatherer
        self._teller = teller
        self._wake = observer.admission
        self._known: dict[str, tuple[str, Holder | None]] = {}
        self._read_at = 0.0
        self._waiting = False

    async def run(self, clock: Callable[[], datetime]) -> None:
        """Decide whenever something may have changed."""
        while True:
            try:
                async with asyncio.timeout(WAITING_SECONDS if self._waiting else IDLE_SECONDS):
                    await self._wake.wait()
            except TimeoutError:
                await self._guarded(self._read_nodes())
            self._wake.clear()
            await self._guarded(self.round(clock))
            await asyncio.sleep(PAUSE)

    async def round(self, clock: Callable[[], datetime]) -> None:
        """Look at everybody, decide, and write what was decided."""
        manifests = list(self._observer.store.owners())
        holders = self._holders(manifests, self._gatherer.without_lookups())
        self._waiting = any(holder.node is None for holder in holders)
        if not self._waiting:
            return
        if asyncio.get_running_loop().time() - self._read_at > WAITING_SECONDS:
            await self._read_nodes()
        facts = self._gatherer.without_lookups()
        by_uid = {manifest["metadata"]["uid"]: manifest for manifest in manifests}
        for decision in admission.admit(self._holders(manifests, facts), facts.nodes, facts.settings):
            await self._write(by_uid[decision.holder.uid], decision, clock())

    def _holders(self, manifests: list[Manifest], facts: Facts) -> list[Holder]:
        """Who holds or waits; read anew only for objects that have changed."""
        known = {}
        for manifest in manifests:
            meta = manifest["metadata"]
            version, holder = self._known.get(meta["uid"], ("", None))
            if version != meta["resourceVersion"]:
                holder = admission.holder_of(manifest, facts)
            known[meta["uid"]] = (meta["resourceVersion"], holder)
        self._known = known
        return [holder for _, holder in known.values() if holder]

    async def _write(self, manifest: Manifest, decision: Decision, now: datetime) -> None:
        """Write a hold, or why there is none, into exactly the object that was looked at."""
        patch = admission.status_patch(manifest, decision, now)
        if patch is None:
            return
        key, version = key_of(manifest), manifest["metadata"]["resourceVersion"]
        try:
            written = await self._client.patch_status(key, patch, version)
        except ApiError as error:
            if error.status not in {CONFLICT, NOT_FOUND}:
                raise
            self._wake.set()
            return
        self._observer.wrote(written, by=None)
        if decision.node:
            _log.info("%s: admitted on node %s", key, decision.node)
        if record := admission.event_of(manifest, decision):
            self._teller.tell(written, [record])

    async def _read_nodes(self) -> None:
        self._read_at = asyncio.get_running_loop().time()
        if await self._nodes.refresh():
            self._known.clear()

    async def _guarded(self, work: Awaitable[None]) -> None:
        """What fails now is tried again at the next round, which is then at most WAITING_SECONDS away."""
        try:
            await work
        except (ApiError, aiohttp.ClientError, TimeoutError) as error:
            self._waiting = True
            _log.warning("admission: %s: %s", type(error).__name__, error)
        except Exception:  # noqa: BLE001 - one bad round must not end all admission
            self._waiting = True
            _log.exception("admission: this is a fault in the operator")
