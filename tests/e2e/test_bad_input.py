"""Each mistake has its own reason and a message that is enough to mend it; what can heal by itself does."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.kube import condition
from tests.support.objects import ROWS, config_map, job, rows_text

if TYPE_CHECKING:
    from tests.support.kube import Kube

SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "hf"}, "stringData": {"token": "hf_test"}}


def source(model: str, **more: Any) -> dict[str, Any]:
    return {"model": {"source": model} | more}


def test_a_bad_row_fails_at_once_and_is_named(kube: Kube) -> None:
    rows: list[Any] = [*ROWS[:2], {"messages": [{"role": "humman", "content": "x"}]}, *ROWS[2:]]
    kube.apply(config_map(rows_text(rows)), job(platform="nvidia-gpu"))
    failed = kube.wait("ftj", "tiny", lambda seen: seen.get("status", {}).get("phase") == "Failed", 90, "Failed")

    said = condition(failed, "Failed")
    assert said["reason"] == "DatasetInvalid"
    for told in ("train.jsonl", "line 3", "humman", "user"):
        assert told in said["message"]
    (only,) = failed["status"]["stages"]
    assert (only["name"], only["attempt"], only["outcome"]) == ("prepare", 1, "Failed")
    assert not [pod for pod in kube.items("pods") if "nvidia.com/gpu" in json.dumps(pod["spec"])]


FAILURES: dict[str, tuple[dict[str, Any], str, tuple[str, ...]]] = {
    "a model that does not exist": (
        source("hf://finetune-test/no-such-model"),
        "ModelNotFound",
        ("finetune-test/no-such-model",),
    ),
    "a revision that does not exist": (
        source("hf://finetune-test/tiny-llama@v9"),
        "ModelNotFound",
        ("v9",),
    ),
    "a gated model without a token": (
        source("hf://finetune-test/gated-llama"),
        "ModelGated",
        ("finetune-test/gated-llama",),
    ),
    "a target that the model has not": (
        {"method": {"lora": {"targets": ["query"]}}},
        "TargetNotFound",
        ("query", "q_proj"),
    ),
    "rows longer than maxLength": (
        {"training": {"maxSteps": 1, "maxLength": 16}},
        "DatasetTooLong",
        ("16",),
    ),
    "a dataset on a private address": (
        {"dataset": {"source": "https://10.42.0.1:8089/x.jsonl"}},
        "AddressNotAllowed",
        ("10.42.0.1",),
    ),
}


@pytest.mark.parametrize(("spec", "reason", "told"), FAILURES.values(), ids=FAILURES.keys())
def test_what_only_a_person_can_mend_fails(
    kube: Kube, spec: dict[str, Any], reason: str, told: tuple[str, ...]
) -> None:
    kube.apply(config_map(rows_text()), job(**spec))
    message = kube.wait_condition("ftj", "tiny", "Failed", reason)
    for word in told:
        assert word in message
    assert len(kube.json("get", "ftj", "tiny")["status"]["stages"]) == 1, "it is not tried again"


def test_a_missing_secret_is_waited_for(kube: Kube) -> None:
    kube.apply(config_map(rows_text()), job(**source("hf://finetune-test/gated-llama", tokenSecretRef={"name": "hf"})))
    message = kube.wait_condition("ftj", "tiny", "Prepared", "SecretNotFound")
    assert f"{kube.namespace}/hf" in message
    assert "token" in message
    assert kube.names("jobs") == set()

    kube.apply(SECRET)
    kube.wait_condition("ftj", "tiny", "Prepared", "Prepared", seconds=120)


def test_a_missing_config_map_is_waited_for(kube: Kube) -> None:
    kube.apply(job())
    message = kube.wait_condition("ftj", "tiny", "Prepared", "ConfigMapNotFound")
    assert f"{kube.namespace}/rows" in message
    assert "train.jsonl" in message

    kube.apply(config_map(rows_text()))
    kube.wait_condition("ftj", "tiny", "Prepared", "Prepared", seconds=120)


def test_a_missing_claim_is_waited_for(kube: Kube) -> None:
    kube.apply(config_map(rows_text()), job(storage={"modelsClaim": "mine"}))
    message = kube.wait_condition("ftj", "tiny", "Prepared", "ClaimNotFound")
    assert f"{kube.namespace}/mine" in message

    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "mine"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    kube.apply(claim)
    kube.wait_condition("ftj", "tiny", "Prepared", "Prepared", seconds=120)


def test_a_gpu_that_is_not_there_is_said_at_once(kube: Kube) -> None:
    """The node says nvidia.com/gpu: 1, and torch sees none: never a silent run on the CPU."""
    kube.apply(config_map(rows_text()), job(platform="nvidia-gpu"))
    kube.wait_condition("ftj", "tiny", "Failed", "GpuNotVisible", seconds=180)
    (pod,) = kube.items("pods", "finetune.dev/stage=train")
    assert pod["spec"]["runtimeClassName"] == "nvidia"
    assert pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] in {"1", 1}


def test_two_names_of_63_characters_that_differ_in_the_last_letter(kube: Kube) -> None:
    names = ["a" * 62 + "x", "a" * 62 + "y"]
    kube.apply(config_map(rows_text()), *(job(name) for name in names))
    for name in names:
        kube.wait_phase("ftj", name, "Succeeded", seconds=600)


@pytest.mark.parametrize("operator", ["up", "down"])
def test_a_job_that_is_deleted_while_it_trains_leaves_only_the_claims(kube: Kube, product: Kube, operator: str) -> None:
    training = {"maxSteps": 100000, "batchSize": 1, "gradientAccumulation": 1, "maxLength": 128}
    kube.apply(config_map(rows_text()), job(training=training))
    kube.wait(
        "ftj", "tiny", lambda seen: (seen["status"].get("progress") or {}).get("step", 0) > 0, 240, "a first step"
    )
    (pod,) = kube.items("pods", "finetune.dev/stage=train")
    grace = pod["spec"]["terminationGracePeriodSeconds"]
    scale = ("scale", "deployment/finetune-operator", "--timeout=60s")
    try:
        if operator == "down":
            product.run(*scale, "--replicas=0")
        started = time.monotonic()
        kube.run("delete", "ftj", "tiny", "--timeout=20s")
        kube.wait_gone("pods", "app.kubernetes.io/managed-by=finetune-operator", seconds=grace)
        assert time.monotonic() - started < grace + 20
    finally:
        product.run(*scale, "--replicas=1")
    assert kube.names("jobs") == set()
    assert kube.names("pvc") == {"finetune-cache", "finetune-models"}
