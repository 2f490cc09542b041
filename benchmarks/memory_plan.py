"""The memory plan of a training run beside its measured peak, for both recipes. Needs a GPU.

Makes a random Llama of the wanted size, trains some steps by the product's own train stage, and prints one line of
JSON per recipe: planned and measured bytes on the device, their ratio, and tokens per second.

    python -m benchmarks.memory_plan --layers 16 --hidden 2048 --inner 8192 --batch 4 --length 2048
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path, PurePosixPath

import torch
from finetune_trainer.contract.paths import RunPaths
from finetune_trainer.contract.results import ModelFacts, StageResult
from finetune_trainer.contract.runspec import DatasetSpec, Identity, LoraSpec, ModelSpec, RunSpec, TrainingSpec
from finetune_trainer.memory import plan_training
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from tests.support.training import PROGRAM

VOCABULARY = 32000


def arguments() -> argparse.Namespace:
    """The size of the model and of the run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in {"layers": 16, "hidden": 2048, "inner": 8192, "batch": 4, "length": 2048, "steps": 40}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--recipes", nargs="+", default=["trl", "unsloth"])
    return parser.parse_args()


def make_model(folder: Path, size: argparse.Namespace) -> ModelFacts:
    """A random model in bf16, and what prepare would say about it."""
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=size.hidden,
        intermediate_size=size.inner,
        num_hidden_layers=size.layers,
        num_attention_heads=size.hidden // 64,
        num_key_value_heads=size.hidden // 256,
        max_position_embeddings=size.length,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=0,
    )
    with torch.device("cuda"):
        model = LlamaForCausalLM(config).to(torch.bfloat16)
    model.save_pretrained(folder, max_shard_size="1GB")
    words = Tokenizer(models.WordLevel({"<pad>": 0, "<s>": 1, "</s>": 2, "w": 3}, "w"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="<pad>", bos_token="<s>", eos_token="</s>"
    ).save_pretrained(folder)
    shapes = {name: list(tensor.shape) for name, tensor in model.named_parameters()}
    targets = LoraSpec().targets
    matrices = [shape for name, shape in shapes.items() if name.split(".")[-2] in targets]
    return ModelFacts(
        path=str(folder),
        parameters=sum(tensor.numel() for tensor in model.parameters()),
        bytes=sum(tensor.numel() * 2 for tensor in model.parameters()),
        largest_tensor_bytes=max(tensor.numel() * 2 for tensor in model.parameters()),
        hidden_size=size.hidden,
        layers=size.layers,
        vocab_size=VOCABULARY,
        intermediate_size=size.inner,
        key_value_heads=size.hidden // 256,
        head_dim=64,
        trainable_parameters=sum(LoraSpec().rank * sum(shape) for shape in matrices),
    )


def prepare(root: Path, recipe: str, facts: ModelFacts, size: argparse.Namespace) -> RunSpec:
    """A run whose prepare stage has finished: full rows, all of them learned."""
    training = TrainingSpec(
        max_steps=size.steps, batch_size=size.batch, gradient_accumulation=1, max_length=size.length
    )
    spec = RunSpec(
        identity=Identity(namespace="bench", name=recipe, uid="1"),
        model=ModelSpec(source="hf://bench/random"),
        dataset=DatasetSpec(source="pvc://bench/rows.jsonl"),
        training=training,
        recipe=recipe,
        device="cuda",
        platform="nvidia-gpu",
    )
    claims = {"models": PurePosixPath(root / "models"), "cache": PurePosixPath(root / "cache")}
    folder = Path(RunPaths(spec.digest(), **claims).stage("prepare"))
    folder.mkdir(parents=True)
    draw = random.Random(0)  # noqa: S311 - rows, not secrets
    rows = [[draw.randrange(4, VOCABULARY) for _ in range(size.length)] for _ in range(size.batch * size.steps)]
    lines = [json.dumps({"input_ids": ids, "labels": ids, "prompt": [], "answer": "", "line": 1}) for ids in rows]
    (folder / "train.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "validation.jsonl").write_text(lines[0] + "\n")
    (folder / "tokenizer").symlink_to(facts.path)
    result = StageResult(stage="prepare", run_digest=spec.digest(), inputs="bench", model=facts)
    (folder / "result.json").write_text(result.to_json())
    (root / "runspec.json").write_text(spec.to_json())
    (root / "termination").write_text("")
    return spec


def measure(recipe: str, facts: ModelFacts, size: argparse.Namespace) -> dict[str, object]:
    """One run, planned and measured."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        spec = prepare(root, recipe, facts, size)
        done = subprocess.run([sys.executable, "-c", PROGRAM, root], capture_output=True, text=True, check=False)
        if done.returncode:
            return {"recipe": recipe, "failed": (done.stdout + done.stderr)[-3000:]}
        train = json.loads((root / "termination").read_text())["result"]["train"]
    plan, peak = plan_training(facts, spec), train["peakDeviceBytes"]
    return {
        "recipe": recipe,
        "parameters": facts.parameters,
        "plannedDeviceBytes": plan.device_bytes - plan.device["context"],
        "peakDeviceBytes": peak,
        "ratio": round((plan.device_bytes - plan.device["context"]) / peak, 3),
        "plannedHostBytes": plan.host_bytes,
        "peakHostBytes": train["peakHostBytes"],
        "tokensPerSecond": train.get("tokensPerSecond"),
    }


def main() -> int:
    """Measure, and print."""
    size = arguments()
    with tempfile.TemporaryDirectory() as folder:
        facts = make_model(Path(folder), size)
        torch.cuda.empty_cache()
        for recipe in size.recipes:
            print(json.dumps(measure(recipe, facts, size)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
