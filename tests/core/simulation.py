"""A tiny pure cluster: carries out plans, plays the Job controller and admission, and tells what children exist."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from finetune_operator.core import admission, finetunejob
from finetune_operator.core.types import Children, EventRecord, Facts, NodeFacts, Plan, Settings
from finetune_trainer.contract.results import (
    DatasetFacts,
    EvaluateFacts,
    ExportFacts,
    ModelFacts,
    Scores,
    StageResult,
    Termination,
    TrainFacts,
)

from tests.support.merged import merged

if TYPE_CHECKING:
    from finetune_operator.core.types import Manifest

START = datetime(2026, 12, 1, 12, 0, 0, tzinfo=UTC)
GIB = 2**30
SETTINGS = Settings(
    operator_namespace="finetune-system",
    trainer_image="registry.example/trainer:1",
    server_image="registry.example/server:1",
    default_platform="cpu",
    progress_url="https://finetune-operator.finetune-system.svc:8443/v1/progress",
    progress_ca="CA",
)
NODE = NodeFacts("node1", allocatable_bytes=64 * GIB, gpus=0)
SPARK = NodeFacts("spark", 119 * GIB, gpus=1, labels={"nvidia.com/gpu.product": "NVIDIA-GB10"})
FACTS = Facts(settings=SETTINGS, nodes=(NODE,))

BASE = ModelFacts(
    revision="a" * 40,
    path="/cache/hf/model",
    architecture="LlamaForCausalLM",
    parameters=134_515_008,
    bytes=269_030_016,
    largest_tensor_bytes=56_623_104,
    hidden_size=576,
    layers=30,
    vocab_size=49152,
    intermediate_size=1536,
    key_value_heads=3,
    head_dim=64,
    trainable_parameters=4_884_480,
)
RESULTS: dict[str, dict[str, Any]] = {
    "prepare": {
        "model": BASE,
        "dataset": DatasetFacts(read=300, kept=290, validation_rows=30, tokens=9000, trainable_tokens=4000),
    },
    "train": {"train": TrainFacts(steps=102, first_loss=2.5, loss=0.412, seconds=600)},
    "export": {"export": ExportFacts(bytes=105_000_000, sha256="c" * 64, quantization="q4_k_m")},
    "evaluate": {
        "evaluate": EvaluateFacts(
            base=Scores(rows=30), tuned=Scores(rows=30, exact_match=0.8), version="0123-4567", context_length=2048
        )
    },
}


def job(name: str = "invoices", **spec: Any) -> Manifest:
    """A FineTuneJob as it is right after `kubectl apply`."""
    return {
        "apiVersion": "finetune.dev/v1alpha1",
        "kind": "FineTuneJob",
        "metadata": {"name": name, "namespace": "team", "uid": f"uid-{name}", "generation": 1},
        "spec": {
            "model": {"source": "hf://HuggingFaceTB/SmolLM2-135M-Instruct"},
            "dataset": {"source": "configMap://rows/train.jsonl"},
            **spec,
        },
    }


def condition(manifest: Manifest, kind: str) -> dict[str, Any]:
    """One condition of an object."""
    found: dict[str, Any] = next(item for item in manifest["status"]["conditions"] if item["type"] == kind)
    return found


@dataclass
class Cluster:
    """One FineTuneJob and what belongs to it."""

    object: Manifest
    facts: Facts = FACTS
    now: datetime = START
    objects: dict[tuple[str, str], Manifest] = field(default_factory=dict)
    events: list[EventRecord] = field(default_factory=list)
    warnings: tuple[Manifest, ...] = ()
    applied: list[Manifest] = field(default_factory=list)
    uids: int = 0

    def __post_init__(self) -> None:
        if not self.facts.config_map_keys:
            self.facts = replace(self.facts, config_map_keys={"rows": frozenset({"train.jsonl"})})

    def kind(self, kind: str) -> tuple[Manifest, ...]:
        return tuple(item for (found, _), item in self.objects.items() if found == kind)

    @property
    def children(self) -> Children:
        return Children(
            jobs=self.kind("Job"),
            pods=self.kind("Pod"),
            config_maps=self.kind("ConfigMap"),
            events=self.warnings,
        )

    def plan(self) -> Plan:
        return finetunejob.plan(self.object, self.children, self.facts, self.now)

    def carry_out(self, plan: Plan) -> None:
        for manifest in plan.create:
            self._create(manifest)
        self.applied.extend(plan.apply)
        for ref in plan.delete:
            self.vanish(ref.name)
        if plan.status is not None:
            self.object = {**self.object, "status": plan.status}
        self.events.extend(plan.events)

    def settle(self) -> Plan:
        """Plan and carry out until there is nothing left to do; returns the last plan, which is empty."""
        for _ in range(10):
            plan = self.plan()
            assert plan == self.plan()
            if plan.empty:
                return plan
            self.carry_out(plan)
        raise AssertionError(f"never at rest: {plan}")

    def _create(self, manifest: Manifest) -> None:
        key = manifest["kind"], manifest["metadata"]["name"]
        if key in self.objects:
            return
        self.uids += 1
        stored = {**manifest, "metadata": {**manifest["metadata"], "uid": f"child-{self.uids}"}}
        self.objects[key] = stored
        if manifest["kind"] == "Job":
            self._pod(stored)
        if manifest["kind"] == "PersistentVolumeClaim":
            self.facts = replace(self.facts, claims={**self.facts.claims, manifest["metadata"]["name"]: stored})

    def _pod(self, owner: Manifest) -> None:
        name = owner["metadata"]["name"] + "-abcde"
        labels = owner["spec"]["template"]["metadata"]["labels"]
        self.objects["Pod", name] = {
            "kind": "Pod",
            "metadata": {
                "name": name,
                "namespace": "team",
                "labels": labels,
                "ownerReferences": [{"kind": "Job", "uid": owner["metadata"]["uid"]}],
            },
            "spec": {"nodeName": "node1"},
            "status": {"phase": "Running"},
        }

    def vanish(self, job_name: str) -> None:
        """A Job and its pods are gone."""
        self.objects.pop(("Job", job_name), None)
        self.objects.pop(("Pod", job_name + "-abcde"), None)

    @property
    def running(self) -> Manifest:
        """The Job that has not ended."""
        (found,) = [item for item in self.kind("Job") if "status" not in item]
        return found

    @property
    def stage(self) -> str:
        """The stage of the running Job."""
        stage: str = self.running["metadata"]["labels"]["finetune.dev/stage"]
        return stage

    def pod(self) -> Manifest:
        return self.objects["Pod", self.running["metadata"]["name"] + "-abcde"]

    def end(self, exit_code: int, message: str = "", *, terminated: str = "Error", **pod_status: Any) -> None:
        """The running pod ends, and the Job controller notices."""
        job, pod = self.running, self.pod()
        state = {"terminated": {"exitCode": exit_code, "reason": terminated, "message": message}}
        pod["status"] = {
            "phase": "Failed" if exit_code else "Succeeded",
            "containerStatuses": [{"name": "main", "state": state}],
            **pod_status,
        }
        self._end_job(job, "Failed" if exit_code else "Complete")

    def lose_pod(self) -> None:
        """The node dies: the pod is gone, and the Job controller notices."""
        job = self.running
        self.objects.pop(("Pod", job["metadata"]["name"] + "-abcde"))
        self._end_job(job, "Failed")

    def _end_job(self, job: Manifest, kind: str) -> None:
        job["status"] = {"conditions": [{"type": kind, "status": "True", "reason": "BackoffLimitExceeded"}]}

    def succeed(self) -> None:
        """The running stage ends with its result."""
        stage, digest = self.stage, self.object["status"]["runDigest"]
        result = StageResult.model_validate({"stage": stage, "run_digest": digest, **RESULTS[stage]})
        self.end(
            0,
            Termination(reason="Completed", message=f"{stage} is done.", run_digest=digest, result=result).to_message(),
        )

    def fail(self, reason: str, exit_code: int, message: str = "Something is wrong.") -> None:
        """The running stage ends with a reason out of the table."""
        digest = self.object["status"]["runDigest"]
        self.end(exit_code, Termination(reason=reason, message=message, run_digest=digest).to_message())

    def admit(self) -> None:
        """Admission gives the waiting job what it needs."""
        holder = admission.holder_of(self.object, self.facts)
        assert holder is not None
        (decision,) = admission.admit([holder], self.facts.nodes, self.facts.settings)
        changes = admission.status_patch(self.object, decision, self.now)
        assert changes
        self.object = {**self.object, "status": merged(self.object["status"], changes)}

    def stamp(self) -> str:
        return self.now.strftime("%Y-%m-%dT%H:%M:%SZ")

    def wait(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def edit(self, **spec: Any) -> None:
        """The user applies another spec; None removes a field."""
        edited = {key: value for key, value in {**self.object["spec"], **spec}.items() if value is not None}
        meta = {**self.object["metadata"], "generation": self.object["metadata"]["generation"] + 1}
        self.object = {**self.object, "metadata": meta, "spec": edited}

    @property
    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = self.object["status"]
        return found

    @property
    def phase(self) -> str:
        phase: str = self.status["phase"]
        return phase

    def condition(self, kind: str) -> dict[str, Any]:
        return condition(self.object, kind)

    def until(self, stage: str) -> Cluster:
        """Go the happy way until this stage runs."""
        self.settle()
        while self.stage != stage:
            self.succeed()
            self.settle()
            if self.phase == "Queued":
                self.admit()
                self.settle()
        return self
