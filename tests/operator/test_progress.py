"""The progress endpoint over real TLS, with the token review as the API server would answer."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from aiohttp import web
from finetune_operator import program
from finetune_operator.cluster.client import ApiError
from finetune_operator.progress.identity import Identity
from finetune_operator.progress.senders import Senders
from finetune_operator.progress.server import PATH, application
from finetune_trainer.contract.progress import AUDIENCE, MAX_BYTES

from tests.support.edges import FakeClient, Manifest, job_spec, obj, waiting

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from finetune_operator.cluster.observer import Observer
    from finetune_operator.cluster.queue import Queue

REPORT = {
    "trainerStatus": {
        "progressPercentage": 40,
        "estimatedRemainingSeconds": 120,
        "metrics": [{"name": "loss", "value": "0.571"}],
        "lastUpdatedTime": "2026-12-01T03:00:00Z",
    }
}


def review(pod_uid: str = "pod-1", **other: Any) -> Manifest:
    """The status of a TokenReview."""
    extra = {"authentication.kubernetes.io/pod-uid": [pod_uid]}
    return {"authenticated": True, "audiences": [AUDIENCE], "user": {"username": "sa", "extra": extra}} | other


GOOD = "good"


class Endpoint:
    """A running endpoint."""

    def __init__(self, session: aiohttp.ClientSession, address: str) -> None:
        self.session, self.address = session, address

    async def post(self, body: Any = REPORT, token: str | None = GOOD, path: str = PATH) -> tuple[int, str]:
        """Status and text of the answer."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        content = {"data": body} if isinstance(body, bytes) else {"json": body}
        async with self.session.post(f"{self.address}{path}", headers=headers, **content) as answer:
            return answer.status, await answer.text()


@pytest.fixture
async def endpoint(client: FakeClient, observer: Observer, queue: Queue) -> AsyncIterator[Endpoint]:
    observer.store.put(obj("FineTuneJob", "a", uid="u1", spec=job_spec()))
    observer.store.put(obj("Job", "a-train-1", uid="job-1", owner=("FineTuneJob", "u1")))
    observer.store.put(obj("Pod", "a-train-1-x", uid="pod-1", owner=("Job", "job-1")))
    client.review = review()
    identity = Identity(client, "default", "https://127.0.0.1:8443/v1/progress", program.now)  # type: ignore[arg-type]
    await identity.ensure()
    senders = Senders(client, observer.store)  # type: ignore[arg-type]
    runner = web.AppRunner(application(senders, observer._inbox, queue))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=identity.context)
    await site.start()
    port = runner.addresses[0][1]
    trust = ssl.create_default_context(cadata=identity.ca)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust)) as session:
        yield Endpoint(session, f"https://127.0.0.1:{port}")
    await runner.cleanup()


async def test_a_report_is_kept_and_its_job_is_looked_at(endpoint: Endpoint, observer: Observer, queue: Queue) -> None:
    status, _ = await endpoint.post()
    assert status == 200
    kept = observer._inbox.latest("job-1")
    assert kept is not None
    assert kept.progress_percentage == 40
    assert await waiting(queue) == ["FineTuneJob/a"]


REFUSALS = [
    ("no token", {"token": None}, {}, 401, "Send a bearer token"),
    ("an unknown token", {}, {"authenticated": False}, 401, "not valid"),
    ("a token for somebody else", {}, {"audiences": ["https://kubernetes.default.svc"]}, 401, "not meant for"),
    ("a token without a pod", {}, {"user": {"username": "person"}}, 403, "does not belong to a FineTuneJob"),
    ("a pod that is not ours", {}, review("pod-9"), 403, "does not belong to a FineTuneJob"),
    ("another address", {"path": "/v1/other"}, {}, 404, "Not Found"),
    ("a body that is too long", {"body": b"x" * (MAX_BYTES + 1)}, {}, 413, "exceeded"),
    ("a body that is no JSON", {"body": b"{"}, {}, 400, "Invalid JSON"),
    ("a body that lacks its content", {"body": {}}, {}, 400, "trainerStatus: Field required"),
    (
        "a number that cannot be",
        {"body": {"trainerStatus": {"progressPercentage": 101}}},
        {},
        400,
        "progressPercentage",
    ),
]


@pytest.mark.parametrize(
    ("asked", "answered", "status", "sentence"), [case[1:] for case in REFUSALS], ids=[case[0] for case in REFUSALS]
)
async def test_a_refusal_says_why(
    endpoint: Endpoint, client: FakeClient, asked: dict[str, Any], answered: Manifest, status: int, sentence: str
) -> None:
    client.review = review() | answered
    got, text = await endpoint.post(**asked)
    assert (got, sentence in text) == (status, True), text


async def test_a_token_is_reviewed_once_a_minute(endpoint: Endpoint, client: FakeClient) -> None:
    for _ in range(3):
        await endpoint.post()
    assert [call[0] for call in client.calls].count("review") == 1
    await endpoint.post(token="another")
    assert [call[0] for call in client.calls].count("review") == 2


async def test_an_api_server_that_is_away_is_not_the_trainers_fault(endpoint: Endpoint, client: FakeClient) -> None:
    client.refuse[("review", AUDIENCE)] = ApiError(500, "POST", "etcd is gone")
    assert (await endpoint.post())[0] == 503


async def test_a_job_that_is_gone_reports_in_vain(endpoint: Endpoint, observer: Observer) -> None:
    job = observer.store.find("u1")
    assert job is not None
    observer.gone(job)
    assert (await endpoint.post())[0] == 403
