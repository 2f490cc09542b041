"""The whole stage against a tiny base."""

from __future__ import annotations

import filecmp
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from finetune_trainer.contract.runspec import ValidationSpec

from tests.support import tiny_model
from tests.support.tiny_model import chat

if TYPE_CHECKING:
    from tests.prepare.conftest import World


def test_leaves_what_train_needs(world: World) -> None:
    result = world.run()
    assert (len(world.rows()), len(world.rows("validation.jsonl"))) == (8, 2)
    row = world.rows()[0]
    assert row.keys() == {"input_ids", "labels", "prompt", "answer", "line"}
    assert row["prompt"] == [{"role": "user", "content": f"Question {row['line'] - 1}?"}]
    assert row["answer"] == f"Answer {row['line'] - 1}."
    assert result.dataset
    assert (result.dataset.read, result.dataset.kept, result.dataset.validation_rows) == (10, 10, 2)
    assert result.dataset.trainable_tokens == 8 * len("Answer 0.") + 8
    assert result.message.startswith("10 rows read, 8 to learn from, 2 held out; ")


def test_tells_the_facts_of_the_base(world: World) -> None:
    facts = world.run().model
    assert facts
    assert facts.path == str(world.base)
    assert (facts.architecture, facts.layers, facts.hidden_size, facts.head_dim) == ("LlamaForCausalLM", 2, 8, 2)
    assert facts.largest_tensor_bytes == 259 * 8 * 2
    assert facts.bytes == 2 * facts.parameters
    per_layer = sum(16 * (rows + columns) for rows, columns in tiny_model.SHAPES.values())
    assert facts.trainable_parameters == 2 * per_layer


def test_the_tokenizer_s_files_are_the_base_s(world: World) -> None:
    world.run()
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        assert filecmp.cmp(world.out / "tokenizer" / name, world.base / name, shallow=False)


def test_a_template_of_one_s_own_replaces_the_base_s(world: World) -> None:
    world.change("model", chat_template=tiny_model.CHATML.replace("{{ m.content }}", "({{ m.content }})"))
    world.run()
    text = tiny_model.tokenizer().decode(world.rows()[0]["input_ids"], skip_special_tokens=False)
    assert text.startswith("<|im_start|>user\n(Question")
    config = json.loads((world.out / "tokenizer/tokenizer_config.json").read_text())
    assert config["chat_template"] == world.spec.model.chat_template


def test_done_work_is_not_done_again(world: World) -> None:
    first = world.run()
    (world.out / "train.jsonl").unlink()
    assert world.run() == first
    assert not (world.out / "train.jsonl").exists()


def test_other_rows_start_the_run_over(world: World) -> None:
    first = world.run()
    adapter = Path(world.paths.stage("train")) / "adapter"
    adapter.mkdir(parents=True)
    world.dataset([chat("Wind?", "North.") for _ in range(5)])
    second = world.run()
    assert second.inputs != first.inputs
    assert not adapter.exists()


def test_another_base_starts_the_run_over(world: World) -> None:
    first = world.run()
    tiny_model.write(world.base, config={"rope_theta": 5000.0})
    assert world.run().inputs != first.inputs


def test_a_base_that_moved_is_the_same_base(world: World) -> None:
    first = world.run()
    shutil.copytree(world.base, world.root / "copy")
    shutil.rmtree(world.base)
    shutil.move(world.root / "copy", world.base)
    assert world.run().inputs == first.inputs


def test_rows_of_their_own_may_be_held_out(world: World) -> None:
    world.dataset([chat("Question 3?", "Answer 3."), chat("Wind?", "North.")], "validation")
    world.change("dataset", validation=ValidationSpec(source="pvc://rows/rows.jsonl"))
    result = world.run()
    assert (len(world.rows()), len(world.rows("validation.jsonl"))) == (10, 2)
    assert world.report()["duplicatesAcrossSplit"] == 1
    assert "1 held-out rows are also learned" in result.message


