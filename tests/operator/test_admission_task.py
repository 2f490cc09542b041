"""The admission task: the real decisions of the core, on a fake API server."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from finetune_operator.cluster.admission import Admission
from finetune_operator.cluster.client import ApiError
from finetune_operator.cluster.lookups import Lookups
from finetune_operator.cluster.nodes import Nodes
from finetune_operator.cluster.resources import Key
from finetune_operator.cluster.situation import Gatherer
from finetune_operator.cluster.teller import Teller
from finetune_operator.core.types import Settings

from tests.support.edges import NOW, FakeClient, Manifest, job_spec, obj, told, until, waiting

if TYPE_CHECKING:
    from finetune_operator.cluster.observer import Observer
    from finetune_operator.cluster.queue import Queue

GIB = 2**30
SETTINGS = Settings("finetune-system", "trainer:1", "server:1", default_platform="cpu")


def condition(kind: str, status: str, reason: str) -> Manifest:
    """A condition of an object that waits."""
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": "",
        "lastTransitionTime": "2026-12-01T02:00:00Z",
    }


def queued(name: str, gib: int, **hold: Any) -> Manifest:
    """A job that is prepared, and waits for memory or holds it."""
    conditions = [condition("Prepared", "True", "Completed"), condition("Admitted", "False", "Queued")]
    status = {"conditions": conditions, "phase": "Queued", "memory": {"host": gib * GIB, "platform": "cpu"}} | hold
    made = obj("FineTuneJob", name, spec=job_spec(), status=status)
    made["metadata"] |= {"generation": 1, "creationTimestamp": "2026-12-01T01:00:00Z"}
    return made


class Round:
    """An admission task and what it works on."""

    def __init__(self, client: FakeClient, observer: Observer) -> None:
        self.client, self.observer = client, observer
        self.nodes = Nodes(client, None, "nvidia.com/gpu")  # type: ignore[arg-type]
        lookups = Lookups(client)  # type: ignore[arg-type]
        gatherer = Gatherer(observer.store, lookups, self.nodes, observer._inbox, SETTINGS)
        self.teller = Teller(client, lambda: NOW)  # type: ignore[arg-type]
        self.task = Admission(client, observer, self.nodes, gatherer, self.teller)  # type: ignore[arg-type]
        self.task._read_at = -1000.0
        ready = [{"type": "Ready", "status": "True"}]
        client._stamped(obj("Node", "n1", status={"allocatable": {"memory": "24Gi"}, "conditions": ready}))

    def exists(self, manifest: Manifest) -> None:
        """In the cluster and in the picture."""
        self.observer.store.put(self.client._stamped(manifest))

    async def run(self) -> None:
        """One round."""
        await self.task.round(lambda: NOW)
        await told(self.teller)

    def hold(self, name: str) -> Manifest | None:
        """What a job holds."""
        found: Manifest | None = self.client.objects[Key("FineTuneJob", "default", name)]["status"].get("hold")
        return found


@pytest.fixture
def rounds(client: FakeClient, observer: Observer) -> Round:
    return Round(client, observer)


async def test_what_fits_is_admitted_and_looked_at(rounds: Round, queue: Queue) -> None:
    rounds.exists(queued("a", 8))
    await rounds.run()
    hold = rounds.hold("a")
    assert hold is not None
    assert (hold["node"], hold["hostBytes"]) == ("n1", 8 * GIB)
    assert await waiting(queue) == ["FineTuneJob/a"]


async def test_what_does_not_fit_waits_and_says_why_once(rounds: Round) -> None:
    rounds.exists(queued("a", 20))
    rounds.exists(queued("b", 20))
    await rounds.run()
    await rounds.run()
    assert [rounds.hold("a") is None, rounds.hold("b") is None].count(True) == 1
    (told,) = rounds.client.told
    assert told["reason"] == "Queued"
    assert "FineTuneJob" in told["message"]


async def test_nothing_is_written_when_nothing_changes(rounds: Round) -> None:
    rounds.exists(queued("a", 20))
    rounds.exists(queued("b", 20))
    await rounds.run()
    rounds.client.calls.clear()
    for _ in range(3):
        await rounds.run()
    assert rounds.client.calls == []


async def test_nobody_waits_nothing_is_read(rounds: Round) -> None:
    hold = {"node": "n1", "hostBytes": GIB, "since": "2026-12-01T02:00:00Z"}
    rounds.exists(queued("a", 1, hold=hold))
    await rounds.run()
    assert rounds.client.calls == []


async def test_an_object_that_has_changed_since_is_decided_again(rounds: Round) -> None:
    rounds.exists(queued("a", 8))
    rounds.client._stamped(queued("a", 8))
    rounds.observer.admission.clear()
    await rounds.run()
    assert rounds.hold("a") is None
    assert rounds.observer.admission.is_set()


async def test_memory_that_others_ask_for_is_not_given_away(rounds: Round) -> None:
    asked = {"name": "c", "resources": {"requests": {"memory": "20Gi"}}}
    rounds.client._stamped(obj("Pod", "other", spec={"nodeName": "n1", "containers": [asked]}))
    rounds.exists(queued("a", 8))
    await rounds.run()
    assert rounds.hold("a") is None


async def test_an_api_server_that_is_away_ends_nothing(rounds: Round, caplog: pytest.LogCaptureFixture) -> None:
    rounds.client.refuse[("status", "FineTuneJob")] = ApiError(500, "PATCH", "etcd is gone")
    rounds.exists(queued("a", 8))
    running = asyncio.create_task(rounds.task.run(lambda: NOW))
    rounds.observer.admission.set()
    await until(lambda: "etcd is gone" in caplog.text)
    rounds.client.refuse.clear()
    rounds.observer.admission.set()
    await until(lambda: rounds.hold("a") is not None)
    running.cancel()
