"""The way of an InferenceService: waits for its job, for memory, for its server; then follows new versions."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pytest
from finetune_operator.core import admission, inferenceservice
from finetune_operator.core.types import Children, EventRecord, Facts, Plan

from tests.core.simulation import FACTS, GIB, NODE, SPARK, START, Cluster, condition, job
from tests.support.merged import merged

if TYPE_CHECKING:
    from finetune_operator.core.types import Manifest


def service(name: str = "chat", **spec: Any) -> Manifest:
    return {
        "apiVersion": "finetune.dev/v1alpha1",
        "kind": "InferenceService",
        "metadata": {"name": name, "namespace": "team", "uid": f"uid-{name}", "generation": 1},
        "spec": {"model": {"fromFineTuneJob": "invoices"}, **spec},
    }


def done(version: str = "0123-4567", digest: str = "c" * 64, size: int = 105_000_000) -> Manifest:
    """A FineTuneJob that has succeeded."""
    cluster = Cluster(job()).until("evaluate")
    cluster.succeed()
    cluster.settle()
    path = f"/models/versions/{version}/model.gguf"
    cluster.status["model"] |= {"version": version, "digest": digest, "bytes": size, "path": path}
    return cluster.object


@dataclass
class Served:
    """One InferenceService and what belongs to it."""

    object: Manifest
    facts: Facts = FACTS
    objects: dict[tuple[str, str], Manifest] = field(default_factory=dict)
    events: list[EventRecord] = field(default_factory=list)
    pods: tuple[Manifest, ...] = ()

    def kind(self, kind: str) -> tuple[Manifest, ...]:
        return tuple(item for (found, _), item in self.objects.items() if found == kind)

    def plan(self) -> Plan:
        children = Children(deployments=self.kind("Deployment"), services=self.kind("Service"), pods=self.pods)
        return inferenceservice.plan(self.object, children, self.facts, START)

    def carry_out(self, plan: Plan) -> None:
        for manifest in (*plan.create, *plan.apply):
            self.objects[manifest["kind"], manifest["metadata"]["name"]] = manifest
            if manifest["kind"] == "Secret":
                keys = {**self.facts.secret_keys, manifest["metadata"]["name"]: frozenset(manifest["stringData"])}
                self.facts = replace(self.facts, secret_keys=keys)
        for ref in plan.delete:
            self.objects.pop((ref.kind, ref.name))
        if plan.status is not None:
            self.object = {**self.object, "status": plan.status}
        self.events.extend(plan.events)

    def settle(self) -> Served:
        for _ in range(10):
            plan = self.plan()
            assert plan == self.plan()
            if plan.empty:
                return self
            self.carry_out(plan)
        raise AssertionError(f"never at rest: {plan}")

    def admit(self) -> Served:
        holder = admission.holder_of(self.object, self.facts)
        assert holder is not None
        (decision,) = admission.admit([holder], self.facts.nodes, self.facts.settings)
        changes = admission.status_patch(self.object, decision, START)
        assert changes
        self.object = {**self.object, "status": merged(self.object["status"], changes)}
        return self.settle()

    def job(self, manifest: Manifest | None) -> Served:
        self.facts = replace(self.facts, job=manifest)
        return self.settle()

    def ready(self) -> Served:
        """The newest server answers."""
        self.kind("Deployment")[-1]["status"] = {"readyReplicas": 1}
        return self.settle()

    @property
    def phase(self) -> str:
        phase: str = self.object["status"]["phase"]
        return phase

    def condition(self, kind: str) -> dict[str, Any]:
        return condition(self.object, kind)


def serving(**spec: Any) -> Served:
    return Served(service(**spec)).job(done()).admit().ready()


def test_happy_way() -> None:
    served = Served(service()).settle()
    assert served.phase == "WaitingForModel"
    assert "does not exist" in served.condition("ModelResolved")["message"]
    assert [item["metadata"]["name"] for item in served.kind("Secret")] == ["chat-api-key"]
    served.job(done())
    assert served.phase == "Queued"
    served.admit()
    assert served.phase == "Loading"
    served.ready()
    assert served.phase == "Ready"
    assert served.object["status"]["url"] == "http://chat.team.svc.cluster.local:8080/v1"
    assert [event.reason for event in served.events] == ["ModelResolved", "Loaded", "Ready"]


def test_the_phase_of_the_job_is_said() -> None:
    served = Served(service()).job(Cluster(job()).until("train").object)
    assert "team/invoices is Training" in served.condition("ModelResolved")["message"]


def test_a_job_that_goes_away_changes_nothing() -> None:
    served = serving().job(None)
    assert served.phase == "Ready"
    assert len(served.kind("Deployment")) == 1


def test_a_new_version_is_started_beside_the_old_one() -> None:
    served = serving()
    (old,) = served.kind("Deployment")
    served.job(done("89ab-cdef", "d" * 64))
    assert len(served.kind("Deployment")) == 2
    assert served.phase == "Ready"
    selector = served.kind("Service")[0]["spec"]["selector"]
    assert selector == old["spec"]["selector"]["matchLabels"]
    served.ready()
    (new,) = served.kind("Deployment")
    assert new != old
    assert served.kind("Service")[0]["spec"]["selector"] == new["spec"]["selector"]["matchLabels"]


def test_on_one_gpu_the_old_server_goes_first() -> None:
    facts = replace(FACTS, nodes=(SPARK,), settings=replace(FACTS.settings, default_platform="auto"))
    served = Served(service(), facts).job(done()).admit().ready()
    served.facts = replace(served.facts, job=done("89ab-cdef", "d" * 64))
    first = served.plan()
    assert [ref.kind for ref in first.delete] == ["Deployment"]
    assert not first.apply
    served.settle()
    assert len(served.kind("Deployment")) == 1
    assert served.phase == "Loading"


def test_a_larger_version_goes_back_in_line() -> None:
    served = serving().job(done("89ab-cdef", "d" * 64, size=8 * GIB))
    assert served.phase == "Queued"
    assert not served.kind("Deployment")
    served.admit().ready()
    assert served.phase == "Ready"


def test_a_server_whose_node_has_left_goes_back_in_line() -> None:
    served = serving()
    served.facts = replace(served.facts, nodes=(replace(NODE, name="node2"),))
    served.settle().admit().ready()
    (only,) = served.kind("Deployment")
    assert "node2" in str(only["spec"]["template"]["spec"]["affinity"])
    assert served.phase == "Ready"


def test_suspend_gives_the_memory_back() -> None:
    served = serving()
    served.object["spec"]["suspend"] = True
    served.settle()
    assert served.phase == "Suspended"
    assert not served.kind("Deployment")
    assert "hold" not in served.object["status"]
    served.object["spec"]["suspend"] = False
    served.settle().admit().ready()
    assert served.phase == "Ready"


def test_ready_is_lost_when_the_server_is() -> None:
    served = serving()
    served.kind("Deployment")[0]["status"] = {}
    served.settle()
    assert served.condition("Ready")["status"] == "False"


def crash(container: str, message: str, reason: str = "Error", code: int = 1) -> dict[str, Any]:
    waits = {"waiting": {"reason": "CrashLoopBackOff"}}
    ended = {"terminated": {"exitCode": code, "reason": reason, "message": message}}
    return {"name": container, "state": waits, "lastState": ended}


TROUBLE: dict[str, tuple[dict[str, Any], str, str]] = {
    "image": (
        {"containerStatuses": [{"name": "server", "state": {"waiting": {"reason": "ImagePullBackOff"}}}]},
        "ImagePullFailed",
        "server",
    ),
    "damaged file": (
        {
            "initContainerStatuses": [
                crash("verify", '{"reason": "ModelCorrupt", "message": "model.gguf is cut."}', code=83)
            ]
        },
        "ModelCorrupt",
        "model.gguf is cut.",
    ),
    "server ends": ({"containerStatuses": [crash("server", "error: unknown model")]}, "ServerFailed", "unknown model"),
    "a secret in its last words": (
        {"containerStatuses": [crash("server", "started with --api-key hunter2")]},
        "ServerFailed",
        "--api-key ***",
    ),
    "memory limit": ({"containerStatuses": [crash("server", "", "OOMKilled", 137)]}, "OutOfMemory", "spec.memory"),
}


@pytest.mark.parametrize(("status", "reason", "words"), TROUBLE.values(), ids=TROUBLE)
def test_trouble_reaches_the_condition(status: dict[str, Any], reason: str, words: str) -> None:
    served = Served(service()).job(done()).admit()
    labels = served.kind("Deployment")[0]["spec"]["template"]["metadata"]["labels"]
    served.pods = ({"metadata": {"name": "p", "labels": labels}, "status": {"phase": "Pending", **status}},)
    served.settle()
    assert served.phase == "Failed"
    degraded = served.condition("Degraded")
    assert (degraded["status"], degraded["reason"]) == ("True", reason)
    assert words in degraded["message"]
    assert served.events[-1].type == "Warning"


def test_a_named_secret_is_waited_for() -> None:
    served = Served(service(auth={"apiKeySecretRef": {"name": "keys", "key": "chat"}})).job(done())
    assert served.condition("Loaded")["reason"] == "SecretNotFound"
    assert not served.kind("Deployment")
    assert not served.kind("Secret")
    assert admission.holder_of(served.object, served.facts) is None
    served.facts = replace(served.facts, secret_keys={"keys": frozenset({"chat"})})
    served.settle().admit()
    assert served.kind("Deployment")


def test_without_auth_no_key_is_made() -> None:
    served = serving(auth={"type": "None"})
    assert not served.kind("Secret")
    server = served.kind("Deployment")[0]["spec"]["template"]["spec"]["containers"][0]
    assert "--api-key-file" not in server["command"]


def test_arguments_of_ours_are_refused() -> None:
    served = Served(service(extraArgs=["--host", "127.0.0.1"])).settle()
    assert served.phase == "Failed"
    assert "spec.extraArgs: --host" in served.condition("Degraded")["message"]


def test_a_deleted_service_plans_nothing() -> None:
    served = serving()
    served.object["metadata"]["deletionTimestamp"] = "2026-12-01T12:00:00Z"
    served.kind("Deployment")[0]["status"] = {}
    assert served.plan().empty


def test_the_context_is_the_models_own_if_that_is_less() -> None:
    assert serving().object["status"]["contextLength"] == 2048
    assert serving(contextLength=1024, parallel=3).object["status"]["slots"] == 3


def test_a_scaled_down_server_comes_back() -> None:
    served = serving()
    served.kind("Deployment")[0]["spec"]["replicas"] = 0
    served.settle()
    assert served.kind("Deployment")[0]["spec"]["replicas"] == 1
