from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from finetune_operator.cluster import reconcile
from finetune_operator.cluster.client import ApiError
from finetune_operator.cluster.lookups import Lookups
from finetune_operator.cluster.nodes import Nodes
from finetune_operator.cluster.reconcile import GARBAGE_SECONDS, Reconciler
from finetune_operator.cluster.resources import Key
from finetune_operator.cluster.situation import MISSING_SECONDS, Gatherer
from finetune_operator.cluster.teller import Teller
from finetune_operator.core.service.server import RANDOM_KEY
from finetune_operator.core.types import EventRecord, ObjectRef, Plan, Settings

from tests.support.edges import NOW, FakeClient, Manifest, job_spec, obj, told

if TYPE_CHECKING:
    from finetune_operator.cluster.observer import Observer
    from finetune_operator.core.types import Children, Facts

A = Key("FineTuneJob", "default", "a")
SETTINGS = Settings("finetune-system", "trainer:1", "server:1", default_platform="cpu")
CHILD = obj("Job", "j", owner=("FineTuneJob", "u1"))
STORY = EventRecord("Normal", "Preparing", "Attempt 1 of prepare.")


class Harness:
    """A reconciler whose plans the test writes."""

    def __init__(self, client: FakeClient, observer: Observer, monkeypatch: pytest.MonkeyPatch) -> None:
        self.client, self.observer, self.plan = client, observer, Plan()
        lookups = Lookups(client)  # type: ignore[arg-type]
        nodes = Nodes(client, None, "nvidia.com/gpu")  # type: ignore[arg-type]
        gatherer = Gatherer(observer.store, lookups, nodes, observer._inbox, SETTINGS)
        self.teller = Teller(client, lambda: NOW)  # type: ignore[arg-type]
        self.look = Reconciler(client, observer, gatherer, self.teller, lambda: NOW)  # type: ignore[arg-type]
        self.facts: Facts | None = None
        monkeypatch.setitem(reconcile.PLANNERS, "FineTuneJob", self._plan)

    def _plan(self, _owner: Manifest, _children: Children, facts: Facts, _now: object) -> Plan:
        self.facts = facts
        return self.plan

    def exists(self, manifest: Manifest) -> Manifest:
        """In the cluster and in the picture."""
        made = self.client._stamped(manifest)
        self.observer.store.put(made)
        return made

    async def carry_out(self, plan: Plan) -> float | None:
        self.plan = plan
        try:
            return await self.look(A)
        finally:
            await told(self.teller)


@pytest.fixture
def harness(client: FakeClient, observer: Observer, monkeypatch: pytest.MonkeyPatch) -> Harness:
    made = Harness(client, observer, monkeypatch)
    made.exists(obj("FineTuneJob", "a", uid="u1", spec=job_spec()))
    for claim in ("finetune-cache", "finetune-models"):
        made.exists(obj("PersistentVolumeClaim", claim))
    return made


async def test_nothing_to_do_writes_nothing(harness: Harness) -> None:
    assert await harness.carry_out(Plan(requeue_after=7)) == 7
    assert harness.client.calls == []


async def test_an_object_that_is_gone_is_left_alone(harness: Harness) -> None:
    harness.observer.store.remove(A)
    assert await harness.carry_out(Plan(create=(CHILD,))) is None
    assert harness.client.calls == []


async def test_children_come_first_the_status_next_and_events_last(harness: Harness) -> None:
    await harness.carry_out(Plan(create=(CHILD,), status={"phase": "Preparing"}, events=(STORY,)))
    assert [call[0] for call in harness.client.calls] == ["create", "status", "event"]
    (told,) = harness.client.told
    assert (told["reason"], told["involvedObject"]["uid"]) == ("Preparing", "u1")


async def test_what_was_written_is_seen_by_the_next_look(harness: Harness) -> None:
    assert await harness.carry_out(Plan(create=(CHILD,), status={"phase": "Preparing"})) == 0
    owner = harness.observer.store.get(*A)
    assert owner is not None
    assert owner["status"] == {"phase": "Preparing"}
    assert [job["metadata"]["name"] for job in harness.observer.store.children(owner).jobs] == ["j"]


async def test_a_field_that_is_not_said_any_more_is_removed(harness: Harness) -> None:
    await harness.carry_out(Plan(status={"phase": "Queued", "queue": {"position": 1}}))
    await harness.carry_out(Plan(status={"phase": "Training"}))
    assert harness.client.objects[A]["status"] == {"phase": "Training"}


async def test_a_child_of_ours_that_exists_is_success(harness: Harness) -> None:
    harness.client._stamped(CHILD)
    assert await harness.carry_out(Plan(create=(CHILD,))) == 0
    assert harness.observer.store.get("Job", "default", "j")


async def test_a_child_of_a_deleted_namesake_is_waited_for(harness: Harness) -> None:
    harness.client._stamped(obj("Job", "j", owner=("FineTuneJob", "an-older-uid")))
    assert await harness.carry_out(Plan(create=(CHILD,), status={"phase": "Preparing"})) == GARBAGE_SECONDS
    assert "status" not in [call[0] for call in harness.client.calls]


async def test_what_a_deleted_namesake_still_has_is_not_applied_over(harness: Harness) -> None:
    harness.client._stamped(obj("Service", "chat", owner=("InferenceService", "an-older-uid")))
    plan = Plan(apply=(obj("Service", "chat", owner=("InferenceService", "u1")),))
    assert await harness.carry_out(plan) == GARBAGE_SECONDS
    assert "apply" not in [call[0] for call in harness.client.calls]


