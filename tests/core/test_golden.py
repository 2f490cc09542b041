"""Golden manifests: what the API server gets, to read and to diff. `pytest tests/core --golden` writes them anew."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.core.simulation import FACTS, SPARK, Cluster, job
from tests.core.test_inferenceservice import Served, done, service

if TYPE_CHECKING:
    from collections.abc import Callable

    from finetune_operator.core.types import Manifest

FOLDER = Path(__file__).parent / "golden"
ON_SPARK = replace(FACTS, nodes=(SPARK,), settings=replace(FACTS.settings, default_platform="auto"))


def _job(stage: str) -> Manifest:
    model = {"source": "hf://Qwen/Qwen3-0.6B@main", "tokenSecretRef": {"name": "hf"}}
    facts = replace(ON_SPARK, secret_keys={"hf": frozenset({"token"})})
    cluster = Cluster(job(model=model, activeDeadlineSeconds=86400), facts).until(stage)
    return _without_uid(cluster.running)


def _first(kind: str) -> Manifest:
    cluster = Cluster(job()).until("prepare")
    return _without_uid(cluster.kind(kind)[0])


def _policy(stage: str) -> Manifest:
    cluster = Cluster(job()).until(stage)
    return _without_uid(cluster.kind("NetworkPolicy")[-1])


def _server(kind: str) -> Manifest:
    served = Served(service(), ON_SPARK).job(done()).admit()
    return served.kind(kind)[0]


def _without_uid(manifest: Manifest) -> Manifest:
    """As it was planned: the uid is the API server's."""
    meta = {key: value for key, value in manifest["metadata"].items() if key != "uid"}
    return {**manifest, "metadata": meta}


GOLDEN: dict[str, Callable[[], Manifest]] = {
    "prepare": lambda: _job("prepare"),
    "train": lambda: _job("train"),
    "export": lambda: _job("export"),
    "evaluate": lambda: _job("evaluate"),
    "configmap": lambda: _first("ConfigMap"),
    "claim": lambda: _first("PersistentVolumeClaim"),
    "networkpolicy-online": lambda: _policy("prepare"),
    "networkpolicy-offline": lambda: _policy("train"),
    "deployment": lambda: _server("Deployment"),
    "service": lambda: _server("Service"),
    "secret": lambda: _server("Secret"),
}


class Readable(yaml.SafeDumper):
    """No anchors: every manifest stands by itself."""

    def ignore_aliases(self, _data: object) -> bool:
        return True


@pytest.mark.parametrize("name", GOLDEN)
def test_manifest_is_the_golden_one(name: str, request: pytest.FixtureRequest) -> None:
    text = yaml.dump(GOLDEN[name](), Dumper=Readable, sort_keys=True, width=200)
    path = FOLDER / f"{name}.yaml"
    if request.config.getoption("--golden", default=False):
        FOLDER.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
