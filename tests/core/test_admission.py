"""Admission: never over the budget, nobody starves, and the sum in words."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from finetune_operator.core import admission
from finetune_operator.core.types import Decision, Facts, Holder, NodeFacts
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.simulation import FACTS, GIB, NODE, SETTINGS, SPARK, START, Cluster, job


def waiting(name: str, gib: float = 1, *, after: int = 0, **more: Any) -> Holder:
    said = {"platform": "cpu", "gpus": 0, "device_bytes": 0, "priority": 0, "kind": "FineTuneJob", **more}
    return Holder(
        namespace="team", name=name, uid=name, since=START + timedelta(seconds=after), host_bytes=int(gib * GIB), **said
    )


def holding(name: str, gib: float, node: str = "node1", **more: Any) -> Holder:
    return replace(waiting(name, gib, **more), node=node)


def admit(*holders: Holder, nodes: tuple[NodeFacts, ...] = (NODE,)) -> dict[str, Decision]:
    return {decision.holder.name: decision for decision in admission.admit(holders, nodes, SETTINGS)}


def test_what_fits_runs() -> None:
    assert admit(waiting("a", 60))["a"].node == "node1"


def test_the_floor_is_kept() -> None:
    assert admit(waiting("a", 63.5))["a"].node is None


def test_first_come_first_served() -> None:
    found = admit(waiting("late", 40, after=9), waiting("early", 40, after=1))
    assert (found["early"].node, found["late"].node, found["late"].position) == ("node1", None, 1)


def test_priority_goes_first() -> None:
    found = admit(waiting("early", 40), waiting("urgent", 40, after=9, priority=5))
    assert (found["urgent"].node, found["early"].node) == ("node1", None)


def test_a_small_one_does_not_slip_past_a_large_one() -> None:
    found = admit(holding("x", 30), waiting("large", 40), waiting("small", 5, after=1))
    assert found["large"].node is None
    assert found["small"].node is None
    assert "FineTuneJob/large is ahead in the queue" in found["small"].message


def test_a_small_one_uses_what_the_large_one_cannot() -> None:
    gpu = replace(NODE, gpus=1)
    found = admit(
        holding("x", 8, gpus=1, platform="nvidia-gpu"),
        waiting("gpu", 8, gpus=1, platform="nvidia-gpu"),
        waiting("cpu", 8, after=1),
        nodes=(gpu,),
    )
    assert (found["gpu"].node, found["cpu"].node) == (None, "node1")


def test_an_impossible_one_blocks_nobody() -> None:
    found = admit(waiting("giant", 1000), waiting("small", 5, after=1))
    assert found["small"].node == "node1"
    assert "No node can ever give that" in found["giant"].message


def test_the_sum_in_words() -> None:
    spark = replace(SPARK, allocatable_bytes=130 * GIB)
    job = waiting("a", 10, device_bytes=int(81.2 * GIB), gpus=1, platform="dgx-spark")
    chat = holding("chat", 31.4, "spark", kind="InferenceService", platform="dgx-spark", gpus=1)
    message = admit(job, chat, nodes=(spark,))["a"].message
    assert message.startswith(
        "needs 91.2 GiB; 118.0 GiB budget \N{MINUS SIGN} 31.4 GiB held by InferenceService/chat = 86.6 GiB free "
        "on node spark; needs 1 GPU, 0 of 1 free, in use by InferenceService/chat."
    )
    assert "kubectl -n team patch infsvc chat" in message


def test_pods_of_others_count() -> None:
    busy = replace(NODE, requested_bytes=60 * GIB)
    assert admit(waiting("a", 4), nodes=(busy,))["a"].node is None


NODES: dict[str, tuple[NodeFacts, Holder, bool]] = {
    "not ready": (replace(NODE, ready=False), waiting("a"), False),
    "cordoned": (replace(NODE, unschedulable=True), waiting("a"), False),
    "label missing": (NODE, waiting("a", node_selector={"disk": "fast"}), False),
    "label there": (replace(NODE, labels={"disk": "fast"}), waiting("a", node_selector={"disk": "fast"}), True),
    "tainted": (replace(NODE, taints=({"key": "gpu", "effect": "NoSchedule"},)), waiting("a"), False),
    "tolerated": (
        replace(NODE, taints=({"key": "gpu", "effect": "NoSchedule"},)),
        waiting("a", tolerations=({"key": "gpu", "operator": "Exists"},)),
        True,
    ),
    "preferred otherwise": (replace(NODE, taints=({"key": "x", "effect": "PreferNoSchedule"},)), waiting("a"), True),
}


@pytest.mark.parametrize(("node", "holder", "fits"), NODES.values(), ids=NODES)
def test_nodes(node: NodeFacts, holder: Holder, *, fits: bool) -> None:
    assert (admit(holder, nodes=(node,))["a"].node is not None) is fits


HOLDERS = st.lists(
    st.builds(
        waiting,
        st.uuids().map(str),
        st.integers(1, 90),
        after=st.integers(0, 50),
        priority=st.integers(-2, 2),
        gpus=st.integers(0, 1),
        platform=st.sampled_from(["cpu", "nvidia-gpu"]),
    ),
    max_size=12,
)
TWO = (replace(NODE, gpus=1), replace(NODE, name="node2", allocatable_bytes=40 * GIB))


@given(HOLDERS)
@settings(max_examples=100, deadline=None)
def test_never_over_the_budget(holders: list[Holder]) -> None:
    for node in TWO:
        given_away = [each.holder for each in admission.admit(holders, TWO, SETTINGS) if each.node == node.name]
        assert sum(holder.host_bytes for holder in given_away) <= node.allocatable_bytes - GIB
        assert sum(holder.gpus for holder in given_away) <= node.gpus


@given(HOLDERS)
@settings(max_examples=50, deadline=None)
def test_nobody_starves(holders: list[Holder]) -> None:
    """While one after another ends and newcomers keep coming, everybody who could ever run does."""
    line = list(holders)
    waits = {holder.name for holder in holders if holder.host_bytes <= 63 * GIB and holder.gpus == 0}
    for turn in range(len(holders) + 1):
        decisions = admission.admit(line, TWO, SETTINGS)
        places = {each.holder.name: each.node for each in decisions}
        line = [replace(holder, node=holder.node or places.get(holder.name)) for holder in line]
        waits -= {holder.name for holder in line if holder.node}
        line = [holder for holder in line if not holder.node]
        line.append(waiting(f"new{turn}", 2, after=100 + turn, priority=-2))
    assert not waits


def test_a_job_waits_from_prepared_on() -> None:
    cluster = Cluster(job()).until("prepare")
    assert admission.holder_of(cluster.object, FACTS) is None
    cluster.succeed()
    cluster.settle()
    holder = admission.holder_of(cluster.object, FACTS)
    assert holder is not None
    assert holder.node is None
    assert holder.host_bytes == cluster.status["memory"]["host"]


def test_patch_admits_and_the_plan_takes_it_from_there() -> None:
    cluster = Cluster(job()).until("prepare")
    cluster.succeed()
    cluster.settle()
    cluster.admit()
    cluster.settle()
    assert cluster.phase == "Training"
    holder = admission.holder_of(cluster.object, FACTS)
    assert holder is not None
    assert holder.node == "node1"


def test_patch_says_why_a_job_waits_and_is_quiet_afterwards() -> None:
    small = Facts(SETTINGS, (replace(NODE, allocatable_bytes=4 * GIB),))
    cluster = Cluster(job(), small).until("prepare")
    cluster.succeed()
    cluster.settle()
    holder = admission.holder_of(cluster.object, small)
    assert holder is not None
    (decision,) = admission.admit([holder], small.nodes, SETTINGS)
    assert admission.event_of(cluster.object, decision)
    patch = admission.status_patch(cluster.object, decision, cluster.now)
    assert patch
    cluster.object["status"] |= patch
    assert "budget" in cluster.condition("Admitted")["message"]
    assert cluster.status["queue"]["position"] == 1
    assert admission.status_patch(cluster.object, decision, cluster.now) is None
    assert admission.event_of(cluster.object, decision) is None
    assert cluster.settle().empty
    assert "budget" in cluster.condition("Admitted")["message"]


def test_a_suspended_job_does_not_wait() -> None:
    cluster = Cluster(job()).until("prepare")
    cluster.succeed()
    cluster.settle()
    cluster.edit(suspend=True)
    assert admission.holder_of(cluster.object, FACTS) is None


def test_a_disrupted_job_keeps_its_place() -> None:
    cluster = Cluster(job()).until("prepare")
    cluster.succeed()
    cluster.settle()
    first = admission.holder_of(cluster.object, FACTS)
    cluster.admit()
    cluster.settle()
    cluster.wait(600)
    cluster.lose_pod()
    cluster.settle()
    assert admission.holder_of(cluster.object, FACTS) == first


def test_an_operator_that_sees_no_node_says_so() -> None:
    assert "right to list nodes" in admit(waiting("a"), nodes=())["a"].message


def test_what_an_object_with_an_unreadable_spec_holds_is_still_held() -> None:
    cluster = Cluster(job()).until("train")
    held = admission.holder_of(cluster.object, FACTS)
    cluster.object["spec"]["training"] = {"epochs": "many"}
    unreadable = admission.holder_of(cluster.object, FACTS)
    assert held is not None
    assert unreadable is not None
    assert (unreadable.node, unreadable.host_bytes) == (held.node, held.host_bytes)
    del cluster.object["status"]["hold"]
    assert admission.holder_of(cluster.object, FACTS) is None
