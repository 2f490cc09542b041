"""A base model of a few kilobytes, made without torch: two layers, a tokenizer of bytes, a ChatML template."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors.numpy import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

if TYPE_CHECKING:
    from pathlib import Path

Row = dict[str, Any]
HIDDEN, INNER, VOCABULARY, LAYERS = 8, 16, 259, 2
CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
CONFIG: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": HIDDEN,
    "intermediate_size": INNER,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": VOCABULARY,
    "eos_token_id": 258,
}
TOKENIZER: dict[str, Any] = {
    "tokenizer_class": "PreTrainedTokenizerFast",
    "bos_token": "<|im_start|>",
    "eos_token": "<|im_end|>",
    "pad_token": "<|endoftext|>",
    "model_max_length": 2048,
}
SHAPES = {
    "self_attn.q_proj": (HIDDEN, HIDDEN),
    "self_attn.k_proj": (HIDDEN // 2, HIDDEN),
    "self_attn.v_proj": (HIDDEN // 2, HIDDEN),
    "self_attn.o_proj": (HIDDEN, HIDDEN),
    "mlp.gate_proj": (INNER, HIDDEN),
    "mlp.up_proj": (INNER, HIDDEN),
    "mlp.down_proj": (HIDDEN, INNER),
}


def chat(question: str, answer: str) -> Row:
    """A row of a dataset for it."""
    return {"messages": [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]}


def write(folder: Path, *, template: str | None = CHATML, config: dict[str, Any] | None = None) -> Path:
    """Write the model into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "config.json", CONFIG | (config or {}))
    write_json(folder / "generation_config.json", {"eos_token_id": [258]})
    write_json(folder / "tokenizer_config.json", TOKENIZER)
    tokenizer().save(str(folder / "tokenizer.json"))
    if template is not None:
        (folder / "chat_template.jinja").write_text(template, encoding="utf-8")
    write_weights(folder)
    return folder


def write_json(path: Path, value: object) -> None:
    """A JSON file."""
    path.write_text(json.dumps(value), encoding="utf-8")


def write_weights(folder: Path) -> None:
    """Two shards and their index."""
    weight_map: dict[str, str] = {}
    for layer in range(LAYERS):
        name = f"model-{layer + 1:05}-of-{LAYERS:05}.safetensors"
        tensors = {f"model.layers.{layer}.{key}.weight": np.zeros(shape, np.float16) for key, shape in SHAPES.items()}
        if layer == 0:
            tensors["model.embed_tokens.weight"] = np.zeros((VOCABULARY, HIDDEN), np.float16)
        save_file(tensors, folder / name)
        weight_map |= dict.fromkeys(tensors, name)
    write_json(folder / "model.safetensors.index.json", {"weight_map": weight_map})


def tokenizer() -> Tokenizer:
    """One token for each byte, and three special ones."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    made = Tokenizer(models.BPE({sign: index for index, sign in enumerate(alphabet)}, []))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    special = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
    made.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])
    return made
