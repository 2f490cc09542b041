"""The three small web servers: health for the kubelet, metrics for Prometheus, progress for trainers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import web

from finetune_operator import metrics

if TYPE_CHECKING:
    import ssl
    from collections.abc import Awaitable, Callable

    from finetune_operator.cluster.store import Store

HOST = "0.0.0.0"  # noqa: S104 - a pod's servers listen for everybody; who may ask is checked
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def health(alive: Callable[[], str], ready: Callable[[], str]) -> web.Application:
    """/healthz and /readyz: each asks for a complaint, and an empty one means that all is well."""
    made = web.Application()
    made.router.add_get("/healthz", _check(alive))
    made.router.add_get("/readyz", _check(ready))
    return made


def metrics_of(store: Store) -> web.Application:
    """/metrics."""

    async def scrape(_request: web.Request) -> web.Response:
        metrics.observe(store.owners())
        return web.Response(body=metrics.scrape(), headers={"Content-Type": CONTENT_TYPE})

    made = web.Application()
    made.router.add_get("/metrics", scrape)
    return made


async def serve(application: web.Application, port: int, context: ssl.SSLContext | None = None) -> web.AppRunner:
    """Start a server; the caller cleans up what it gets."""
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, HOST, port, ssl_context=context).start()
    return runner


def _check(complaint: Callable[[], str]) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def answer(_request: web.Request) -> web.StreamResponse:
        text = complaint()
        return web.Response(text=f"{text or 'ok'}\n", status=503 if text else 200)

    return answer
