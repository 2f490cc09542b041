"""POST /v1/progress: the status protocol of Kubeflow Trainer, which transformers speaks by itself."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import aiohttp
from aiohttp import web
from finetune_trainer.contract.progress import MAX_BYTES, ProgressReport
from pydantic import ValidationError

from finetune_operator import metrics
from finetune_operator.cluster.client import ApiError
from finetune_operator.progress.senders import NotOursError, UnknownTokenError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from finetune_operator.cluster.queue import Queue
    from finetune_operator.progress.inbox import Inbox
    from finetune_operator.progress.senders import Sender, Senders

PATH = "/v1/progress"
_log = logging.getLogger(__name__)


def application(senders: Senders, inbox: Inbox, queue: Queue) -> web.Application:
    """The endpoint."""

    async def receive(request: web.Request) -> web.Response:
        sender = await _sender(request, senders)
        report = await _report(request)
        inbox.put(sender.job_uid, report.trainer_status)
        queue.add(sender.owner)
        return web.json_response({"trainerStatus": report.trainer_status.model_dump(by_alias=True, exclude_none=True)})

    made = web.Application(client_max_size=MAX_BYTES, middlewares=[_counted])
    made.router.add_post(PATH, receive)
    return made


@web.middleware
async def _counted(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Count every answer, refusals too."""
    try:
        answer = await handler(request)
    except web.HTTPException as refusal:
        metrics.REPORTS.labels(str(refusal.status)).inc()
        raise
    metrics.REPORTS.labels(str(answer.status)).inc()
    return answer


async def _sender(request: web.Request, senders: Senders) -> Sender:
    """Before the body is read: a stranger's bytes are not worth keeping."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise web.HTTPUnauthorized(text="Send a bearer token with the audience finetune.dev/progress.")
    try:
        return await senders.of(token.strip())
    except UnknownTokenError as error:
        raise web.HTTPUnauthorized(text=str(error)) from error
    except NotOursError as error:
        raise web.HTTPForbidden(text=str(error)) from error
    except (ApiError, aiohttp.ClientError, TimeoutError) as error:
        _log.warning("progress: the token cannot be reviewed: %s", error)
        raise web.HTTPServiceUnavailable(text="The API server does not answer; report again later.") from error


async def _report(request: web.Request) -> ProgressReport:
    if (request.content_length or 0) > MAX_BYTES:
        raise web.HTTPRequestEntityTooLarge(MAX_BYTES, request.content_length or 0)
    try:
        return ProgressReport.model_validate_json(await request.read())
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "body"
        raise web.HTTPBadRequest(text=f"{where}: {first['msg']}.") from error
