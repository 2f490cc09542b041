from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from finetune_operator.cluster.client import ApiError
from finetune_operator.cluster.nodes import Nodes, requests

from tests.support.edges import obj

if TYPE_CHECKING:
    from tests.support.edges import FakeClient

GPU = "nvidia.com/gpu"


def container(memory: str = "", gpus: str = "") -> dict[str, Any]:
    """A container with requests."""
    asked = {name: value for name, value in (("memory", memory), (GPU, gpus)) if value}
    return {"name": "c", "resources": {"requests": asked}}


@pytest.fixture
def nodes(client: FakeClient) -> Nodes:
    status = {"allocatable": {"memory": "24Gi", GPU: "2"}, "conditions": [{"type": "Ready", "status": "True"}]}
    client._stamped(obj("Node", "n1", status=status, spec={"taints": [{"key": "x", "effect": "NoSchedule"}]}))
    return Nodes(client, None, GPU)  # type: ignore[arg-type]


async def test_what_a_node_has_and_what_others_ask_of_it(nodes: Nodes, client: FakeClient) -> None:
    client._stamped(obj("Pod", "p", spec={"nodeName": "n1", "containers": [container("1Gi", "1"), container("512Mi")]}))
    assert await nodes.refresh()
    (found,) = nodes.facts
    assert (found.name, found.allocatable_bytes, found.gpus, found.ready) == ("n1", 24 * 2**30, 2, True)
    assert (found.requested_bytes, found.requested_gpus) == (3 * 2**29, 1)
    assert found.taints == ({"key": "x", "effect": "NoSchedule"},)


async def test_only_a_change_is_a_change(nodes: Nodes) -> None:
    assert await nodes.refresh()
    assert not await nodes.refresh()


async def test_without_the_right_to_read_nodes_there_are_none_and_it_is_said_once(
    nodes: Nodes, client: FakeClient, caplog: pytest.LogCaptureFixture
) -> None:
    client.refuse[("list", "Node")] = ApiError(403, "GET", "nodes is forbidden")
    assert not await nodes.refresh()
    assert not await nodes.refresh()
    assert caplog.text.count("plans are made without them") == 1


async def test_another_error_is_not_swallowed(nodes: Nodes, client: FakeClient) -> None:
    client.refuse[("list", "Node")] = ApiError(500, "GET", "etcd is gone")
    with pytest.raises(ApiError):
        await nodes.refresh()


CASES = [
    ("containers add up", {"containers": [container("1Gi"), container("2Gi")]}, 3 * 2**30),
    (
        "init containers run before them",
        {"containers": [container("1Gi")], "initContainers": [container("4Gi")]},
        2**32,
    ),
    ("a limit alone is a request", {"containers": [{"resources": {"limits": {"memory": "1Gi"}}}]}, 2**30),
    ("overhead counts", {"containers": [container("1Gi")], "overhead": {"memory": "1Gi"}}, 2**31),
    ("nothing said is nothing", {"containers": [{"name": "c"}]}, 0),
]


@pytest.mark.parametrize(("spec", "wanted"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_what_a_pod_asks_for(spec: dict[str, Any], wanted: int) -> None:
    assert requests(spec, "memory") == wanted
