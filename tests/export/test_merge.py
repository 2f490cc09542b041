"""The streaming merge against PEFT's own, and every way in which it must refuse."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from finetune_trainer.export import merge as merging
from finetune_trainer.export.checkpoint import open_checkpoint
from finetune_trainer.export.work import merge_and_prove
from finetune_trainer.prepare.tokenizer import copy_files
from finetune_trainer.stage import StageError
from peft import PeftModel
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, Qwen3_5Config, Qwen3_5ForConditionalGeneration

MakeAdapter = Callable[..., Path]


def _weights(folder: Path) -> dict[str, torch.Tensor]:
    return {name: tensor for path in folder.glob("*.safetensors") for name, tensor in load_file(path).items()}


def _merged_by_peft(base: Path, adapter: Path) -> dict[str, torch.Tensor]:
    model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    merged = PeftModel.from_pretrained(model, adapter).merge_and_unload()
    return {name: tensor.to(torch.bfloat16) for name, tensor in merged.state_dict().items()}


@pytest.mark.parametrize(
    "settings", [{}, {"use_rslora": True}, {"target_modules": ["q_proj"]}, {"r": 1, "lora_alpha": 3}]
)
def test_merged_weights_equal_pefts(
    base: Path, make_adapter: MakeAdapter, tmp_path: Path, settings: dict[str, Any]
) -> None:
    adapter = make_adapter(**settings)
    proof = merge_and_prove(base, adapter, tmp_path / "merged", None)
    assert proof.modules == 2 * len(settings.get("target_modules", range(7)))
    ours, theirs = _weights(tmp_path / "merged"), _merged_by_peft(base, adapter)
    assert ours.keys() == theirs.keys()
    # PEFT multiplies whole matrices and we multiply some rows: a sum may fall on the other side of a rounding edge.
    assert all(torch.allclose(ours[name].float(), theirs[name].float(), rtol=2**-7, atol=1e-6) for name in ours)


def test_merged_model_answers_as_base_with_adapter(base: Path, make_adapter: MakeAdapter, tmp_path: Path) -> None:
    adapter = make_adapter()
    merge_and_prove(base, adapter, tmp_path / "merged", None)
    tokens = torch.arange(20).unsqueeze(0)
    before = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    with torch.no_grad():
        plain = before(tokens).logits
        tuned = PeftModel.from_pretrained(before, adapter)(tokens).logits
        merged = AutoModelForCausalLM.from_pretrained(tmp_path / "merged", dtype=torch.float32)(tokens).logits
    assert (merged - tuned).norm() < 0.02 * (plain - tuned).norm()


def test_files_keep_names_headers_and_bytes(base: Path, make_adapter: MakeAdapter, tmp_path: Path) -> None:
    merge_and_prove(base, make_adapter(), tmp_path / "merged", None)
    before, after = open_checkpoint(base), open_checkpoint(tmp_path / "merged")
    assert len(before.shards) > 2
    assert [shard.head for shard in before.shards] == [shard.head for shard in after.shards]
    assert {path.name for path in base.iterdir()} == {path.name for path in after.folder.iterdir()}
    others = [path for path in base.iterdir() if path.suffix != ".safetensors"]
    assert all(path.read_bytes() == (after.folder / path.name).read_bytes() for path in others)
    assert torch.equal(_weights(base)["lm_head.weight"], _weights(after.folder)["lm_head.weight"])


def test_only_the_chat_template_may_differ(base: Path, make_adapter: MakeAdapter, tmp_path: Path) -> None:
    (base / "chat_template.json").write_text('{"chat_template": "old"}')
    copy_files(base, tmp_path / "tokenizer", "new")
    merge_and_prove(base, make_adapter(), tmp_path / "merged", tmp_path / "tokenizer")
    config = json.loads((tmp_path / "merged" / "tokenizer_config.json").read_text())
    assert config == {"tokenizer_class": "Strange", "chat_template": "new"}
    assert (tmp_path / "merged" / "chat_template.jinja").read_text() == "new"
    assert not (tmp_path / "merged" / "chat_template.json").exists()


def test_rounding_is_measured(base: Path, make_adapter: MakeAdapter, tmp_path: Path) -> None:
    loud = merge_and_prove(base, make_adapter(lora_alpha=64), tmp_path / "merged", None)
    quiet = merge_and_prove(base, make_adapter(lora_alpha=0.01), tmp_path / "merged", None)
    assert 0 < loud.largest_rounding < 0.05
    assert quiet.largest_rounding > 0.3


def _leave_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the merge forget one module, as a wrong name mapping would."""
    original = merging._content

    def forgetful(reader: Any, tensor: Any, update: Any) -> Iterator[bytes]:
        return original(reader, tensor, None if tensor.name == name else update)

    monkeypatch.setattr(merging, "_content", forgetful)


