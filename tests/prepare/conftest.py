"""A base, a dataset and the folders of a run, all below one temporary folder."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import pytest
from finetune_trainer.contract.paths import RunPaths
from finetune_trainer.contract.runspec import DatasetSpec, Identity, ModelSpec, RunSpec, ValidationSpec
from finetune_trainer.prepare.work import prepare
from finetune_trainer.stage import StageError, write_file

from tests.support import tiny_model
from tests.support.tiny_model import Row, chat

if TYPE_CHECKING:
    from finetune_trainer.contract.results import StageResult


@dataclass
class World:
    """Runs prepare as its pod would."""

    root: Path
    spec: RunSpec

    @property
    def paths(self) -> RunPaths:
        return RunPaths(self.spec.digest(), PurePosixPath(self.root / "models"), PurePosixPath(self.root / "cache"))

    @property
    def out(self) -> Path:
        return Path(self.paths.stage("prepare"))

    @property
    def base(self) -> Path:
        return self.root / "sources/model/tiny"

    def dataset(self, rows: list[Row], role: str = "dataset") -> None:
        path = self.root / "sources" / role / "rows.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")

    def change(self, part: str, **settings: Any) -> None:
        changed = getattr(self.spec, part).model_copy(update=settings)
        self.spec = self.spec.model_copy(update={part: changed})

    def run(self) -> StageResult:
        """Prepare, and keep the result as the stage's runner does."""
        result = prepare(self.spec, self.paths, self.root / "sources")
        write_file(Path(self.paths.result("prepare")), result.to_json())
        return result

    def fails(self) -> StageError:
        with pytest.raises(StageError) as told:
            self.run()
        return told.value

    def rows(self, name: str = "train.jsonl") -> list[Row]:
        return [json.loads(line) for line in (self.out / name).read_text(encoding="utf-8").splitlines()]

    def report(self) -> Row:
        report: Row = json.loads((self.out / "report.json").read_text(encoding="utf-8"))
        return report


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Ten short conversations, two of them to hold out."""
    spec = RunSpec(
        identity=Identity(namespace="team", name="invoices", uid="1"),
        model=ModelSpec(source="pvc://bases/tiny"),
        dataset=DatasetSpec(source="pvc://rows/rows.jsonl", validation=ValidationSpec(rows=2)),
    )
    world = World(tmp_path, spec)
    tiny_model.write(world.base)
    world.dataset([chat(f"Question {number}?", f"Answer {number}.") for number in range(10)])
    return world
