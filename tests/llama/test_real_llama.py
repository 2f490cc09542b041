"""The way from an adapter to a served version with llama.cpp's real converter, quantizer and server."""

from __future__ import annotations

import http.client
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from finetune_server import check_flags
from finetune_server.contract import ServeSpec
from finetune_server.convert.files import to_gguf
from finetune_server.convert.work import convert
from finetune_server.drain import drain, running_requests
from finetune_server.evaluate.rows import Question
from finetune_server.evaluate.server import LOCAL, LlamaServer, free_port
from finetune_server.evaluate.work import evaluate, measure
from finetune_server.gguf import read_gguf
from finetune_server.llama import build, known_architectures
from finetune_server.memory import plan_serving
from finetune_server.verify import verify
from finetune_trainer.contract.paths import MERGE_RESULT
from finetune_trainer.export.work import export
from finetune_trainer.files import sha256_of
from finetune_trainer.stage import StageError, read_result

if TYPE_CHECKING:
    from collections.abc import Iterator

    from finetune_trainer.contract.paths import RunPaths
    from finetune_trainer.contract.results import StageResult
    from finetune_trainer.contract.runspec import RunSpec

KEY = "made-up-key"
METRIC_LINE = re.compile(r"llamacpp:[a-z_]+ -?[0-9.e+-]+|# (HELP|TYPE) llamacpp:[a-z_]+ .+")


def test_the_build_knows_every_flag_that_we_emit(capsys: pytest.CaptureFixture[str]) -> None:
    assert check_flags.main() == 0, capsys.readouterr().err


def test_the_build_says_its_commit_and_its_architectures() -> None:
    assert re.fullmatch(r"[0-9a-f]{7,}", build())
    assert {"llama", "qwen35", "qwen35moe"} <= known_architectures()


def test_export_makes_a_whole_file_and_says_what_is_in_it(paths: RunPaths, exported: StageResult) -> None:
    facts = exported.export
    assert facts is not None
    path = Path(paths.stage("export")) / "model.gguf"
    assert (facts.bytes, facts.sha256) == (path.stat().st_size, sha256_of(path))
    assert facts.merged_modules == 4
    assert facts.fallback_tensors == 2, "down_proj has rows of 320 values"
    assert 4 < (facts.bits_per_weight or 0) < 9
    found = read_gguf(path).facts()
    assert (found.architecture, found.context_length, found.layers) == ("llama", 2048, 2)
    assert (found.key_value_heads, found.head_dim, found.hidden_size) == (2, 64, 256)
    assert sorted(path.name for path in Path(paths.stage("export")).iterdir()) == [
        "merge.json", "merged", "model.gguf", "result.json",
    ]  # fmt: skip


def test_the_base_is_converted_once(paths: RunPaths, exported: StageResult) -> None:
    assert exported.export is not None
    assert [path.name for path in Path(paths.base_gguf).glob("*.gguf")] == [f"{'d' * 16}-q4_k_m-{build()}.gguf"]


def test_what_is_done_is_not_done_again(spec: RunSpec, paths: RunPaths, exported: StageResult) -> None:
    assert export(spec, paths) == read_result(paths, "export", MERGE_RESULT)
    assert convert(spec, paths) == exported


def test_what_the_converter_writes_itself_needs_no_quantizer(
    paths: RunPaths, exported: StageResult, tmp_path: Path
) -> None:
    assert exported.inputs
    converted = to_gguf(Path(paths.cache) / "base", tmp_path / "out.gguf", "q8_0")
    assert converted.header.bits_per_weight == pytest.approx(8.5, abs=0.1)
    assert [path.name for path in tmp_path.iterdir()] == ["out.gguf"]


def test_what_cannot_be_converted_fails_with_the_converters_words(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"architectures": ["NoSuchModel"]}')
    with pytest.raises(StageError, match="NoSuchModel") as caught:
        to_gguf(tmp_path, tmp_path / "out.gguf", "q8_0")
    assert caught.value.reason.name == "ConversionFailed"
    assert not list(tmp_path.glob("out*"))


@pytest.fixture(scope="module")
def served(paths: RunPaths, exported: StageResult, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServeSpec]:
    """The exported file behind a key, with two slots."""
    assert exported.export is not None
    kept = tmp_path_factory.mktemp("served")
    (kept / "model.gguf").hardlink_to(Path(paths.stage("export")) / "model.gguf")
    (kept / "key").write_text(KEY + "\n")
    spec = ServeSpec(
        model_path=str(kept / "model.gguf"), alias="tiny", context_length=256, parallel=2, host=LOCAL, port=free_port(),
        api_key_file=str(kept / "key"), threads=2,
    )  # fmt: skip
    with LlamaServer(spec):
        yield spec


def _get(spec: ServeSpec, path: str, key: str | None, body: dict[str, Any] | None = None) -> tuple[int, str]:
    connection = http.client.HTTPConnection(spec.host, spec.port, timeout=60)
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    connection.request("POST" if body else "GET", path, json.dumps(body) if body else None, headers)
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    return response.status, text


@pytest.mark.parametrize(
    ("path", "key", "status"),
    [
        ("/health", None, 200),
        ("/metrics", None, 401),
        ("/metrics", "wrong", 401),
        ("/metrics", KEY, 200),
        ("/slots", None, 401),
        ("/slots", KEY, 200),
        ("/props", None, 401),
    ],
)
def test_only_the_probe_needs_no_key(served: ServeSpec, path: str, key: str | None, status: int) -> None:
    assert _get(served, path, key)[0] == status


