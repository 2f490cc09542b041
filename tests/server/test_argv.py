"""llama-server's command line."""

from __future__ import annotations

import pytest
from finetune_server.argv import EMITTED_FLAGS, forbidden_args, server_argv
from finetune_server.check_flags import missing_flags
from finetune_server.contract import ServeSpec

SPEC = ServeSpec(model_path="/models/versions/v/model.gguf", alias="invoices")
CASES: dict[str, tuple[dict[str, object], dict[str, str]]] = {
    "the context is for each request, and the server gets it times its slots": (
        {"context_length": 4096, "parallel": 3},
        {"--ctx-size": "12288", "--parallel": "3"},
    ),
    "one slot is said too, for the build's default is four": ({}, {"--parallel": "1", "--ctx-size": "16384"}),
    "the model and its name": ({}, {"--model": "/models/versions/v/model.gguf", "--alias": "invoices"}),
    "reachable from outside of the pod": ({}, {"--host": "0.0.0.0", "--port": "8080"}),  # noqa: S104 - a pod
    "the key is in a file": ({}, {"--api-key-file": "/run/secrets/finetune/api-key"}),
    "thinking is off unless it is asked for": ({}, {"--reasoning": "off"}),
    "thinking on": ({"reasoning": "on"}, {"--reasoning": "on"}),
    "both halves of the cache have one type": (
        {"kv_cache_type": "q8_0"},
        {"--cache-type-k": "q8_0", "--cache-type-v": "q8_0"},
    ),
    "no prompt cache on a CPU": ({}, {"--cache-ram": "0", "--ctx-checkpoints": "4"}),
    "no prompt cache and no mapped file where CPU and GPU share one memory": (
        {"acceleration": "cuda", "unified_memory": True},
        {"--cache-ram": "0", "--load-mode": "none", "--n-gpu-layers": "all", "--flash-attn": "on"},
    ),
    "a small prompt cache beside a card": ({"acceleration": "cuda"}, {"--cache-ram": "2048", "--n-gpu-layers": "all"}),
    "a CPU has no layers on a GPU": ({}, {"--n-gpu-layers": "0", "--flash-attn": "auto"}),
    "llama.cpp changes nothing by itself": ({}, {"--fit": "off"}),
    "threads as the pod's limit says": ({"threads": 3}, {"--threads": "3"}),
}  # fmt: skip


def _value(argv: list[str], flag: str) -> str:
    assert argv.count(flag) == 1
    return argv[argv.index(flag) + 1]


@pytest.mark.parametrize("sentence", CASES)
def test_argv(sentence: str) -> None:
    settings, expected = CASES[sentence]
    argv = server_argv(SPEC.model_copy(update=settings))
    assert {flag: _value(argv, flag) for flag in expected} == expected


def test_metrics_are_always_on() -> None:
    assert "--metrics" in server_argv(SPEC)


@pytest.mark.parametrize(
    ("settings", "absent"),
    [
        ({"api_key_file": None}, "--api-key-file"),
        ({}, "--load-mode"),
        ({}, "--threads"),
    ],
)
def test_what_is_left_out(settings: dict[str, object], absent: str) -> None:
    assert absent not in server_argv(SPEC.model_copy(update=settings))


def test_own_arguments_of_the_user_come_last() -> None:
    argv = server_argv(SPEC.model_copy(update={"extra_args": ["--top-k", "20"]}))
    assert argv[-2:] == ["--top-k", "20"]


def test_every_flag_that_is_emitted_is_checked_at_image_build() -> None:
    specs = [
        SPEC.model_copy(update={"acceleration": acceleration, "unified_memory": unified, "threads": threads})
        for acceleration in ("cpu", "cuda")
        for unified in (True, False)
        for threads in (None, 2)
    ]
    emitted = {arg for spec in specs for arg in server_argv(spec) if arg.startswith("-")}
    assert emitted == EMITTED_FLAGS


@pytest.mark.parametrize(
    ("extra", "owner"),
    [
        (["--api-key", "secret"], "auth"),
        (["--api_key", "secret"], "auth"),
        (["--api-key=secret"], "auth"),
        (["-m", "/other.gguf"], "the version"),
        (["-hf", "someone/model"], "the version"),
        (["--host", "::"], "the Service and the probes"),
        (["-c", "1"], "contextLength"),
        (["-np", "8"], "parallel"),
        (["--tools", "all"], "safety, since requests could run programs or read files"),
    ],
)
def test_arguments_that_are_ours_are_named(extra: list[str], owner: str) -> None:
    assert forbidden_args(extra) == {extra[0]: owner}


def test_other_arguments_are_the_users() -> None:
    assert forbidden_args(["--top-k", "20", "--temp", "0.2", "--no-warmup"]) == {}


def test_a_flag_that_the_build_does_not_know_is_named() -> None:
    known = "\n".join(f"{flag} N   something" for flag in EMITTED_FLAGS - {"--ctx-checkpoints"})
    assert missing_flags(known) == {"--ctx-checkpoints"}
    assert missing_flags(known + "\n-ctxcp, --ctx-checkpoints N") == set()