def test_long_rows_are_dropped_whole_and_counted(world: World) -> None:
    world.dataset([chat("Wind?", "N" * 500), *(chat("Wind?", "North.") for _ in range(9))])
    world.change("training", max_length=100)
    world.change("dataset", max_truncated_fraction=0.1)
    facts = world.run().dataset
    assert facts
    assert (facts.dropped, facts.kept, facts.longest) == ({"tooLong": 1}, 9, 526)
    parts = world.report()["train"]["tooLong"] + world.report()["validation"]["tooLong"]
    assert parts == [{"line": 1, "tokens": 526}]


def test_too_many_long_rows_fail_with_the_value_that_fits(world: World) -> None:
    world.dataset([chat("Wind?", "N" * 500), *(chat("Wind?", "North.") for _ in range(9))])
    world.change("training", max_length=100)
    error = world.fails()
    assert error.reason.name == "DatasetTooLong"
    assert error.message == (
        "1 of 10 rows are longer than training.maxLength 100 tokens; the longest has 526 (line 1)."
        " maxLength 526 keeps every row; dataset.maxTruncatedFraction 0.1 drops the long ones."
    )


def test_bad_rows_fail_before_the_base_is_looked_at(world: World) -> None:
    shutil.rmtree(world.base)
    world.dataset([{"messages": [{"role": "usr", "content": "Wind?"}]}])
    error = world.fails()
    assert error.reason.name == "DatasetInvalid"
    assert "rows.jsonl: 1 problem. line 1, messages[0]: unknown role 'usr'. Did you mean 'user'?" in error.message


def test_too_few_rows_to_hold_any_out(world: World) -> None:
    world.dataset([chat("Wind?", "North.")])
    error = world.fails()
    assert error.reason.name == "DatasetEmpty"
    assert "1 usable rows, and 2 are to be held out: nothing is left to learn from." in error.message


def test_a_missing_target_is_named_with_those_that_are_there(world: World) -> None:
    world.change("lora", targets=["q_proj", "qkv_proj"])
    error = world.fails()
    assert error.reason.name == "TargetNotFound"
    assert error.message == (
        "The model has no module named qkv_proj. It has: down_proj, gate_proj, k_proj, o_proj, q_proj, up_proj, v_proj."
    )


BASES: dict[str, tuple[dict[str, Any], str, str]] = {
    "a type that nobody knows": ({"model_type": "grand"}, "ModelUnsupported", "is of model type 'grand'"),
    "stored quantized": (
        {"quantization_config": {"quant_method": "gptq"}},
        "ModelUnsupported",
        "is stored quantized (gptq)",
    ),
}


@pytest.mark.parametrize("name", BASES)
def test_refuses_a_base_that_cannot_be_trained(world: World, name: str) -> None:
    config, reason, sentence = BASES[name]
    tiny_model.write(world.base, config=config)
    error = world.fails()
    assert error.reason.name == reason
    assert sentence in error.message


def test_a_base_without_a_template(world: World) -> None:
    (world.base / "chat_template.jinja").unlink()
    error = world.fails()
    assert error.reason.name == "EndOfTurnMismatch"
    assert error.message == "The tokenizer of pvc://bases/tiny has no chat template."


def test_a_base_without_safetensors(world: World) -> None:
    for path in world.base.glob("model*"):
        path.unlink()
    error = world.fails()
    assert error.reason.name == "ModelUnsupported"
    assert "has no model.safetensors and no model.safetensors.index.json" in error.message


def test_a_damaged_shard_is_named(world: World) -> None:
    shard = world.base / "model-00001-of-00002.safetensors"
    shard.write_bytes(shard.read_bytes()[:-1])
    error = world.fails()
    assert error.reason.name == "ModelCorrupt"
    assert "model-00001-of-00002.safetensors has" in error.message


def test_plain_text_is_learned_whole(world: World) -> None:
    world.dataset([{"text": f"The wind blows {number}."} for number in range(4)])
    world.run()
    row = world.rows()[0]
    assert row["labels"] == row["input_ids"]
    assert row["input_ids"][-1] == 258
    assert (row["prompt"], row["answer"]) == ([], "")
