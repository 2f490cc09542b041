"""The health scripts for Argo CD, run by a Lua interpreter on statuses as the operator writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from lupa import LuaRuntime

ARGOCD = Path(__file__).resolve().parents[2] / "charts/finetune-operator/argocd"


def condition(type_: str, status: str, reason: str = "Reason", message: str = "") -> dict[str, Any]:
    return {"type": type_, "status": status, "reason": reason, "message": message}


def obj(phase: str | None = None, *conditions: dict[str, Any], observed: int = 2, **status: Any) -> dict[str, Any]:
    base = {} if phase is None else {"phase": phase, "observedGeneration": observed, "conditions": list(conditions)}
    return {"metadata": {"generation": 2}, "status": base | status}


JOBS = {
    "no status yet": (obj(), "Progressing", "Waiting for the operator"),
    "the newest change was not seen yet": (
        obj("Succeeded", condition("Succeeded", "True"), observed=1),
        "Progressing",
        "Waiting for the operator to see the newest change",
    ),
    "training": (
        obj("Training", progress={"display": {"step": "64/102"}}),
        "Progressing",
        "Training, step 64/102",
    ),
    "queued": (obj("Queued"), "Progressing", "Queued"),
    "failed": (
        obj("Failed", condition("Failed", "True", "DatasetInvalid", "line 3")),
        "Degraded",
        "DatasetInvalid: line 3",
    ),
    "succeeded": (obj("Succeeded", condition("Succeeded", "True", message="done")), "Healthy", "done"),
    "suspended": (obj("Suspended", condition("Suspended", "True", message="by spec")), "Suspended", "by spec"),
}

SERVICES = {
    "no status yet": (obj(), "Progressing", "Waiting for the operator"),
    "waiting for its job": (
        obj("WaitingForModel", condition("ModelResolved", "False", "WaitingForJob", "FineTuneJob/x is Training")),
        "Progressing",
        "FineTuneJob/x is Training",
    ),
    "loading": (obj("Loading"), "Progressing", "Loading"),
    "ready": (obj("Ready", condition("Ready", "True", message="serving")), "Healthy", "serving"),
    "degraded": (
        obj("Ready", condition("Ready", "True"), condition("Degraded", "True", "NoGpu", "runs on the CPU")),
        "Degraded",
        "NoGpu: runs on the CPU",
    ),
    "failed": (
        obj("Failed", condition("Ready", "False", "ModelCorrupt", "bad file")),
        "Degraded",
        "ModelCorrupt: bad file",
    ),
    "suspended": (obj("Suspended", condition("Suspended", "True", message="by spec")), "Suspended", "by spec"),
}


def health(script: str, value: dict[str, Any]) -> tuple[str, str]:
    lua = LuaRuntime(unpack_returned_tuples=True)
    lua.globals().obj = lua.table_from(value, recursive=True)
    answer = lua.execute((ARGOCD / script).read_text(encoding="utf-8"))
    return answer["status"], answer["message"]


@pytest.mark.parametrize(("value", "status", "message"), JOBS.values(), ids=JOBS.keys())
def test_health_of_a_job(value: dict[str, Any], status: str, message: str) -> None:
    assert health("finetunejob.lua", value) == (status, message)


@pytest.mark.parametrize(("value", "status", "message"), SERVICES.values(), ids=SERVICES.keys())
def test_health_of_a_service(value: dict[str, Any], status: str, message: str) -> None:
    assert health("inferenceservice.lua", value) == (status, message)
