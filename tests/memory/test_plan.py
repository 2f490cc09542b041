"""What training needs, in numbers that anybody can check by hand."""

from __future__ import annotations

from typing import Any

import pytest
from finetune_trainer.contract.results import ModelFacts
from finetune_trainer.contract.runspec import DatasetSpec, Identity, ModelSpec, Recipe, RunSpec, TrainingSpec
from finetune_trainer.memory import (
    GIB,
    MIB,
    activation_bytes,
    frozen_bytes,
    plan_training,
    trained_parts,
)

GB = 10**9
LLAMA_8B = ModelFacts(
    parameters=8_030_261_248,
    trainable_parameters=41_943_040,
    largest_tensor_bytes=128_256 * 4096 * 2,
    hidden_size=4096,
    intermediate_size=14_336,
    layers=32,
    vocab_size=128_256,
)


def spec(device: str = "cuda", **training: Any) -> RunSpec:
    return RunSpec(
        identity=Identity(namespace="n", name="n", uid="u"),
        model=ModelSpec(source="hf://a/b"),
        dataset=DatasetSpec(source="configMap://a/b"),
        device=device,
        training=TrainingSpec.model_validate(training),
    )


@pytest.mark.parametrize(
    ("what", "computed", "gigabytes"),
    [
        ("3.21 B, all trained in fp32", sum(trained_parts(3_210_000_000).values()), 51.4),
        ("8.03 B, all trained in fp32", sum(trained_parts(8_030_000_000).values()), 128.5),
        ("8.03 B frozen in bf16", frozen_bytes(8_030_261_248), 16.1),
        ("8 B with a LoRA of rank 16", frozen_bytes(8_030_261_248) + sum(trained_parts(41_943_040).values()), 16.7),
        (
            "70.6 B with a LoRA of rank 16",
            frozen_bytes(70_553_706_496) + sum(trained_parts(207_093_760).values()),
            144.4,
        ),
        ("Qwen3.5-35B-A3B's experts at rank 32", sum(trained_parts(1_862_205_440).values()), 29.8),
    ],
)
def test_the_reference_documents_arithmetic(what: str, computed: float, gigabytes: float) -> None:
    assert round(computed / GB, 1) == gigabytes, what


def test_on_a_gpu_the_model_lies_on_the_device() -> None:
    plan = plan_training(LLAMA_8B, spec("cuda"))
    assert plan.device["weights"] == 2 * LLAMA_8B.parameters
    assert set(plan.host) == {"process", "staging"}
    assert 17 * GIB < plan.device_bytes < 24 * GIB


def test_on_a_cpu_everything_is_host_and_weights_are_fp32() -> None:
    plan = plan_training(LLAMA_8B, spec("cpu"))
    assert plan.device == {}
    assert plan.host["weights"] == 4 * LLAMA_8B.parameters
    assert plan.host_certain_bytes == 4 * LLAMA_8B.parameters + 16 * LLAMA_8B.trainable_parameters


def test_parts_add_up() -> None:
    plan = plan_training(LLAMA_8B, spec("cuda"))
    assert sum(plan.parts.values()) == plan.host_bytes + plan.device_bytes


@pytest.mark.parametrize("change", [{"batch_size": 8}, {"max_length": 8192}, {"gradient_checkpointing": False}])
def test_more_work_at_once_needs_more(change: dict[str, Any]) -> None:
    assert plan_training(LLAMA_8B, spec(**change)).device_bytes > plan_training(LLAMA_8B, spec()).device_bytes


def test_checkpointing_keeps_one_input_per_layer_and_one_layer_inside() -> None:
    tokens = 2 * 2048
    adapters = 4 * (6 * 4096 + 14_336)  # what goes into seven adapters, cast to fp32 by PEFT
    inside = tokens * ((10 * 4096 + 6 * 14_336) * 2 + adapters)
    assert activation_bytes(LLAMA_8B, spec(), 2) == 32 * tokens * 4096 * 2 + inside
    assert activation_bytes(LLAMA_8B, spec(gradient_checkpointing=False), 2) == 32 * inside


@pytest.mark.parametrize(("recipe", "measured"), [("trl", 4_653_580_288), ("unsloth", 4_148_166_656)])
def test_a_model_on_a_gpu_is_planned_within_five_percent_of_what_it_was_measured_to_take(
    recipe: Recipe, measured: int
) -> None:
    """1.1 B parameters on an H200 by benchmarks/memory_plan.py, 4 rows of 2,048 tokens; the context is not in it."""
    model = ModelFacts(
        parameters=1_104_218_112,
        largest_tensor_bytes=2 * 32_000 * 2048,
        hidden_size=2048,
        layers=16,
        vocab_size=32_000,
        intermediate_size=8192,
        trainable_parameters=16 * 16 * (4096 + 2 * 2560 + 4096 + 3 * 10_240),
    )
    plan = plan_training(model, spec(batch_size=4).model_copy(update={"recipe": recipe}))
    assert plan.device_bytes - plan.device["context"] == pytest.approx(measured, rel=0.05)


def test_loading_counts_only_beyond_what_training_takes_anyway() -> None:
    huge = LLAMA_8B.model_copy(update={"largest_tensor_bytes": 8 * GIB})
    assert plan_training(LLAMA_8B, spec()).device["loader"] < 4 * LLAMA_8B.largest_tensor_bytes
    assert plan_training(huge, spec()).device["loader"] > 24 * GIB


def test_a_small_model_on_a_cpu_is_planned_near_what_it_was_measured_to_take() -> None:
    smollm2 = ModelFacts(
        parameters=134_515_008,
        trainable_parameters=1_221_120,
        largest_tensor_bytes=56_623_104,
        hidden_size=576,
        intermediate_size=1536,
        layers=30,
        vocab_size=49_152,
    )
    sizes = {"batch_size": 4, "max_length": 256}
    assert plan_training(smollm2, spec("cpu", **sizes)).host_bytes / (3252 * MIB) == pytest.approx(1, abs=0.1)
    plain = plan_training(smollm2, spec("cpu", gradient_checkpointing=False, **sizes))
    assert plain.host_bytes / (4834 * MIB) == pytest.approx(1, abs=0.1)
