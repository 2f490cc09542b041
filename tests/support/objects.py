"""Small objects for tests on the node."""

from __future__ import annotations

import json
from typing import Any

Manifest = dict[str, Any]

TINY_MODEL = "hf://finetune-test/tiny-llama"
ROWS = [
    {"messages": [{"role": "user", "content": f"Say {n}"}, {"role": "assistant", "content": str(n)}]} for n in range(40)
]


def rows_text(rows: list[Any] | None = None) -> str:
    """Rows as JSON Lines."""
    return "".join(json.dumps(row) + "\n" for row in (ROWS if rows is None else rows))


def config_map(text: str, name: str = "rows") -> Manifest:
    """A dataset as a ConfigMap: configMap://rows/train.jsonl."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"train.jsonl": text}}


def job(name: str = "tiny", **spec: Any) -> Manifest:
    """A job that runs the whole way in a minute: a model of two small layers, four steps."""
    base = {
        "model": {"source": TINY_MODEL},
        "dataset": {"source": "configMap://rows/train.jsonl", "validation": {"rows": 4}},
        "training": {"maxSteps": 4, "batchSize": 2, "gradientAccumulation": 1, "maxLength": 128},
        "evaluation": {"samples": 2, "maxTokens": 8},
        "export": {"quantization": "q8_0"},
    }
    return {
        "apiVersion": "finetune.dev/v1alpha1",
        "kind": "FineTuneJob",
        "metadata": {"name": name},
        "spec": base | spec,
    }


def service(name: str = "chat", job_name: str = "tiny", **spec: Any) -> Manifest:
    """A service of its own that refers to a job."""
    return {
        "apiVersion": "finetune.dev/v1alpha1",
        "kind": "InferenceService",
        "metadata": {"name": name},
        "spec": {"model": {"fromFineTuneJob": job_name}, "contextLength": 512} | spec,
    }
