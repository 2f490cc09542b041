"""What serving needs, as arithmetic. Pure.

Weights are the file. The key-value cache is 2 * layers * heads * head size * context * slots * bytes per value.
The compute buffer holds one micro-batch: its logits, and a handful of activations of the hidden size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from finetune_trainer.memory import MemoryPlan

if TYPE_CHECKING:
    from finetune_server.contract import GgufFacts, KvCacheType, ServeSpec

MIB = 2**20
MICRO_BATCH = 512
"""llama-server's own default, in tokens."""
VALUE_BYTES: dict[KvCacheType, float] = {"f16": 2, "bf16": 2, "q8_0": 34 / 32, "q4_0": 18 / 32}
"""Quantized blocks hold 32 values and their scale."""

_FLOAT = 4
_ACTIVATIONS = 16
"""Hidden-size rows alive at once, of one token, at the widest point of a layer."""
_LARGE_VOCABULARY = 262_144
"""Assumed where the vocabulary is not known: the largest in common use."""
_LARGE_HIDDEN = 8192
_CUDA_CONTEXT = 512 * MIB
_PROCESS = 256 * MIB
"""Program, tokenizer, HTTP threads, requests in flight."""


def plan_serving(spec: ServeSpec, model: GgufFacts) -> MemoryPlan:
    """What this server needs with this model, part by part."""
    model_parts = {"weights": model.bytes, "kvCache": kv_cache_bytes(spec, model), "compute": compute_bytes(model)}
    host = {"process": _PROCESS, "promptCache": spec.prompt_cache_mib * MIB}
    if spec.acceleration == "cpu":
        return MemoryPlan(host={**model_parts, **_without_zeros(host)})
    return MemoryPlan(host=_without_zeros(host), device={**model_parts, "cudaContext": _CUDA_CONTEXT})


def kv_cache_bytes(spec: ServeSpec, model: GgufFacts) -> int:
    """Keys and values of every token of every slot; layers with linear attention count too, so it is never too low."""
    values = 2 * model.layers * model.key_value_heads * model.head_dim * spec.total_context
    return round(values * VALUE_BYTES[spec.kv_cache_type])


def compute_bytes(model: GgufFacts) -> int:
    """One micro-batch."""
    row = (model.vocab_size or _LARGE_VOCABULARY) + _ACTIVATIONS * (model.hidden_size or _LARGE_HIDDEN)
    return MICRO_BATCH * row * _FLOAT


def _without_zeros(parts: dict[str, int]) -> dict[str, int]:
    return {name: size for name, size in parts.items() if size}
