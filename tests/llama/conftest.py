"""A tiny random Llama with an adapter, on claims as the stages see them, and the real llama.cpp."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path, PurePosixPath

import pytest
import sentencepiece
import torch
from finetune_server.convert.work import convert
from finetune_trainer.contract.paths import MERGE_RESULT, RESULT, RunPaths, Stage
from finetune_trainer.contract.results import DatasetFacts, ModelFacts, StageResult, TrainFacts
from finetune_trainer.contract.runspec import (
    DatasetSpec,
    EvaluationSpec,
    ExportSpec,
    Identity,
    ModelSpec,
    RunSpec,
    TrainingSpec,
)
from finetune_trainer.export.work import export
from finetune_trainer.stage import write_file
from peft import LoraConfig, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM

INPUTS = "c" * 64
WORDS = "the invoice of the garden shop is due on monday and costs twelve euros".split()  # noqa: SIM905 - a sentence
TEMPLATE = "{% for m in messages %}<s>{{ m['role'] }}: {{ m['content'] }}</s>{% endfor %}<s>assistant:"
ROWS = [
    {"prompt": [{"role": "user", "content": f"it costs {n} euros"}], "answer": json.dumps({"euros": n}), "line": n}
    for n in range(1, 7)
]


@pytest.fixture(scope="session", autouse=True)
def llama_folder() -> Path:
    """Where `make images` leaves llama.cpp's programs; a test that needs them fails without."""
    home = os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")
    cache = Path(os.environ.get("FINETUNE_CACHE", Path(home) / "finetune-operator"))
    folder = Path(os.environ.setdefault("FINETUNE_LLAMA_CPP", str(cache / "llama.cpp")))
    assert (folder / "bin" / "llama-server").exists(), f"{folder} has no llama.cpp: `make images` builds it."
    return folder


@pytest.fixture(scope="session")
def spec() -> RunSpec:
    return RunSpec(
        identity=Identity(namespace="team", name="tiny", uid="u"),
        model=ModelSpec(source="hf://tiny/llama"),
        dataset=DatasetSpec(source="configMap://data/rows.jsonl"),
        training=TrainingSpec(max_length=128),
        evaluation=EvaluationSpec(samples=5, max_tokens=16),
        export=ExportSpec(quantization="q4_k_m"),
    )


@pytest.fixture(scope="session")
def paths(spec: RunSpec, tmp_path_factory: pytest.TempPathFactory) -> RunPaths:
    """Claims on which prepare and train have done their part."""
    root = tmp_path_factory.mktemp("claims")
    paths = RunPaths(spec.digest(), models=PurePosixPath(root / "models"), cache=PurePosixPath(root / "cache"))
    base = root / "cache" / "base"
    model = _base(base)
    _adapter(model, Path(paths.stage("train")) / "adapter")
    write_file(Path(paths.stage("train")) / "losses.jsonl", '{"step": 1, "loss": 2.5}\n{"step": 2, "loss": 1.5}\n')
    write_file(Path(paths.stage("prepare")) / "validation.jsonl", "".join(json.dumps(row) + "\n" for row in ROWS))
    leave(
        paths,
        _result(paths, "prepare", dataset=DatasetFacts(read=60), model=ModelFacts(revision="d" * 40, path=str(base))),
    )
    leave(paths, _result(paths, "train", train=TrainFacts(steps=2)))
    return paths


@pytest.fixture(scope="session")
def exported(spec: RunSpec, paths: RunPaths) -> StageResult:
    """Merged, converted and quantized."""
    leave(paths, export(spec, paths), MERGE_RESULT)
    result = convert(spec, paths)
    leave(paths, result)
    return result


def leave(paths: RunPaths, result: StageResult, name: str = RESULT) -> None:
    """Leave a result as run_stage does."""
    write_file(Path(paths.stage(result.stage) / name), result.to_json())


def _result(paths: RunPaths, stage: Stage, **facts: object) -> StageResult:
    return StageResult.model_validate({"stage": stage, "run_digest": paths.run_digest, "inputs": INPUTS, **facts})


def _base(folder: Path) -> LlamaForCausalLM:
    """Rows of 256 values, so that K-quants fit, but for one tensor in each layer that they do not fit."""
    torch.manual_seed(1)
    folder.mkdir(parents=True)
    vocabulary = _tokenizer(folder)
    config = LlamaConfig(
        hidden_size=256, intermediate_size=320, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        vocab_size=vocabulary, max_position_embeddings=2048, bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    model = LlamaForCausalLM(config).to(torch.bfloat16)
    model.save_pretrained(folder)
    return model.float()


def _tokenizer(folder: Path) -> int:
    """A real SentencePiece model, learned from one sentence, with a byte for everything else."""
    written = io.BytesIO()
    sentences = iter([" ".join(WORDS[start:] + WORDS[:start]) for start in range(len(WORDS))])
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=sentences, model_writer=written, vocab_size=320, model_type="bpe", byte_fallback=True,
        hard_vocab_limit=False, minloglevel=2,
    )  # fmt: skip
    (folder / "tokenizer.model").write_bytes(written.getvalue())
    config = {"tokenizer_class": "LlamaTokenizer", "bos_token": "<s>", "eos_token": "</s>", "chat_template": TEMPLATE}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return int(sentencepiece.SentencePieceProcessor(model_proto=written.getvalue()).get_piece_size())


def _adapter(model: LlamaForCausalLM, folder: Path) -> None:
    torch.manual_seed(2)
    tuned = get_peft_model(model, LoraConfig(r=4, lora_alpha=8, target_modules=["q_proj", "down_proj"]))
    for name, parameter in tuned.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.05)
    tuned.save_pretrained(folder)
