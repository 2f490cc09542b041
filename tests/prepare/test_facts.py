"""What prepare says of a base before its weights are fetched."""

from __future__ import annotations

import pytest
from finetune_trainer.contract.runspec import DatasetSpec, Identity, LoraSpec, ModelSpec, Recipe, RunSpec
from finetune_trainer.prepare.facts import check_targets
from finetune_trainer.stage import StageError

ATTENTION = ["model.layers.0.self_attn.q_proj.weight", "model.layers.0.self_attn.v_proj.weight"]
DENSE = [*ATTENTION, "model.layers.0.mlp.gate_proj.weight"]
EXPERTS = [*ATTENTION, "model.layers.0.mlp.experts.gate_up_proj", "model.layers.0.mlp.shared_expert.gate_proj.weight"]


def spec(recipe: Recipe, *targets: str) -> RunSpec:
    return RunSpec(
        identity=Identity(namespace="n", name="n", uid="u"),
        model=ModelSpec(source="hf://o/m"),
        dataset=DatasetSpec(source="pvc://c/rows.jsonl"),
        lora=LoraSpec(targets=list(targets)),
        recipe=recipe,
    )


ACCEPTED = {
    "attention of a mixture of experts": (EXPERTS, spec("unsloth", "q_proj", "v_proj")),
    "the shared expert, which plain PEFT tunes alone": (EXPERTS, spec("trl", "gate_proj")),
    "the MLP of a dense model": (DENSE, spec("unsloth", "q_proj", "gate_proj")),
}


@pytest.mark.parametrize(("names", "run"), ACCEPTED.values(), ids=ACCEPTED.keys())
def test_targets_that_can_be_trained_and_exported(names: list[str], run: RunSpec) -> None:
    check_targets(names, run)


def test_targets_that_would_reach_experts_are_refused_before_the_download() -> None:
    with pytest.raises(StageError, match="gate_proj would put adapters on every expert") as caught:
        check_targets(EXPERTS, spec("unsloth", "q_proj", "gate_proj"))
    assert caught.value.reason.name == "InvalidSpec"