def test_one_module_left_out_is_caught(
    base: Path, make_adapter: MakeAdapter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _leave_out("model.layers.1.mlp.up_proj.weight", monkeypatch)
    with pytest.raises(StageError, match=r"layers\.1\.mlp\.up_proj\.weight is not the rounded sum"):
        merge_and_prove(base, make_adapter(), tmp_path / "merged", None)
    assert not (tmp_path / "merged").exists()


def test_wrong_scale_is_caught(
    base: Path, make_adapter: MakeAdapter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("finetune_trainer.export.adapter._scale", lambda _config: 8 / math.sqrt(4))
    with pytest.raises(StageError, match="our update and PEFT's differ"):
        merge_and_prove(base, make_adapter(), tmp_path / "merged", None)


def _damage(adapter: Path, change: Callable[[dict[str, torch.Tensor]], None]) -> None:
    weights = load_file(adapter / "adapter_model.safetensors")
    change(weights)
    save_file(weights, adapter / "adapter_model.safetensors")


Q_PROJ = "base_model.model.model.layers.0.self_attn.q_proj"


def _rename(weights: dict[str, torch.Tensor]) -> None:
    for half in ("lora_A", "lora_B"):
        weights[f"base_model.model.model.blocks.0.q_proj.{half}.weight"] = weights.pop(f"{Q_PROJ}.{half}.weight")


def _lose_b(weights: dict[str, torch.Tensor]) -> None:
    del weights[f"{Q_PROJ}.lora_B.weight"]


def _break(weights: dict[str, torch.Tensor]) -> None:
    weights[f"{Q_PROJ}.lora_B.weight"][0, 0] = math.nan


def _turn(weights: dict[str, torch.Tensor]) -> None:
    weights[f"{Q_PROJ}.lora_A.weight"] = weights[f"{Q_PROJ}.lora_A.weight"][:, :32].contiguous()


def _untrain(weights: dict[str, torch.Tensor]) -> None:
    for name, tensor in weights.items():
        if "lora_B" in name:
            tensor.zero_()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (_rename, r"changes model\.blocks\.0\.q_proj\.weight, which is not in"),
        (_lose_b, "keys that the merge does not know"),
        (_break, "infinite or not a number"),
        (_turn, "the adapter's update has"),
        (_untrain, "changes nothing"),
    ],
)
def test_damaged_adapter_is_refused(
    base: Path,
    make_adapter: MakeAdapter,
    tmp_path: Path,
    change: Callable[[dict[str, torch.Tensor]], None],
    sentence: str,
) -> None:
    adapter = make_adapter()
    _damage(adapter, change)
    with pytest.raises(StageError, match=sentence) as caught:
        merge_and_prove(base, adapter, tmp_path / "merged", None)
    assert caught.value.reason.name == "MergeNotProven"


@pytest.mark.parametrize("settings", [{"use_dora": True}, {"rank_pattern": {"q_proj": 2}}, {"bias": "all"}])
def test_other_kinds_of_adapter_are_refused(
    base: Path, make_adapter: MakeAdapter, tmp_path: Path, settings: dict[str, Any]
) -> None:
    with pytest.raises(StageError, match="asks for what the merge does not cover"):
        merge_and_prove(base, make_adapter(**settings), tmp_path / "merged", None)


def test_tied_embedding_target_is_refused(base: Path, make_adapter: MakeAdapter, tmp_path: Path) -> None:
    adapter = make_adapter(target_modules=["lm_head"])
    config = json.loads((base / "config.json").read_text())
    (base / "config.json").write_text(json.dumps(config | {"tie_word_embeddings": True}))
    with pytest.raises(StageError, match="ties its embeddings"):
        merge_and_prove(base, adapter, tmp_path / "merged", None)


def test_cut_shard_is_named(base: Path) -> None:
    shard = next(base.glob("*.safetensors"))
    shard.write_bytes(shard.read_bytes()[:-10])
    with pytest.raises(StageError, match=r"bytes; its header says") as caught:
        open_checkpoint(base)
    assert caught.value.reason.name == "ModelCorrupt"


def test_names_go_back_through_transformers_conversion(base: Path, make_adapter: MakeAdapter, tmp_path: Path) -> None:
    """A vision-language checkpoint, of which the text model alone was trained: its tensors have another prefix."""
    text = {
        "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "vocab_size": 128, "head_dim": 16, "layer_types": ["full_attention"] * 2,
    }  # fmt: skip
    vision = {"depth": 1, "hidden_size": 32, "intermediate_size": 32, "num_heads": 2, "out_hidden_size": 64}
    for path in base.iterdir():
        path.unlink()
    Qwen3_5ForConditionalGeneration(Qwen3_5Config(text_config=text, vision_config=vision)).save_pretrained(base)
    adapter = make_adapter(target_modules=["q_proj", "down_proj"])
    assert merge_and_prove(base, adapter, tmp_path / "merged", None).modules == 4
    changed = [
        name for name, tensor in _weights(tmp_path / "merged").items() if not torch.equal(tensor, _weights(base)[name])
    ]
    assert len(changed) == 4
    assert all(name.startswith("model.language_model.layers") for name in changed)
