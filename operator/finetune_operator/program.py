"""The parts of the operator, put together and started in their order."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

import aiohttp
import kopf

from finetune_operator import web
from finetune_operator.cluster import crds
from finetune_operator.cluster.admission import Admission
from finetune_operator.cluster.client import ApiError, Client
from finetune_operator.cluster.connection import Connection, login
from finetune_operator.cluster.lookups import Lookups
from finetune_operator.cluster.nodes import Nodes
from finetune_operator.cluster.observer import Observer
from finetune_operator.cluster.queue import Queue
from finetune_operator.cluster.reconcile import Reconciler
from finetune_operator.cluster.resources import WATCHED
from finetune_operator.cluster.situation import Gatherer
from finetune_operator.cluster.store import Store
from finetune_operator.cluster.teller import Teller
from finetune_operator.cluster.watchdog import Watchdog
from finetune_operator.cluster.worker import Workers
from finetune_operator.handlers import login as login_handler
from finetune_operator.handlers import settings as kopf_settings
from finetune_operator.handlers import watches
from finetune_operator.progress.identity import Identity
from finetune_operator.progress.inbox import Inbox
from finetune_operator.progress.senders import Senders
from finetune_operator.progress.server import application
from finetune_operator.progress.tls import BrokenSecretError
from finetune_operator.settings import HEALTH_PORT, METRICS_PORT, PROGRESS_PORT

if TYPE_CHECKING:
    import ssl
    from collections.abc import Awaitable, Callable, Iterator

    from aiohttp.web import Application

    from finetune_operator.settings import OperatorSettings

IDENTITY = "finetune-operator"
RETRY_SECONDS = 5.0
LAST_SECONDS = 10.0
"""What is being written when a signal comes may take this long."""
_log = logging.getLogger(__name__)


def now() -> datetime:
    """The only clock."""
    return datetime.now(UTC)


class Program:
    """The whole operator."""

    def __init__(self, settings: OperatorSettings, client: Client) -> None:
        """Make the parts; nothing happens yet."""
        self._settings = settings
        self._client = client
        self._namespace = settings.watch_namespace
        self._inbox, self._queue, store = Inbox(), Queue(), Store()
        self._lookups = Lookups(client)
        self._observer = Observer(store, self._queue, self._inbox, self._lookups)
        self._nodes = Nodes(client, self._namespace, settings.core.gpu_resource)
        self._identity = Identity(client, settings.core.operator_namespace, settings.core.progress_url, now)
        self._watchdog = Watchdog(client, self._observer, self._queue, self._namespace)
        self._not_ready = "starting"

    async def run(self) -> None:
        """Start everything, and work until a signal comes or a part breaks."""
        async with AsyncExitStack() as stack:
            health = web.health(self._watchdog.complaint, lambda: self._not_ready)
            stack.push_async_callback((await web.serve(health, HEALTH_PORT)).cleanup)
            await self._prepare()
            for made, port, context in self._servers():
                stack.push_async_callback((await web.serve(made, port, context)).cleanup)
            self._not_ready = ""
            _log.info("ready: working for %s", self._namespace or "all namespaces")
            await self._work()

    async def _prepare(self) -> None:
        """What must be right before the first decision; what is wrong is said, and tried again."""
        for step in (self._check_crds, self._identity.ensure, self._read_nodes, self._fill):
            while complaint := await _complaint(step):
                self._not_ready = complaint
                _log.error("not ready: %s", complaint)
                await asyncio.sleep(RETRY_SECONDS)
        self._watchdog.resync()
        self._observer.admission.set()

    async def _check_crds(self) -> None:
        if complaint := await crds.complaint(self._client):
            raise NotReadyError(complaint)

    async def _read_nodes(self) -> None:
        await self._nodes.refresh()

    async def _fill(self) -> None:
        """A whole picture before the first decision; the watches start from the same objects."""
        for resource in WATCHED:
            async for page in self._client.pages(resource, self._namespace, resource.selectors):
                for manifest in page:
                    self._observer.store.put(manifest)

    def _servers(self) -> Iterator[tuple[Application, int, ssl.SSLContext | None]]:
        senders = Senders(self._client, self._observer.store)
        yield application(senders, self._inbox, self._queue), PROGRESS_PORT, self._identity.context
        yield web.metrics_of(self._observer.store), METRICS_PORT, None

    async def _work(self) -> None:
        """The watches end at SIGTERM and SIGINT; then what is being written is finished."""
        core = dataclasses.replace(self._settings.core, progress_ca=self._identity.ca)
        gatherer = Gatherer(self._observer.store, self._lookups, self._nodes, self._inbox, core)
        teller = Teller(self._client, now)
        workers = Workers(self._queue, Reconciler(self._client, self._observer, gatherer, teller, now))
        admission = Admission(self._client, self._observer, self._nodes, gatherer, teller)
        working = asyncio.create_task(workers.run())
        parts = (admission.run(now), teller.run(), self._watchdog.run(), self._identity.run(), self._watch())
        others = [asyncio.create_task(part) for part in parts]
        done, _ = await asyncio.wait([working, *others], return_when=asyncio.FIRST_COMPLETED)
        self._queue.close()
        await asyncio.wait([asyncio.gather(working, teller.flush())], timeout=LAST_SECONDS)
        for task in (working, *others):
            task.cancel()
        await asyncio.gather(working, *others, return_exceptions=True)
        for task in done:
            task.result()

    async def _watch(self) -> None:
        registry = kopf.OperatorRegistry()
        login_handler.register(registry)
        watches.register(registry, self._observer)
        await kopf.operator(
            registry=registry,
            settings=kopf_settings.settings(),
            standalone=True,
            # Said here, because kopf's own guess wants a user name, and uid 10001 has none.
            identity=cast("Any", IDENTITY),
            clusterwide=self._namespace is None,
            namespaces=[self._namespace] if self._namespace else [],
        )


class NotReadyError(Exception):
    """Something outside must be put right first."""


async def _complaint(step: Callable[[], Awaitable[None]]) -> str:
    """Run one step of the start; what is wrong, in a sentence, or nothing."""
    try:
        await step()
    except (NotReadyError, BrokenSecretError) as error:
        return str(error)
    except (ApiError, aiohttp.ClientError, TimeoutError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


async def run(settings: OperatorSettings) -> None:
    """Connect, and run the operator."""
    connection = Connection(login())
    try:
        await Program(settings, Client(connection)).run()
    finally:
        await connection.close()