def test_metrics_are_well_formed_and_have_what_drain_reads(served: ServeSpec) -> None:
    lines = _get(served, "/metrics", KEY)[1].splitlines()
    assert [line for line in lines if line and not METRIC_LINE.fullmatch(line)] == []
    assert {"llamacpp:requests_processing 0", "llamacpp:requests_deferred 0"} <= set(lines)


def test_every_slot_has_the_whole_context(served: ServeSpec) -> None:
    assert [slot["n_ctx"] for slot in json.loads(_get(served, "/slots", KEY)[1])] == [256, 256]


def test_the_alias_is_the_models_name(served: ServeSpec) -> None:
    assert json.loads(_get(served, "/v1/models", KEY)[1])["data"][0]["id"] == "tiny"


def test_a_chat_needs_the_key(served: ServeSpec) -> None:
    body = {"messages": [{"role": "user", "content": "the invoice"}], "max_tokens": 4}
    assert _get(served, "/v1/chat/completions", None, body)[0] == 401
    status, text = _get(served, "/v1/chat/completions", KEY, body)
    assert status == 200
    assert json.loads(text)["choices"][0]["finish_reason"] in {"stop", "length"}


def test_a_request_over_the_context_is_refused_and_the_next_one_answered(served: ServeSpec) -> None:
    long = {"messages": [{"role": "user", "content": "garden " * 400}], "max_tokens": 4}
    assert _get(served, "/v1/chat/completions", KEY, long)[0] == 400
    short = {"messages": [{"role": "user", "content": "garden"}], "max_tokens": 4}
    assert _get(served, "/v1/chat/completions", KEY, short)[0] == 200


def test_the_plan_covers_what_the_server_takes(served: ServeSpec) -> None:
    taken = _peak_bytes(f"--port\0{served.port}\0")
    assert 0 < taken <= plan_serving(served, read_gguf(Path(served.model_path)).facts()).host_bytes


def _peak_bytes(argument: str) -> int:
    """The most that the process with this argument has held."""
    (process,) = [path.parent for path in Path("/proc").glob("[0-9]*/cmdline") if argument in _text(path)]
    (line,) = [line for line in _text(process / "status").splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) * 1024


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:  # it has ended meanwhile
        return ""


def test_an_idle_server_is_drained(served: ServeSpec) -> None:
    key_file = Path(served.api_key_file or "")
    assert running_requests(served.port, key_file) == 0
    assert drain(10, served.port, key_file, quiet=0.1)


def test_a_file_that_cannot_be_loaded_fails_with_the_servers_words(tmp_path: Path) -> None:
    (tmp_path / "model.gguf").write_bytes(b"GGUF rubbish")
    spec = ServeSpec(
        model_path=str(tmp_path / "model.gguf"), alias="x", host=LOCAL, port=free_port(), api_key_file=None
    )
    with pytest.raises(StageError, match="ended while it loaded") as caught, LlamaServer(spec):
        pass
    assert caught.value.reason.name == "ServerFailed"


def test_a_question_that_is_refused_is_an_empty_answer(served: ServeSpec) -> None:
    """The server wants a key, and we have none."""
    answer = LlamaServer(served).ask(Question([{"role": "user", "content": "x"}], "x", 1), 4)
    assert (answer.text, answer.stopped, answer.refusal[:3]) == ("", False, "401")


def test_a_model_that_answers_nothing_at_all_is_not_published(spec: RunSpec, served: ServeSpec) -> None:
    """No question fits into the context: every row has more words than it."""
    questions = [Question([{"role": "user", "content": "garden " * 9000}], "x", line) for line in (1, 2)]
    with pytest.raises(StageError, match="refused every question") as caught:
        measure(spec, Path(served.model_path), questions, [])
    assert caught.value.reason.name == "ServerFailed"


def test_evaluate_publishes_a_version_that_verifies(
    spec: RunSpec, paths: RunPaths, exported: StageResult, tmp_path: Path
) -> None:
    result = evaluate(spec, paths)
    facts = result.evaluate
    assert facts is not None
    assert exported.inputs == result.inputs
    assert (facts.base.rows, facts.tuned.rows, facts.context_length) == (5, 5, 2048)
    assert (facts.tuned.tokens_per_second or 0) > 0
    assert facts.version == f"{paths.run_digest[:16]}-cccccccc"
    version = Path(paths.version(facts.version))
    assert verify(version, tmp_path / "verified.json") == f"{facts.version}: 7 files are whole."
    answers = [json.loads(line) for line in (version / "answers.jsonl").read_text().splitlines()]
    assert [answer["expected"] for answer in answers] == [json.dumps({"euros": n}) for n in range(1, 6)]
    assert "Scores on 5 held-out rows" in (version / "report.md").read_text()
    _only_what_is_needed_is_left(paths)
    assert evaluate(spec, paths).evaluate == facts, "it was published, so it is not measured again"


def _only_what_is_needed_is_left(paths: RunPaths) -> None:
    assert sorted(path.name for path in Path(paths.stage("export")).iterdir()) == ["merge.json", "result.json"]
    assert (Path(paths.stage("train")) / "adapter").is_dir()
