"""The operator's own process against the real API server, with no more rights than the chart gives it."""

from __future__ import annotations

import base64
import json
import ssl
import urllib.error
import urllib.request
import uuid
from typing import TYPE_CHECKING, Any

import pytest
from finetune_trainer.contract.progress import AUDIENCE

from tests.support.kube import Kube
from tests.support.objects import config_map, job, rows_text
from tests.support.operator import Operator, alone, rights, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOWHERE = {"nodeSelector": {"no-such-label": "here"}}
"""Pods that are made, and never run."""
REPORT = {"trainerStatus": {"progressPercentage": 40, "metrics": [{"name": "loss", "value": "0.5"}]}}


@pytest.fixture(scope="module")
def free() -> Iterator[None]:
    with alone(Kube("default")):
        yield


@pytest.fixture
def kube(request: pytest.FixtureRequest) -> Iterator[Kube]:
    request.getfixturevalue("free")
    everywhere, name = Kube("default"), f"io-{uuid.uuid4().hex[:6]}"
    everywhere.run("create", "namespace", name)
    everywhere.run("label", "namespace", name, "pod-security.kubernetes.io/enforce=restricted")
    yield Kube(name)
    everywhere.run("delete", "namespace", name, "--wait=false")


@pytest.fixture(params=["one namespace", "cluster-wide"])
def operator(request: pytest.FixtureRequest, kube: Kube, tmp_path: Path) -> Iterator[Operator]:
    watched = kube.namespace if request.param == "one namespace" else ""
    with rights(kube, watched, tmp_path / "kubeconfig"):
        made = Operator(kube, tmp_path / "kubeconfig", watched, tmp_path / "log")
        made.start()
        yield made
        made.stop()


def prepare_job(kube: Kube) -> dict[str, Any]:
    """The Job of the first stage, once it is there."""
    found: dict[str, Any] = until(lambda: kube.items("jobs"), "the prepare Job")[0]
    return found


def test_a_job_is_made_and_the_object_stays_the_users(kube: Kube, operator: Operator) -> None:
    kube.apply(config_map(rows_text()), job("tiny", **NOWHERE))
    made = prepare_job(kube)
    about = kube.wait_condition("ftj", "tiny", "Prepared", "Unschedulable")
    assert "No node takes the pod" in about
    owner = kube.json("get", "ftj", "tiny")
    assert made["metadata"]["ownerReferences"][0]["uid"] == owner["metadata"]["uid"]
    assert "finalizers" not in owner["metadata"]
    annotations = set(owner["metadata"].get("annotations", {}))
    assert annotations <= {"kubectl.kubernetes.io/last-applied-configuration"}
    assert "WARNING" not in operator.log
    assert "ERROR" not in operator.log


def test_a_restart_writes_nothing(kube: Kube, operator: Operator) -> None:
    kube.apply(config_map(rows_text()), job("tiny", **NOWHERE))
    kube.wait_condition("ftj", "tiny", "Prepared", "Unschedulable")
    before = [kube.json("get", kind, "-o", "json")["items"] for kind in ("ftj", "jobs", "cm", "networkpolicies")]
    assert operator.stop() == 0
    operator.start()
    until(operator.looks, "a look at the object")
    after = [kube.json("get", kind, "-o", "json")["items"] for kind in ("ftj", "jobs", "cm", "networkpolicies")]
    assert before == after


def test_a_deletion_needs_no_operator(kube: Kube, operator: Operator) -> None:
    kube.apply(config_map(rows_text()), job("tiny", **NOWHERE))
    prepare_job(kube)
    assert operator.stop() == 0
    kube.run("delete", "ftj", "tiny", "--timeout=10s")
    for kind in ("jobs", "pods", "networkpolicies"):
        until(lambda kind=kind: not kube.items(kind), f"no {kind} any more")  # type: ignore[misc]
    assert kube.names("pvc") == {"finetune-cache", "finetune-models"}


def test_what_was_missing_is_found_when_it_appears(kube: Kube, operator: Operator) -> None:
    kube.apply(job("tiny", **NOWHERE))
    assert "train.jsonl" in kube.wait_condition("ftj", "tiny", "Prepared", "ConfigMapNotFound")
    kube.apply(config_map(rows_text()))
    prepare_job(kube)
    assert operator.looks() > 1


def post(kube: Kube, token: str) -> int:
    """Report progress as a trainer does; the status of the answer."""
    secret = kube.json("get", "secret", "finetune-operator-progress-tls")
    trust = ssl.create_default_context(cadata=base64.b64decode(secret["data"]["ca.crt"]).decode())
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    request = urllib.request.Request("https://127.0.0.1:8443/v1/progress", json.dumps(REPORT).encode(), headers)
    try:
        with urllib.request.urlopen(request, context=trust, timeout=10) as answer:  # noqa: S310
            return int(answer.status)
    except urllib.error.HTTPError as refusal:
        return refusal.code


@pytest.mark.usefixtures("operator")
def test_only_a_pod_of_ours_may_report(kube: Kube) -> None:
    kube.apply(config_map(rows_text()), job("tiny", **NOWHERE))
    pod = until(lambda: kube.items("pods"), "the pod of the prepare Job")[0]["metadata"]["name"]
    bound = ("--bound-object-kind=Pod", f"--bound-object-name={pod}")
    tokens = {
        "of the pod, for us": kube.run("create", "token", "default", f"--audience={AUDIENCE}", *bound),
        "of the pod, for the API server": kube.run("create", "token", "default", *bound),
        "of no pod, for us": kube.run("create", "token", "default", f"--audience={AUDIENCE}"),
        "made up": "abc",
    }
    assert {whose: post(kube, token.strip()) for whose, token in tokens.items()} == {
        "of the pod, for us": 200,
        "of the pod, for the API server": 401,
        "of no pod, for us": 403,
        "made up": 401,
    }
