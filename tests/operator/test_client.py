"""The client against an HTTP server that records what it was asked."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import aiohttp
import kopf
import pytest
from aiohttp import web
from finetune_operator.cluster.client import ApiError, Client
from finetune_operator.cluster.connection import Connection
from finetune_operator.cluster.resources import BY_KIND, Key
from finetune_operator.core.types import ObjectRef

from tests.support.edges import obj

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

Manifest = dict[str, Any]


class Recorder:
    """Answers every request with what the test has put there."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, Any]] = []
        self.asked: list[tuple[str, str, dict[str, str], str]] = []
        self.bodies: list[Manifest] = []

    async def handle(self, request: web.Request) -> web.Response:
        """Record and answer."""
        types = request.headers["Content-Type"]
        self.asked.append((request.method, request.path, dict(request.query), types))
        text = await request.text()
        if text:
            self.bodies.append(json.loads(text))
        status, answer = self.answers.pop(0) if self.answers else (200, {})
        return web.Response(status=status, text=answer if isinstance(answer, str) else json.dumps(answer))


@pytest.fixture
async def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
async def real(recorder: Recorder) -> AsyncIterator[Client]:
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", recorder.handle)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    connection = Connection(kopf.ConnectionInfo(server=f"http://127.0.0.1:{runner.addresses[0][1]}", token="secret"))
    yield Client(connection)
    await connection.close()
    await runner.cleanup()


JOBS = "/apis/batch/v1/namespaces/default/jobs"
OURS = "/apis/finetune.dev/v1alpha1/namespaces/default/finetunejobs"


async def test_create(real: Client, recorder: Recorder) -> None:
    await real.create(obj("Job", "j"))
    assert recorder.asked == [("POST", JOBS, {"fieldManager": "finetune-operator"}, "application/json")]


async def test_apply(real: Client, recorder: Recorder) -> None:
    await real.apply(obj("Service", "s"))
    ((method, path, params, types),) = recorder.asked
    assert (method, path) == ("PATCH", "/api/v1/namespaces/default/services/s")
    assert params == {"fieldManager": "finetune-operator", "force": "true"}
    assert types == "application/apply-patch+yaml"


async def test_a_status_is_written_against_the_version_that_was_looked_at(real: Client, recorder: Recorder) -> None:
    await real.patch_status(Key("FineTuneJob", "default", "a"), {"phase": "Queued"}, "7")
    ((method, path, _, types),) = recorder.asked
    assert (method, path, types) == ("PATCH", f"{OURS}/a/status", "application/merge-patch+json")
    assert recorder.bodies == [{"metadata": {"resourceVersion": "7"}, "status": {"phase": "Queued"}}]


async def test_a_deletion_takes_what_is_owned_and_forgives_what_is_gone(real: Client, recorder: Recorder) -> None:
    recorder.answers = [(404, {"message": "not found"})]
    await real.delete(ObjectRef("batch/v1", "Job", "default", "j"))
    assert recorder.bodies[0]["propagationPolicy"] == "Background"


async def test_a_list_goes_page_by_page_and_names_its_kind(real: Client, recorder: Recorder) -> None:
    recorder.answers = [
        (200, {"metadata": {"continue": "more"}, "items": [{"metadata": {"name": "a"}}]}),
        (200, {"metadata": {}, "items": None}),
    ]
    resource = BY_KIND["Pod"]
    found = [page async for page in real.pages(resource, None, resource.selectors)]
    assert [[item["kind"] for item in page] for page in found] == [["Pod"], []]
    assert [params.get("continue") for _, _, params, _ in recorder.asked] == [None, "more"]
    assert recorder.asked[0][2]["labelSelector"] == "app.kubernetes.io/managed-by=finetune-operator"


async def test_what_is_not_there_is_none(real: Client, recorder: Recorder) -> None:
    recorder.answers = [(404, {"message": "not found"})]
    assert await real.get(Key("Secret", "default", "hf")) is None


@pytest.mark.parametrize(
    ("status", "answer", "sentence"),
    [
        (403, {"message": "jobs is forbidden"}, "jobs is forbidden \\(HTTP 403\\)"),
        (500, "plain text", "plain text \\(HTTP 500\\)"),
    ],
)
async def test_a_refusal_says_what_was_tried(
    real: Client, recorder: Recorder, status: int, answer: Any, sentence: str
) -> None:
    recorder.answers = [(status, answer)]
    with pytest.raises(ApiError, match=f"GET /api/v1/namespaces/default/pods/p: {sentence}"):
        await real.get(Key("Pod", "default", "p"))


async def test_an_event_that_was_told_before_is_no_error(real: Client, recorder: Recorder) -> None:
    recorder.answers = [(409, {"message": "already exists"})]
    await real.create_event(obj("Event", "e"))


async def test_the_last_lines_of_a_container(real: Client, recorder: Recorder) -> None:
    recorder.answers = [(200, "last words")]
    assert await real.logs(Key("Pod", "default", "p"), "train", 30, previous=True) == "last words"
    assert recorder.asked[0][2] == {"container": "train", "tailLines": "30", "previous": "true"}


async def test_a_token_review(real: Client, recorder: Recorder) -> None:
    recorder.answers = [(201, {"status": {"authenticated": True}})]
    assert await real.review_token("t", "finetune.dev/progress") == {"authenticated": True}
    assert recorder.bodies[0]["spec"] == {"token": "t", "audiences": ["finetune.dev/progress"]}


async def test_a_server_that_is_away_is_a_client_error(real: Client) -> None:
    real._connection.server = "http://127.0.0.1:1"
    with pytest.raises(aiohttp.ClientError):
        await real.get(Key("Pod", "default", "p"))
