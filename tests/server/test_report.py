"""The report and its picture."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest
from finetune_server.evaluate.picture import loss_picture
from finetune_server.evaluate.report import Compared, report
from finetune_server.manifest import Manifest
from finetune_trainer.contract.results import DatasetFacts, EvaluateFacts, ExportFacts, ModelFacts, Scores, TrainFacts
from finetune_trainer.contract.runspec import DatasetSpec, Identity, LoraSpec, ModelSpec, RunSpec

SPEC = RunSpec(
    identity=Identity(namespace="team", name="invoices", uid="u"),
    model=ModelSpec(source="hf://owner/model"),
    dataset=DatasetSpec(source="configMap://data/rows.jsonl"),
)
MANIFEST = Manifest(
    version="v", run_digest="a", inputs="b", created_at="2026-12-01T00:00:00Z", base="hf://owner/model",
    model=ModelFacts(revision="123abc"), dataset=DatasetFacts(read=300, dropped={"tooLong": 3}), recipe="trl",
    adapter=LoraSpec(), train=TrainFacts(steps=40), export=ExportFacts(quantization="q4_k_m"),
    evaluate=EvaluateFacts(base=Scores(rows=6), tuned=Scores(rows=6, exact_match=4 / 6, valid_json=1, field_f1=0.9)),
    versions={"llama.cpp": "0c1e57098"},
)  # fmt: skip
LOSSES = [{"step": step, "loss": 2 / step, "evalLoss": 1.5 if step % 20 == 0 else None} for step in range(1, 42)]
ANSWERS = [
    Compared([{"role": "user", "content": "Read\n```\nthis"}], '{"a": 1}', "no", '{"a": 1}', line)
    for line in range(1, 13)
]


@pytest.mark.parametrize(
    "part",
    [
        "# team/invoices",
        "| exact match | 0.0% | 66.7% |",
        "| valid JSON | - | 100.0% |",
        "![Loss over the steps](loss.svg)",
        "| 41 | 0.0488 |  |",
        "    Read\n    ```\n    this\n",
        "| revision | 123abc |",
        "| lora.rank | 16 |",
        "| llama.cpp | 0c1e57098 |",
        "The first 10; all are in answers.jsonl.",
    ],
)
def test_report_has(part: str) -> None:
    assert part in report(SPEC, MANIFEST, LOSSES, ANSWERS)


def test_report_of_a_run_without_questions() -> None:
    assert "Scores on 6 held-out rows" in report(SPEC, MANIFEST, [], [])


def test_picture_has_a_line_for_each_loss() -> None:
    picture = ET.fromstring(loss_picture(LOSSES))  # noqa: S314 - ours
    lines = picture.findall("{http://www.w3.org/2000/svg}polyline")
    assert [len(line.attrib["points"].split()) for line in lines] == [41, 2]


@pytest.mark.parametrize("losses", [[], [{"step": 1, "loss": 2.0}]])
def test_picture_of_few_losses(losses: list[dict[str, float]]) -> None:
    assert ET.fromstring(loss_picture(losses)).tag.endswith("svg")  # noqa: S314 - ours
