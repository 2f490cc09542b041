"""transformers really loads through the eager loader, and a version that does not is caught."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import torch
import transformers.modeling_layers
from finetune_trainer.loading.patch import eager_loading, shards
from finetune_trainer.stage import StageError
from safetensors import safe_open
from transformers import LlamaConfig, LlamaForCausalLM, modeling_utils

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model in several shards."""
    folder = tmp_path_factory.mktemp("model")
    config = LlamaConfig(
        vocab_size=512,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
    )
    LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(folder, max_shard_size="100KB")
    assert len(shards(folder)) > 1
    return folder


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_weights_are_those_of_the_default_way(model: Path, dtype: torch.dtype) -> None:
    expected = LlamaForCausalLM.from_pretrained(model, dtype=dtype).state_dict()
    with eager_loading("cpu") as served:
        got = LlamaForCausalLM.from_pretrained(model, dtype=dtype, device_map={"": "cpu"}).state_dict()
    served.require(model)
    assert served.files == shards(model)
    assert served.tensors == set(json.loads((model / "model.safetensors.index.json").read_text())["weight_map"])
    assert got.keys() == expected.keys()
    assert all(torch.equal(got[name], expected[name]) for name in expected)


def test_afterwards_transformers_is_as_before() -> None:
    with eager_loading("cpu"):
        assert modeling_utils.safe_open is not safe_open
        assert transformers.modeling_layers.safe_open is not safe_open
    assert modeling_utils.safe_open is safe_open
    assert transformers.modeling_layers.safe_open is safe_open


def test_a_wrapper_of_somebody_else_is_replaced_and_put_back(monkeypatch: pytest.MonkeyPatch, model: Path) -> None:
    def wrapper(*_args: object, **_kwargs: object) -> None:
        raise AssertionError("the wrapper was called")

    monkeypatch.setattr(modeling_utils, "safe_open", wrapper)
    with eager_loading("cpu") as served:
        LlamaForCausalLM.from_pretrained(model)
    served.require(model)
    assert modeling_utils.safe_open is wrapper


def test_weights_that_came_another_way_are_noticed(model: Path) -> None:
    with eager_loading("cpu") as served:
        LlamaForCausalLM.from_pretrained(model, disable_mmap=True)
    with pytest.raises(StageError, match="without the eager loader") as caught:
        served.require(model)
    assert caught.value.reason.name == "LoaderBypassed"


def test_a_transformers_that_opens_files_elsewhere_is_refused_before_the_load(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(modeling_utils, "safe_open")
    with pytest.raises(StageError, match="opens weights elsewhere"), eager_loading("cpu"):
        pass
