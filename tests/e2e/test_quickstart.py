"""The whole way, once: apply the quickstart, and talk to the tuned model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from finetune_operator.cli.chat import Endpoint, text_of
from finetune_operator.cli.cluster import Cluster
from prometheus_client.parser import text_string_to_metric_families

from tests.support.kube import condition

if TYPE_CHECKING:
    from tests.support.kube import Kube

QUICKSTART = Path(__file__).resolve().parents[2] / "examples/quickstart.yaml"
JOB = "invoices"


def held_out() -> list[dict[str, str]]:
    """The first held-out conversation of the quickstart."""
    documents = yaml.safe_load_all(QUICKSTART.read_text(encoding="utf-8"))
    rows = next(one for one in documents if one["kind"] == "ConfigMap")["data"]["test.jsonl"]
    messages: list[dict[str, str]] = json.loads(rows.splitlines()[0])["messages"]
    return messages


# The client's port-forward leaves its own end of a socket pair to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_from_apply_to_an_answer_and_back_to_nothing(kube: Kube) -> None:
    kube.run("apply", "-f", str(QUICKSTART))

    job = kube.wait_phase("ftj", JOB, "Succeeded", seconds=1500)
    evaluation = job["status"]["evaluation"]
    assert evaluation["tuned"]["exactMatch"] > evaluation["base"]["exactMatch"] + 0.25
    assert job["status"]["model"]["version"]
    assert not job["metadata"].get("finalizers")
    story = kube.story(JOB)
    for told in ("Preparing", "Training", "Exporting", "Evaluating", "Succeeded"):
        assert told in story

    service = kube.wait_phase("infsvc", JOB, "Ready", seconds=300)
    assert service["status"]["url"].endswith("/v1")
    question = [message for message in held_out() if message["role"] != "assistant"]
    answer = text_of(Endpoint(Cluster(kube.namespace), JOB).ask(question, {"max_tokens": 200, "temperature": 0}))
    assert json.loads(answer), "the tuned model answers in JSON"

    metrics = kube.run("exec", f"deploy/{deployment(kube)}", "-c", "server", "--", *scrape())
    families = {family.name for family in text_string_to_metric_families(metrics)}
    assert "llamacpp:tokens_predicted" in families

    assert kube.run("diff", "-f", str(QUICKSTART)) == "", "the operator must not change what a person applied"

    kube.run("delete", "ftj,infsvc", "--all", "--timeout=60s")
    kube.wait_gone("pods", "app.kubernetes.io/managed-by=finetune-operator", seconds=90)
    assert kube.names("jobs,deployments,services,networkpolicies") == set()
    assert kube.names("pvc") == {"finetune-cache", "finetune-models"}
    assert kube.names("secrets") == {f"{JOB}-api-key"}
    assert {name for name in kube.names("configmaps") if name not in {"kube-root-ca.crt", JOB}} == set()


def deployment(kube: Kube) -> str:
    """The one server of the namespace."""
    (name,) = kube.names("deployments")
    return name


def scrape() -> list[str]:
    """A scrape out of the server's own pod: /metrics needs the key, which the pod has as a file."""
    code = (
        "import urllib.request as u;"
        "k=open('/run/secrets/finetune/api-key').read().strip();"
        "r=u.Request('http://127.0.0.1:8080/metrics',headers={'Authorization':'Bearer '+k});"
        "print(u.urlopen(r).read().decode())"
    )
    return ["/opt/finetune/bin/python", "-c", code]


def test_the_operator_writes_nothing_when_nothing_changes(kube: Kube) -> None:
    """A job that waits for its secret is planned again and again, and its resourceVersion stays."""
    documents = list(yaml.safe_load_all(QUICKSTART.read_text(encoding="utf-8")))
    job = next(one for one in documents if one["kind"] == "FineTuneJob")
    job["spec"]["model"]["tokenSecretRef"] = {"name": "hf"}
    kube.apply(*documents)
    kube.wait_condition("ftj", JOB, "Prepared", "SecretNotFound")
    before = kube.json("get", "ftj", JOB)
    kube.run("annotate", "ftj", JOB, "somebody=looks")
    after = kube.json("get", "ftj", JOB)
    assert condition(after, "Prepared") == condition(before, "Prepared")
    assert after["status"] == before["status"]
