"""Tiny models with real PEFT adapters."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

TARGETS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A Llama of two layers in several bf16 shards, with a file that is not weights."""
    torch.manual_seed(1)
    config = LlamaConfig(
        hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        vocab_size=128, tie_word_embeddings=False,
    )  # fmt: skip
    folder = tmp_path / "base"
    LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(folder, max_shard_size="60KB")
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "Strange", "chat_template": "old"}')
    return folder


MakeAdapter = Callable[..., Path]


@pytest.fixture
def make_adapter(base: Path, tmp_path: Path) -> MakeAdapter:
    """Save an adapter as training leaves it: B is no longer zero."""

    def make(**settings: Any) -> Path:
        torch.manual_seed(2)
        model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
        tuned = get_peft_model(model, LoraConfig(**({"r": 4, "lora_alpha": 8, "target_modules": TARGETS} | settings)))
        for name, parameter in tuned.named_parameters():
            if "lora_B" in name or "lora_embedding_B" in name:
                torch.nn.init.normal_(parameter, std=0.05)
        tuned.save_pretrained(tmp_path / "adapter", save_embedding_layers=False)
        return tmp_path / "adapter"

    return make
