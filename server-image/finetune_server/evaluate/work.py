"""The evaluation as a stage: both GGUFs and the held-out rows in, a published version out."""

from __future__ import annotations

import json
import logging
import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from finetune_trainer.contract.paths import GGUF, REPORT
from finetune_trainer.contract.results import DatasetFacts, EvaluateFacts, ExportFacts, Scores, StageResult, TrainFacts
from finetune_trainer.stage import StageError, now, read_result, require_result

from finetune_server.contract import EVALUATION_PARALLEL, evaluation_spec
from finetune_server.convert.work import base_gguf, convert_base, require_facts
from finetune_server.evaluate.metrics import Answer, score
from finetune_server.evaluate.picture import loss_picture
from finetune_server.evaluate.report import Compared, report
from finetune_server.evaluate.rows import Question, read_questions
from finetune_server.evaluate.server import LOCAL, LlamaServer, free_port
from finetune_server.gguf import read_gguf
from finetune_server.llama import build
from finetune_server.manifest import Manifest
from finetune_server.publish import publish, published

if TYPE_CHECKING:
    from finetune_trainer.contract.paths import RunPaths
    from finetune_trainer.contract.runspec import RunSpec

    from finetune_server.contract import ServeSpec

log = logging.getLogger("finetune")

_LIBRARIES = ("finetune-server", "finetune-trainer", "numpy", "safetensors", "torch", "transformers")


@dataclass(frozen=True)
class Measured:
    """One model's answers."""

    answers: list[Answer]
    scores: Scores


def evaluate(spec: RunSpec, paths: RunPaths) -> StageResult:
    """Measure and publish; a version that was already published from these inputs is returned as it is."""
    started = now()
    inputs = require_result(paths, "export").inputs
    done = read_result(paths, "evaluate")
    folder = Path(paths.version_of(inputs))
    if done is not None and done.inputs == inputs and published(folder):
        return done
    manifest = published(folder) or _measure_and_publish(spec, paths, inputs, folder)
    _remove_intermediates(paths)
    return StageResult(
        stage="evaluate", run_digest=paths.run_digest, inputs=inputs, message=_message(manifest),
        started_at=started, finished_at=now(), evaluate=manifest.evaluate,
    )  # fmt: skip


def _measure_and_publish(spec: RunSpec, paths: RunPaths, inputs: str, folder: Path) -> Manifest:
    questions = read_questions(Path(paths.stage("prepare")) / "validation.jsonl", spec.evaluation.samples)
    tuned_gguf = Path(paths.stage("export")) / GGUF
    base = measure(spec, _base(spec, paths), questions, _template_args(spec))
    tuned = measure(spec, tuned_gguf, questions, [])
    facts = EvaluateFacts(
        base=base.scores,
        tuned=tuned.scores,
        version=folder.name,
        context_length=read_gguf(tuned_gguf).facts().context_length,
    )
    manifest = _manifest(spec, paths, inputs, facts)
    texts = _texts(spec, paths, manifest, _compare(questions, base, tuned))
    return publish(manifest, folder, tuned_gguf, Path(paths.stage("train")) / "adapter", texts)


def measure(spec: RunSpec, gguf: Path, questions: list[Question], extra_args: list[str]) -> Measured:
    """Serve one model and ask it everything."""
    # The server ends before the pool does: whatever goes wrong, no thread then waits for an answer any more.
    with ThreadPoolExecutor(EVALUATION_PARALLEL) as pool, LlamaServer(serve_spec(spec, gguf, extra_args)) as server:
        start = time.monotonic()
        answers = list(pool.map(lambda question: server.ask(question, spec.evaluation.max_tokens), questions))
        seconds = time.monotonic() - start
    if answers and all(answer.refusal for answer in answers):
        raise StageError("ServerFailed", f"llama-server refused every question ({gguf}): {answers[0].refusal}")
    scores = score([question.expected for question in questions], answers, seconds)
    log.info("%s: %s", gguf.name, scores.to_json())
    return Measured(answers, scores)


def serve_spec(spec: RunSpec, gguf: Path, extra_args: list[str]) -> ServeSpec:
    """As the contract says, here and on this pod's cores."""
    here = {"host": LOCAL, "port": free_port(), "threads": len(os.sched_getaffinity(0)), "extra_args": extra_args}
    return evaluation_spec(spec, str(gguf)).model_copy(update=here)


def _base(spec: RunSpec, paths: RunPaths) -> Path:
    """The base's GGUF; made again if somebody emptied the cache."""
    convert_base(spec, paths)
    return base_gguf(spec, paths, require_facts(paths))


def _template_args(spec: RunSpec) -> list[str]:
    """The base is asked with the template that the tuned model carries in its file."""
    return [] if spec.model.chat_template is None else ["--chat-template", spec.model.chat_template]


def _manifest(spec: RunSpec, paths: RunPaths, inputs: str, facts: EvaluateFacts) -> Manifest:
    return Manifest(
        version=facts.version,
        run_digest=paths.run_digest,
        inputs=inputs,
        created_at=now(),
        base=spec.model.source,
        model=require_facts(paths),
        dataset=require_result(paths, "prepare").dataset or DatasetFacts(),
        recipe=spec.recipe,
        adapter=spec.lora,
        train=require_result(paths, "train").train or TrainFacts(),
        export=require_result(paths, "export").export or ExportFacts(),
        evaluate=facts,
        trainer_image=spec.trainer_image,
        server_image=spec.server_image,
        versions=_versions(paths),
    )


def _versions(paths: RunPaths) -> dict[str, str]:
    installed = {dist.metadata["Name"]: dist.version for dist in metadata.distributions()}
    adapter = json.loads((Path(paths.stage("train")) / "adapter" / "adapter_config.json").read_text(encoding="utf-8"))
    known = {name: installed[name] for name in _LIBRARIES if name in installed}
    return known | {"llama.cpp": build(), "peft": adapter.get("peft_version", "unknown")}


def _texts(spec: RunSpec, paths: RunPaths, manifest: Manifest, answers: list[Compared]) -> dict[str, str]:
    losses = _read_losses(Path(paths.stage("train")) / "losses.jsonl")
    return {
        "answers.jsonl": "".join(json.dumps(answer.as_json(), ensure_ascii=False) + "\n" for answer in answers),
        "loss.svg": loss_picture(losses),
        REPORT: report(spec, manifest, losses, answers),
    }


def _read_losses(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _compare(questions: list[Question], base: Measured, tuned: Measured) -> list[Compared]:
    rows = zip(questions, base.answers, tuned.answers, strict=True)
    return [Compared(ask.prompt, ask.expected, before.text, after.text, ask.line) for ask, before, after in rows]


def _remove_intermediates(paths: RunPaths) -> None:
    """What the published version does not need."""
    shutil.rmtree(Path(paths.stage("train")) / "checkpoints", ignore_errors=True)
    shutil.rmtree(Path(paths.stage("export")) / "merged", ignore_errors=True)
    (Path(paths.stage("export")) / GGUF).unlink(missing_ok=True)


def _message(manifest: Manifest) -> str:
    base, tuned = manifest.evaluate.base, manifest.evaluate.tuned
    return (
        f"Published {manifest.version}: {tuned.exact_match:.0%} of {tuned.rows} held-out answers are exact; "
        f"the base's are {base.exact_match:.0%}."
    )
