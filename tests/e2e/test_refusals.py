"""What the API server refuses at apply, and the sentence that a person reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.objects import config_map, job, rows_text, service

if TYPE_CHECKING:
    from tests.support.kube import Kube

CASES: dict[str, tuple[dict[str, Any], str]] = {
    "a field that does not exist": (job(trainng={}), 'unknown field "spec.trainng"'),
    "a value that is none of the allowed": (job(platform="tpu"), 'supported values: "auto", "dgx-spark"'),
    "a rank of zero": (job(method={"lora": {"rank": 0}}), "spec.method.lora.rank"),
    "no dataset": (job(dataset=None), "spec.dataset: Required value"),
    "a model from nowhere": (job(model={"source": "https://example.org/x"}), "spec.model.source"),
    "epochs and steps": (
        job(training={"epochs": 1, "maxSteps": 2}),
        "training: say epochs or maxSteps, not both.",
    ),
    "two kinds of validation": (
        job(dataset={"source": "configMap://rows/train.jsonl", "validation": {"rows": 3, "fraction": 0.1}}),
        "dataset.validation: say exactly one of fraction, rows and source.",
    ),
    "a role that no template knows": (
        job(dataset={"source": "configMap://rows/train.jsonl", "roles": {"bot": "robot"}}),
        "dataset.roles: every value is one of system, user, assistant and tool.",
    ),
    "no method": (job(method={}), "method: say how to tune"),
    "a name of 64 characters": (job("a" * 64), "metadata.name: at most 63"),
    "a name with a dot": (job("a.b"), "metadata.name: at most 63 of a-z, 0-9 and '-'"),
    "a deadline of no time": (job(activeDeadlineSeconds=1), "spec.activeDeadlineSeconds"),
    "an amount without a unit": (job(memory="24"), "spec.memory"),
    "a key for everybody": (
        service(auth={"type": "None", "apiKeySecretRef": {"name": "x"}}),
        "auth: apiKeySecretRef has no use with type None",
    ),
    "a service of no job": (service(model={}), "spec.model.fromFineTuneJob: Required value"),
    "no slots": (service(parallel=0), "spec.parallel"),
}


@pytest.mark.parametrize(("manifest", "sentence"), CASES.values(), ids=CASES.keys())
def test_refused_at_apply(kube: Kube, manifest: dict[str, Any], sentence: str) -> None:
    assert sentence in kube.refused(manifest)


def test_a_running_job_is_frozen_but_for_the_named_fields(kube: Kube) -> None:
    kube.apply(config_map(rows_text()), job(suspend=True))
    kube.wait_phase("ftj", "tiny", "Suspended")

    said = kube.refused(job(suspend=True, training={"maxSteps": 5}))
    assert "spec.training is frozen once training has started" in said
    assert "Free to change: priority, retries, retryToken, serve, suspend, ttlSecondsAfterFinished" in said

    kube.apply(job(suspend=True, retries=1, priority=5))


def test_explain_tells_what_a_field_means(kube: Kube) -> None:
    told = " ".join(kube.run("explain", "ftj.spec.training.maxLength").split())
    assert "Longest row in tokens; longer rows are dropped and counted. 2048 if not said." in told
