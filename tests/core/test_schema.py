"""Everything that the core writes into a status is in the CRD's schema: the API server would drop it in silence."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
import yaml
from finetune_trainer.contract.progress import Metric, TrainerStatus

from tests.core.simulation import Cluster, job
from tests.core.test_inferenceservice import serving

if TYPE_CHECKING:
    from collections.abc import Callable

CRDS = Path(__file__).parents[2] / "crds"
METRICS = {"step": 5, "totalSteps": 9, "loss": 0.5, "epoch": 0.5, "evalLoss": 0.6, "resumedFromStep": 2}


def strict(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema, with unknown fields refused instead of dropped."""
    closed = {key: strict(value) if isinstance(value, dict) else value for key, value in schema.items()}
    return closed | ({"additionalProperties": False} if isinstance(schema.get("properties"), dict) else {})


def status_schema(plural: str) -> dict[str, Any]:
    crd = yaml.safe_load((CRDS / f"finetune.dev_{plural}.yaml").read_text(encoding="utf-8"))
    schema: dict[str, Any] = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]
    return strict(schema)


def training() -> dict[str, Any]:
    cluster = Cluster(job(retryToken="1")).until("train")
    metrics = [Metric(name=name, value=str(value)) for name, value in METRICS.items()]
    report = TrainerStatus(estimated_remaining_seconds=60, metrics=metrics)
    cluster.facts = replace(cluster.facts, progress=report)
    cluster.settle()
    return cluster.status


def succeeded() -> dict[str, Any]:
    cluster = Cluster(job(serve={"name": "chat"})).until("evaluate")
    cluster.succeed()
    cluster.settle()
    return cluster.status


def failed() -> dict[str, Any]:
    cluster = Cluster(job()).until("train")
    cluster.fail("DiskFull", 85)
    cluster.settle()
    return cluster.status


JOBS: dict[str, Callable[[], dict[str, Any]]] = {"training": training, "succeeded": succeeded, "failed": failed}


@pytest.mark.parametrize("name", JOBS)
def test_status_of_a_job(name: str) -> None:
    jsonschema.validate(JOBS[name](), status_schema("finetunejobs"))


def test_status_of_a_service() -> None:
    jsonschema.validate(serving().object["status"], status_schema("inferenceservices"))
