"""The stage from top to bottom. What can fail cheaply comes first: rows, then tokenizer, then weights."""

from __future__ import annotations

import json
import logging
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from finetune_trainer.contract.paths import SOURCES_MOUNT, STAGES
from finetune_trainer.contract.results import ModelFacts, StageResult
from finetune_trainer.prepare import facts, inputs, tokenizer
from finetune_trainer.prepare.labels import Labeller
from finetune_trainer.prepare.report import Counted
from finetune_trainer.prepare.rows import Rows, check_lengths, tokenize
from finetune_trainer.sources import address, shards
from finetune_trainer.sources.models import CONFIG
from finetune_trainer.stage import StageError, now, read_result

if TYPE_CHECKING:
    from finetune_trainer.contract.paths import RunPaths
    from finetune_trainer.contract.runspec import RunSpec
    from finetune_trainer.prepare.split import Split
    from finetune_trainer.sources.models import BaseModel

log = logging.getLogger("finetune")


def prepare(spec: RunSpec, paths: RunPaths, sources: Path = Path(SOURCES_MOUNT)) -> StageResult:
    """Check the data, fetch the base, and leave what train needs."""
    started = now()
    reports, split = inputs.read_rows(spec, paths, sources)
    log.info("%d rows to learn from, %d to hold out.", len(split.train), len(split.validation))
    model = inputs.open_model(spec, paths, sources)
    digest = inputs.digest(model.revision, reports)
    model.fetch_small()
    earlier = _earlier(paths, digest)
    if earlier:
        log.info("Prepared before: nothing has changed since %s.", earlier.finished_at)
        model.fetch_weights()  # costs nothing, unless somebody has emptied the cache
        return earlier
    folder = Path(paths.stage("prepare"))
    config = _config(spec, model)
    counted = Counted(reports, split, *_tokenized(spec, _labeller(spec, model, folder), split, folder))
    found = _weights(spec, model, config)
    counted.write(folder / "report.json")
    return StageResult(
        stage="prepare",
        run_digest=paths.run_digest,
        inputs=digest,
        message=f"{counted.sentence()} Base: {found.architecture}, {found.parameters:,} parameters.",
        started_at=started,
        finished_at=now(),
        dataset=counted.facts,
        model=found,
    )


def _earlier(paths: RunPaths, digest: str) -> StageResult | None:
    """The result of the same work. If the sources have changed since, nothing that was made of them counts."""
    result = read_result(paths, "prepare")
    if result is None or result.inputs == digest:
        return result
    log.warning("The sources have changed since this run was prepared: it starts over.")
    for stage in STAGES:
        shutil.rmtree(paths.stage(stage), ignore_errors=True)
    return None


def _config(spec: RunSpec, model: BaseModel) -> dict[str, Any]:
    """config.json, once it is clear that the model can be trained. The index already names the modules."""
    config: dict[str, Any] = json.loads((model.folder / CONFIG).read_text(encoding="utf-8"))
    facts.check_config(config, spec.model)
    if (model.folder / shards.INDEX).exists():
        facts.check_targets(shards.weight_map(model.folder), spec)
    return config


def _labeller(spec: RunSpec, model: BaseModel, folder: Path) -> Labeller:
    """With the tokenizer from the folder that train will load it from."""
    tokenizer.copy_files(model.folder, folder / "tokenizer", spec.model.chat_template)
    return Labeller(tokenizer.Tokenizer.load(folder / "tokenizer", spec.model), spec.training.responses_only)


def _tokenized(spec: RunSpec, labeller: Labeller, split: Split, folder: Path) -> tuple[Rows, Rows]:
    if any(row.messages for row in split.train) and not labeller.tokenizer.inner.chat_template:
        raise StageError("EndOfTurnMismatch", f"The tokenizer of {spec.model.source} has no chat template.")
    limit, dataset = spec.training.max_length, address.file_name(spec.dataset.source)
    held_out = address.file_name(spec.dataset.validation.source or spec.dataset.source)
    train = tokenize(split.train, labeller, limit, dataset, folder / "train.jsonl")
    validation = tokenize(split.validation, labeller, limit, held_out, folder / "validation.jsonl")
    check_lengths((train, validation), spec)
    return train, validation


def _weights(spec: RunSpec, model: BaseModel, config: dict[str, Any]) -> ModelFacts:
    tensors = model.fetch_weights()
    facts.check_targets([tensor.name for tensor in tensors], spec)
    return facts.model_facts(model, config, tensors, spec.lora)
