"""`finetune validate`: what is wrong, where, and what was meant."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from finetune_operator.cli.main import app
from finetune_operator.cli.validate import examine
from typer.testing import CliRunner

from tests.support.objects import ROWS, config_map, job, rows_text, service

QUICKSTART = Path(__file__).resolve().parents[2] / "examples/quickstart.yaml"
BAD_ROW = {"messages": [{"role": "humman", "content": "x"}]}


def said(*documents: dict[str, Any], datasets: tuple[Path, ...] = ()) -> list[str]:
    findings = examine(yaml.safe_dump_all(documents), list(datasets))
    return [f"{finding.subject}: {finding.message}" for finding in findings if not finding.ok]


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "a field with a typing error": (job(trainng={}), "spec: there is no field trainng (did you mean training?)."),
    "a field that is like no other": (
        job(method={"lora": {"zzz": 1}}),
        "spec.method.lora: there is no field zzz (there are alpha, dropout, rank, rslora, targets).",
    ),
    "a number out of bounds": (
        job(method={"lora": {"rank": 0}}),
        "spec.method.lora.rank: 0 is less than the minimum of 1",
    ),
    "a bound that is not included": (
        job(training={"learningRate": 0}),
        "spec.training.learningRate: 0 is less than or equal to the minimum of 0",
    ),
    "no dataset": ({**job(), "spec": {"model": {"source": "hf://a/b"}}}, "spec: 'dataset' is a required property"),
    "a service of no job": (service(model={}), "spec.model: 'fromFineTuneJob' is a required property"),
}


@pytest.mark.parametrize(("document", "message"), WRONG.values(), ids=WRONG.keys())
def test_wrong_fields(document: dict[str, Any], message: str) -> None:
    (only,) = said(document)
    assert only.endswith(message)


def test_rows_in_the_same_yaml_are_checked() -> None:
    (only,) = said(config_map(rows_text([*ROWS, BAD_ROW])), job())
    assert only.startswith("configMap://rows/train.jsonl: DatasetInvalid: ")
    assert "line 41" in only


def test_a_key_that_the_config_map_has_not() -> None:
    (only,) = said({**config_map(""), "data": {"rows.jsonl": rows_text()}}, job())
    assert only == "configMap://rows/train.jsonl: The ConfigMap has no key train.jsonl; it has rows.jsonl."


def test_a_dataset_file_is_read_as_the_job_would(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(rows_text([{"messages": [{"role": "pupil", "content": "a"}, {"role": "master", "content": "b"}]}]))
    mapped = job(dataset={"source": "pvc://data/rows.jsonl", "roles": {"pupil": "user", "master": "assistant"}})
    assert said(mapped, datasets=(path,)) == []
    (only,) = said(job(), datasets=(path,))
    assert "unknown role 'pupil'" in only


@pytest.mark.parametrize(("text", "message"), [("a: [", "YAML"), ("kind: Pod", "There is no object of finetune.dev")])
def test_what_is_no_job_at_all(text: str, message: str) -> None:
    (only,) = examine(text, [])
    assert not only.ok
    assert message in f"{only.subject}: {only.message}"


def test_the_quickstart_is_right_and_a_pipe_gets_json() -> None:
    result = CliRunner().invoke(app, ["validate", str(QUICKSTART)])
    assert result.exit_code == 0
    assert {finding["ok"] for finding in json.loads(result.stdout)} == {True}
