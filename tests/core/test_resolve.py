"""FineTuneJobSpec → RunSpec: the defaults, and which platform auto is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from finetune_operator.api.v1alpha1.finetunejob import FineTuneJob
from finetune_operator.core.job import resolve
from finetune_operator.core.types import NodeFacts

from tests.core.simulation import FACTS, GIB, NODE, SPARK, job

if TYPE_CHECKING:
    from finetune_trainer.contract.runspec import RunSpec

WORKSTATION = NodeFacts("rtx", 64 * GIB, gpus=2, labels={"room": "lab"})
AUTO = replace(FACTS.settings, default_platform="auto")


def resolved(nodes: tuple[NodeFacts, ...] = (NODE,), default: str = "auto", **spec: Any) -> RunSpec:
    facts = replace(FACTS, nodes=nodes, settings=replace(AUTO, default_platform=default))
    return resolve.run_spec(FineTuneJob.model_validate(job(**spec)), facts)


PLATFORMS: dict[str, tuple[dict[str, Any], str, str, str]] = {
    "no GPU": ({}, "cpu", "cpu", "trl"),
    "a GPU": ({"nodes": (NODE, WORKSTATION)}, "nvidia-gpu", "cuda", "unsloth"),
    "a DGX Spark": ({"nodes": (SPARK, WORKSTATION)}, "dgx-spark", "cuda", "unsloth"),
    "the operator's default": ({"nodes": (SPARK,), "default": "cpu"}, "cpu", "cpu", "trl"),
    "the user's word": (
        {"nodes": (SPARK,), "default": "cpu", "platform": "nvidia-gpu"},
        "nvidia-gpu",
        "cuda",
        "unsloth",
    ),
    "auto is the operator's default too": (
        {"nodes": (SPARK,), "default": "cpu", "platform": "auto"},
        "cpu",
        "cpu",
        "trl",
    ),
    "only nodes that are selected": (
        {"nodes": (SPARK, WORKSTATION), "nodeSelector": {"room": "lab"}},
        "nvidia-gpu",
        "cuda",
        "unsloth",
    ),
    "another recipe": ({"nodes": (SPARK,), "runtime": {"recipe": "trl"}}, "dgx-spark", "cuda", "trl"),
}


@pytest.mark.parametrize(("given", "platform", "device", "recipe"), PLATFORMS.values(), ids=PLATFORMS)
def test_platform(given: dict[str, Any], platform: str, device: str, recipe: str) -> None:
    spec = resolved(**given)
    assert (spec.platform, spec.device, spec.recipe) == (platform, device, recipe)


def test_defaults() -> None:
    spec = resolved()
    assert (spec.training.epochs, spec.training.max_steps) == (3, None)
    assert (spec.lora.rank, spec.lora.alpha) == (16, 32)
    assert spec.dataset.validation.fraction == 0.1
    assert spec.export.quantization == "q4_k_m"
    assert spec.salt == ""


def test_what_the_user_says_wins() -> None:
    spec = resolved(
        method={"lora": {"rank": 8, "targets": ["q_proj"]}},
        training={"maxSteps": 40, "learningRate": 0.001},
        dataset={"source": "https://example.com/x.jsonl", "tokenSecretRef": {"name": "x"}, "validation": {"rows": 5}},
        memory="24Gi",
    )
    assert (spec.lora.rank, spec.lora.alpha, spec.lora.targets) == (8, 16, ["q_proj"])
    assert (spec.training.epochs, spec.training.max_steps, spec.training.learning_rate) == (None, 40, 0.001)
    assert (spec.dataset.validation.rows, spec.dataset.validation.fraction) == (5, None)
    assert spec.memory.host_bytes == 24 * GIB


def test_the_floor_is_larger_on_unified_memory() -> None:
    assert resolved((SPARK,)).memory.floor_bytes == 12 * GIB
    assert resolved((WORKSTATION,)).memory.floor_bytes == GIB