async def test_an_object_without_an_owner_is_adopted_as_it_is(harness: Harness) -> None:
    claim = obj("PersistentVolumeClaim", "finetune-cache")
    assert await harness.carry_out(Plan(create=(claim,))) == 0


PREPARING = {
    "phase": "Preparing",
    "stages": [{"name": "prepare", "attempt": 1}],
    "conditions": [
        {"type": "Prepared", "status": "False", "reason": "Running", "lastTransitionTime": "2026-12-01T02:00:00Z"}
    ],
}


async def test_a_refusal_is_told_once_and_raised(harness: Harness) -> None:
    harness.client.refuse[("create", "Job")] = ApiError(403, "POST", "exceeded quota")
    for _ in range(2):
        with pytest.raises(ApiError, match="exceeded quota"):
            await harness.carry_out(Plan(create=(CHILD,), status=PREPARING))
    assert [event["message"] for event in harness.client.told] == ["Job j cannot be created: exceeded quota"]
    status = harness.client.objects[A]["status"]
    (condition,) = status["conditions"]
    assert (condition["reason"], condition["message"]) == ("CreateFailed", "Job j cannot be created: exceeded quota")
    assert "stages" not in status, "no attempt has begun"


async def test_a_server_that_is_away_refuses_nothing(harness: Harness) -> None:
    harness.client.refuse[("create", "Job")] = ApiError(500, "POST", "etcd is gone")
    with pytest.raises(ApiError, match="etcd"):
        await harness.carry_out(Plan(create=(CHILD,), status=PREPARING))
    assert "status" not in [call[0] for call in harness.client.calls]


async def test_a_namesake_that_somebody_else_made_is_never_changed(harness: Harness) -> None:
    theirs = harness.client._stamped(obj("Service", "chat", spec={"selector": {"app": "theirs"}}))
    ours = obj("Service", "chat", owner=("FineTuneJob", "u1"), spec={"selector": {"app": "ours"}})
    with pytest.raises(ApiError, match="not made by the operator"):
        await harness.carry_out(Plan(apply=(ours,), status=PREPARING))
    assert harness.client.objects[Key("Service", "default", "chat")] == theirs
    assert harness.client.told[0]["message"].startswith("Service chat exists already")


async def test_a_random_key_is_put_where_the_plan_asks_for_one(harness: Harness) -> None:
    secret = obj("Secret", "chat-api-key", stringData={"api-key": RANDOM_KEY})
    await harness.carry_out(Plan(create=(secret,)))
    made = harness.client.objects[Key("Secret", "default", "chat-api-key")]
    assert len(made["stringData"]["api-key"]) > 40
    assert harness.observer.store.get("Secret", "default", "chat-api-key") is None


async def test_an_object_that_has_changed_since_is_read_again(harness: Harness) -> None:
    newer = harness.client._stamped({**harness.client.objects[A], "spec": job_spec(suspend=True)})
    assert await harness.carry_out(Plan(status={"phase": "Preparing"}, events=(STORY,))) == 0
    assert harness.observer.store.get(*A) == newer
    assert harness.client.told == []


async def test_an_object_that_was_deleted_meanwhile_leaves_the_picture(harness: Harness) -> None:
    del harness.client.objects[A]
    await harness.carry_out(Plan(status={"phase": "Preparing"}))
    assert harness.observer.store.get(*A) is None


async def test_a_deleted_child_is_seen_as_ending(harness: Harness) -> None:
    harness.exists(CHILD)
    await harness.carry_out(Plan(delete=(ObjectRef("batch/v1", "Job", "default", "j"),)))
    job = harness.observer.store.get("Job", "default", "j")
    assert job is not None
    assert job["metadata"]["deletionTimestamp"] == "2026-12-01T03:00:00Z"


async def test_something_missing_is_looked_for_again(harness: Harness) -> None:
    token = {"source": "hf://org/model", "tokenSecretRef": {"name": "hf"}}
    harness.exists(obj("FineTuneJob", "a", uid="u1", spec=job_spec(model=token)))
    assert await harness.carry_out(Plan(requeue_after=30)) == MISSING_SECONDS
    assert await harness.carry_out(Plan(requeue_after=3600)) == 3600, "a finished job does not wait for it"
    assert await harness.carry_out(Plan()) is None
    assert harness.facts is not None
    assert harness.facts.secret_keys == {}
    harness.client._stamped(obj("Secret", "hf", data={"token": "c2VjcmV0"}))
    harness.look._gatherer.lookups.created(obj("Secret", "hf"))
    assert await harness.carry_out(Plan()) is None
    assert harness.facts.secret_keys == {"hf": frozenset({"token"})}


async def test_a_thousand_objects_that_name_one_secret_ask_once(harness: Harness) -> None:
    token = {"source": "hf://org/model", "tokenSecretRef": {"name": "hf"}}
    harness.exists(obj("FineTuneJob", "a", uid="u1", spec=job_spec(model=token)))
    harness.client._stamped(obj("Secret", "hf", data={"token": "c2VjcmV0"}))
    for _ in range(5):
        await asyncio.sleep(0)
        await harness.carry_out(Plan())
    assert harness.client.calls == [("get", "Secret", "hf")]
