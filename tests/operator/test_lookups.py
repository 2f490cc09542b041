from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from finetune_operator.cluster.client import ApiError
from finetune_operator.cluster.lookups import Lookups

from tests.support.edges import Manifest, obj

if TYPE_CHECKING:
    from tests.support.edges import FakeClient


@pytest.fixture
def lookups(client: FakeClient) -> Lookups:
    return Lookups(client)  # type: ignore[arg-type]


def pod(state: str = "state", **terminated: object) -> Manifest:
    """A pod whose container has ended."""
    status = {"name": "train", state: {"terminated": {"containerID": "c1", **terminated}}}
    return obj("Pod", "p", status={"containerStatuses": [status]})


async def test_only_names_of_keys_are_kept(lookups: Lookups, client: FakeClient) -> None:
    client._stamped(obj("ConfigMap", "rows", data={"a.jsonl": "x"}, binaryData={"b.gz": "eA=="}))
    assert await lookups.keys("ConfigMap", "default", ["rows", "none"]) == {"rows": frozenset({"a.jsonl", "b.gz"})}


CASES = [
    ("a container that failed in silence", pod(exitCode=1), ["train"]),
    ("one that runs again after a crash", pod("lastState", exitCode=1), ["train"]),
    ("one that said why", pod(exitCode=1, message='{"reason":"x"}'), []),
    ("one that succeeded", pod(exitCode=0), []),
    (
        "a pod that runs",
        obj("Pod", "p", status={"containerStatuses": [{"name": "train", "state": {"running": {}}}]}),
        [],
    ),
    ("a pod without a status", obj("Pod", "p"), []),
]


@pytest.mark.parametrize(("dead", "wanted"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
async def test_whose_log_is_read(lookups: Lookups, client: FakeClient, dead: Manifest, wanted: list[str]) -> None:
    client.texts["p"] = "it ended\nwith HF_TOKEN=abc"
    found = await lookups.logs([dead])
    assert [call[1] for call in client.calls] == wanted
    assert list(found.values()) == ["it ended\nwith HF_TOKEN=***"] * len(wanted)


async def test_a_log_is_read_once_per_end(lookups: Lookups, client: FakeClient) -> None:
    client.texts["p"] = "last words"
    await lookups.logs([pod(exitCode=1)])
    await lookups.logs([pod(exitCode=1)])
    assert len(client.calls) == 1
    await lookups.logs([pod(exitCode=1, containerID="c2")])
    assert len(client.calls) == 2


async def test_a_log_that_is_gone_is_no_reason_to_fail(lookups: Lookups, client: FakeClient) -> None:
    client.refuse[("logs", "train")] = ApiError(404, "GET", "not found")
    assert await lookups.logs([pod(exitCode=137)]) == {"p": ""}
