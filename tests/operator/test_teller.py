from __future__ import annotations

from typing import TYPE_CHECKING

from finetune_operator.cluster import teller as module
from finetune_operator.cluster.client import ApiError
from finetune_operator.cluster.teller import Teller
from finetune_operator.core.types import EventRecord

from tests.support.edges import NOW, obj, told

if TYPE_CHECKING:
    import pytest

    from tests.support.edges import FakeClient, Manifest

JOB = obj("FineTuneJob", "a", uid="u1")
STORY = EventRecord("Normal", "Preparing", "Attempt 1 of prepare.")


def teller(client: FakeClient) -> Teller:
    return Teller(client, lambda: NOW)  # type: ignore[arg-type]


async def test_events_come_in_their_order_and_say_who_tells(client: FakeClient) -> None:
    ours = teller(client)
    ours.tell(JOB, [STORY, EventRecord("Warning", "Failed", "x")])
    await told(ours)
    assert [event["reason"] for event in client.told] == ["Preparing", "Failed"]
    assert client.told[0]["source"] == {"component": "finetune-operator"}
    assert client.told[0]["involvedObject"]["kind"] == "FineTuneJob"


def version(number: int) -> Manifest:
    """The job as it was at that version."""
    return {**JOB, "metadata": {**JOB["metadata"], "resourceVersion": str(number)}}


async def test_the_same_thing_told_twice_has_one_name_and_a_new_occasion_another(client: FakeClient) -> None:
    ours = teller(client)
    for number in (5, 5, 6):
        ours.tell(version(number), [STORY])
    await told(ours)
    first, second, third = (event["metadata"]["name"] for event in client.told)
    assert first == second != third


async def test_names_sort_as_they_were_told(client: FakeClient) -> None:
    ours = teller(client)
    together = [EventRecord("Normal", reason, "x") for reason in ("Trained", "Exporting", "Evaluated", "Published")]
    for number in (9, 10, 255, 256):
        ours.tell(version(number), together)
    await told(ours)
    names = [event["metadata"]["name"] for event in client.told]
    assert names == sorted(names)
    assert len(set(names)) == 16


async def test_an_event_that_is_refused_stops_nothing(client: FakeClient) -> None:
    ours = teller(client)
    client.refuse[("event", "Event")] = ApiError(403, "POST", "the namespace is being terminated")
    ours.tell(JOB, [STORY])
    await told(ours)
    client.refuse.clear()
    ours.tell(JOB, [STORY])
    await told(ours)
    assert len(client.told) == 1


async def test_a_flood_of_events_is_bounded(client: FakeClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_WAITING", 2)
    ours = teller(client)
    for _ in range(5):
        ours.tell(JOB, [STORY])
    await told(ours)
    assert len(client.told) == 2
