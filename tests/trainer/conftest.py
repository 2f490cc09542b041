"""A tiny random Llama, a few random rows, and a finished prepare stage: what the train stage begins with."""

from __future__ import annotations

import os
import shutil
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import pytest
import torch
from finetune_trainer import stage
from finetune_trainer.contract.paths import RunPaths
from finetune_trainer.contract.results import ModelFacts, StageResult
from finetune_trainer.contract.runspec import DatasetSpec, Identity, LoraSpec, ModelSpec, RunSpec, TrainingSpec
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from tests.support.training import Run, write_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """torch, transformers and TRL warn about one another; that is not ours to mend."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore"))


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama of 2 layers with a tokenizer of 256 words."""
    folder = tmp_path_factory.mktemp("base")
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=256,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=128,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=0,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    words = Tokenizer(models.WordLevel({"<pad>": 0, "<s>": 1, "</s>": 2} | {f"w{n}": n for n in range(3, 256)}, "w3"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="<pad>", bos_token="<s>", eos_token="</s>", model_max_length=128
    )
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def make_run(base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Run]]:
    """Make a run in a folder of its own, which run_stage then takes for the pod's mounts."""

    def make(name: str = "run", recipe: str = "trl", device: str = "cpu", **training: Any) -> Run:
        root = tmp_path / name
        settings = {"batch_size": 2, "gradient_accumulation": 2, "max_length": 64, "max_steps": 8}
        settings |= {"learning_rate": 1e-2, "warmup_steps": 1} | training
        spec = RunSpec(
            identity=Identity(namespace="default", name=name, uid="1"),
            model=ModelSpec(source="hf://someone/tiny@main"),
            dataset=DatasetSpec(source="configMap://rows/rows.jsonl"),
            lora=LoraSpec(rank=4, alpha=8, dropout=0.1),
            training=TrainingSpec.model_validate(settings),
            recipe=recipe,
            device=device,
        )
        paths = RunPaths(spec.digest(), models=PurePosixPath(root / "models"), cache=PurePosixPath(root / "cache"))
        prepared = Path(paths.stage("prepare"))
        prepared.mkdir(parents=True)
        write_rows(prepared / "train.jsonl", 14)
        write_rows(prepared / "validation.jsonl", 3)
        shutil.copytree(base, prepared / "tokenizer", ignore=shutil.ignore_patterns("*.safetensors"))
        facts = ModelFacts(path=str(base), parameters=100_000)
        result = StageResult(stage="prepare", run_digest=paths.run_digest, inputs="data-1", model=facts)
        (prepared / "result.json").write_text(result.to_json())
        (root / "runspec.json").write_text(spec.to_json())
        (root / "termination").write_text("")
        monkeypatch.setattr(stage, "RUNSPEC_PATH", str(root / "runspec.json"))
        monkeypatch.setattr(stage, "TERMINATION_LOG", str(root / "termination"))
        monkeypatch.setattr(stage, "RunPaths", lambda _digest: paths)
        return Run(spec, paths, root)

    before = dict(os.environ)
    yield make
    os.environ.clear()
    os.environ.update(before)
