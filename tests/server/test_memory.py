"""The serving plan, against sums done by hand."""

from __future__ import annotations

import pytest
from finetune_server.contract import GgufFacts, ServeSpec
from finetune_server.memory import kv_cache_bytes, plan_serving

SPEC = ServeSpec(model_path="m", alias="a", context_length=16384)
LLAMA_8B = GgufFacts(
    bytes=4_920_000_000, layers=32, key_value_heads=8, head_dim=128, hidden_size=4096, vocab_size=128_256
)
SMOLLM2 = GgufFacts(bytes=105_000_000, layers=30, key_value_heads=3, head_dim=64, hidden_size=576, vocab_size=49_152)


@pytest.mark.parametrize(
    ("model", "settings", "expected"),
    [
        (LLAMA_8B, {}, 2 * 2**30),  # 128 KiB a token
        (LLAMA_8B, {"parallel": 4}, 8 * 2**30),
        (LLAMA_8B, {"kv_cache_type": "q8_0"}, 2 * 2**30 * 34 // 64),
        (LLAMA_8B, {"kv_cache_type": "q4_0"}, 2 * 2**30 * 18 // 64),
        (SMOLLM2, {"context_length": 2048}, 2048 * 23_040),
    ],
)
def test_key_value_cache(model: GgufFacts, settings: dict[str, object], expected: int) -> None:
    assert kv_cache_bytes(SPEC.model_copy(update=settings), model) == expected


def test_on_a_cpu_everything_is_host_memory() -> None:
    plan = plan_serving(SPEC, SMOLLM2)
    assert plan.device == {}
    assert set(plan.host) == {"weights", "kvCache", "compute", "process"}


def test_beside_a_card_the_model_is_on_the_card() -> None:
    plan = plan_serving(SPEC.model_copy(update={"acceleration": "cuda"}), LLAMA_8B)
    assert set(plan.device) == {"weights", "kvCache", "compute", "cudaContext"}
    assert set(plan.host) == {"process", "promptCache"}
    assert 7.3e9 < plan.device_bytes < 8.3e9


def test_an_unknown_vocabulary_is_taken_for_a_large_one() -> None:
    unknown = LLAMA_8B.model_copy(update={"vocab_size": 0})
    assert plan_serving(SPEC, unknown).host["compute"] > plan_serving(SPEC, LLAMA_8B).host["compute"]
