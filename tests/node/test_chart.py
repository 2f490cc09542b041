"""The chart, by the real helm: lint, both RBAC modes, and what the API server says to the result."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from testnode.settings import Settings, cache_folder

CHART = Path(__file__).resolve().parents[2] / "charts/finetune-operator"
VALUES = CHART.parents[1] / "testnode/values.yaml"
SETTINGS = Settings(cache_folder())
CLUSTER_ALONE = {"ClusterRole/x-base", "ClusterRole/x-view", "ClusterRole/x-edit"}


def helm(*arguments: str, check: bool = True) -> str:
    done = subprocess.run([SETTINGS.bin / "helm", *arguments], capture_output=True, text=True, check=False)
    assert not check or done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def rendered(*values: str) -> list[dict[str, Any]]:
    text = helm("template", "x", str(CHART), "--namespace", "finetune-system", *values)
    return [document for document in yaml.safe_load_all(text) if document]


def names(documents: list[dict[str, Any]], kind: str) -> set[str]:
    return {f"{one['kind']}/{one['metadata']['name']}" for one in documents if one["kind"] == kind}


def test_lint() -> None:
    assert "0 chart(s) failed" in helm("lint", str(CHART), "--values", str(VALUES), "--strict")


def test_cluster_wide_the_operator_may_work_everywhere() -> None:
    assert names(rendered(), "ClusterRole") == CLUSTER_ALONE | {"ClusterRole/x"}


def test_in_one_namespace_it_may_work_only_there() -> None:
    documents = rendered("--set", "watchNamespace=ml")
    assert names(documents, "ClusterRole") == CLUSTER_ALONE
    role = next(one for one in documents if one["kind"] == "Role" and one["metadata"]["name"] == "x")
    assert role["metadata"]["namespace"] == "ml"


@pytest.mark.parametrize("mode", [(), ("--set", "watchNamespace=ml")], ids=["cluster", "namespace"])
def test_no_rule_says_everything(mode: tuple[str, ...]) -> None:
    rules = [rule for one in rendered(*mode) if "Role" in one["kind"] for rule in one.get("rules", [])]
    assert rules
    assert not [rule for rule in rules if "*" in rule["verbs"] + rule["resources"] + rule["apiGroups"]]


@pytest.mark.parametrize("mode", [(), ("--set", "watchNamespace=default")], ids=["cluster", "namespace"])
def test_the_api_server_takes_every_document(kubectl: Any, mode: tuple[str, ...]) -> None:
    items = {"apiVersion": "v1", "kind": "List", "items": rendered(*mode)}
    kubectl(
        "apply",
        "--server-side",
        "--force-conflicts",
        "--dry-run=server",
        "-n",
        "default",
        "-f",
        "-",
        stdin=json.dumps(items),
    )


def test_a_wrong_value_is_refused_with_its_name() -> None:
    said = helm("template", "x", str(CHART), "--set", "defaults.platform=tpu", check=False)
    assert "platform" in said


def test_crds_are_left_out_on_request() -> None:
    assert names(rendered("--set", "crds.install=false"), "CustomResourceDefinition") == set()


def test_the_notes_say_what_to_do_next() -> None:
    where = ("--namespace", "finetune-system", "--kubeconfig", str(SETTINGS.kubeconfig))
    said = helm("install", "x", str(CHART), "--dry-run=client", "--set", "crds.install=false", *where)
    assert "kubectl apply -f examples/quickstart.yaml" in said
