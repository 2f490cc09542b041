"""What a person applies first must be right: current, small enough, readable and valid."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from finetune_operator.api.crd import structural
from finetune_operator.api.v1alpha1.finetunejob import FineTuneJobSpec
from finetune_trainer.contract.runspec import DatasetSpec
from finetune_trainer.data import check
from jsonschema import Draft4Validator  # the draft whose exclusive bounds are booleans, as in a CRD

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
QUICKSTART = EXAMPLES / "quickstart.yaml"
APPLIED = sorted(path for path in EXAMPLES.rglob("*.yaml") if path.name != "job.yaml")
SIZE_LIMIT = 200_000
"""kubectl apply keeps a copy in an annotation, and the API server takes 262144 bytes of annotations."""


def documents(path: Path) -> dict[str, dict[str, Any]]:
    """The objects of a file by kind."""
    return {one["kind"]: one for one in yaml.safe_load_all(path.read_text(encoding="utf-8"))}


def closed(schema: Any) -> Any:
    """The schema with every unknown field refused, as kubectl's strict validation does."""
    if not isinstance(schema, dict):
        return schema
    inner = {key: value if key == "properties" else closed(value) for key, value in schema.items()}
    if "properties" not in schema:
        return inner
    properties = {name: closed(child) for name, child in schema["properties"].items()}
    return inner | {"properties": properties, "additionalProperties": False}


@pytest.fixture(scope="module")
def config_map() -> dict[str, Any]:
    return documents(QUICKSTART)["ConfigMap"]


@pytest.fixture(scope="module")
def rows(config_map: dict[str, Any]) -> dict[str, list[list[dict[str, str]]]]:
    """The conversations by the name of their file."""
    return {
        name: [json.loads(line)["messages"] for line in text.splitlines()] for name, text in config_map["data"].items()
    }


def test_the_quickstart_is_what_its_script_makes() -> None:
    done = subprocess.run(
        [sys.executable, EXAMPLES / "quickstart/make_dataset.py", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_kubectl_apply_can_keep_its_copy_of_the_rows(config_map: dict[str, Any]) -> None:
    assert len(json.dumps(config_map)) < SIZE_LIMIT


@pytest.mark.parametrize(("file", "count"), [("train.jsonl", 320), ("test.jsonl", 24)])
def test_every_row_is_taken_as_it_is(config_map: dict[str, Any], file: str, count: int) -> None:
    report = check(config_map["data"][file].encode(), file, DatasetSpec(source=f"configMap://invoices/{file}"))
    assert report.failure() is None
    assert (report.format, len(report.conversations)) == ("messages", count)


def test_no_held_out_question_was_learned(rows: dict[str, list[list[dict[str, str]]]]) -> None:
    learned, held_out = ({turns[-2]["content"] for turns in rows[name]} for name in ("train.jsonl", "test.jsonl"))
    assert not learned & held_out


def test_every_answer_stands_in_its_sentence(rows: dict[str, list[list[dict[str, str]]]]) -> None:
    for sentence, answer in (turns[-2:] for file in rows.values() for turns in file):
        found = json.loads(answer["content"])
        assert list(found) == ["invoice", "customer", "total", "currency"]
        assert all(str(value) in sentence["content"] for value in found.values())


@pytest.mark.parametrize("path", APPLIED, ids=lambda path: path.stem)
def test_a_job_has_only_fields_that_exist(path: Path) -> None:
    spec = documents(path)["FineTuneJob"]["spec"]
    errors = [error.message for error in Draft4Validator(closed(structural(FineTuneJobSpec))).iter_errors(spec)]
    assert errors == []
    FineTuneJobSpec.model_validate(spec)


def test_the_check_of_fields_finds_a_field_that_does_not_exist() -> None:
    spec = documents(QUICKSTART)["FineTuneJob"]["spec"]
    wrong = spec | {"training": spec["training"] | {"maxStep": 40}}
    (error,) = Draft4Validator(closed(structural(FineTuneJobSpec))).iter_errors(wrong)
    assert "maxStep" in error.message
