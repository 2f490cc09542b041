"""What is missing is said with its name and key, and the job goes on by itself when it appears."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.core.simulation import FACTS, Cluster, job

TOKEN = {"model": {"source": "hf://a/b", "tokenSecretRef": {"name": "hf"}}}
ROWS = {"config_map_keys": {"rows": frozenset({"train.jsonl"})}}

CASES: dict[str, tuple[dict[str, Any], dict[str, Any], str, str, dict[str, Any]]] = {
    "secret": (
        TOKEN,
        ROWS,
        "SecretNotFound",
        "Secret team/hf does not exist; it must hold the key token.",
        {"secret_keys": {"hf": frozenset({"token"})}},
    ),
    "key of the secret": (
        TOKEN,
        {**ROWS, "secret_keys": {"hf": frozenset({"key", "a"})}},
        "SecretNotFound",
        "Secret team/hf lacks key token; it has a, key.",
        {"secret_keys": {"hf": frozenset({"token"})}},
    ),
    "key of the config map": (
        {},
        {"config_map_keys": {"rows": frozenset({"x"})}},
        "ConfigMapNotFound",
        "ConfigMap team/rows lacks key train.jsonl; it has x.",
        ROWS,
    ),
    "named claim": (
        {"storage": {"modelsClaim": "mine"}},
        ROWS,
        "ClaimNotFound",
        "PersistentVolumeClaim team/mine does not exist.",
        {"claims": {"mine": {}}},
    ),
    "claim of the model": (
        {"model": {"source": "pvc://weights/llama"}},
        ROWS,
        "ClaimNotFound",
        "PersistentVolumeClaim team/weights does not exist.",
        {"claims": {"weights": {}}},
    ),
}


@pytest.mark.parametrize(("spec", "there", "reason", "words", "appears"), CASES.values(), ids=CASES)
def test_missing(spec: dict[str, Any], there: dict[str, Any], reason: str, words: str, appears: dict[str, Any]) -> None:
    cluster = Cluster(job(**spec), replace(FACTS, **there))
    plan = cluster.settle()
    assert cluster.phase == "Pending"
    condition = cluster.condition("Prepared")
    assert condition["reason"] == reason
    assert condition["message"].startswith(words)
    assert cluster.events[-1].type == "Warning"
    assert not cluster.kind("Job")
    assert plan.requeue_after == 30
    cluster.facts = replace(cluster.facts, **appears)
    cluster.settle()
    assert cluster.phase == "Preparing"
