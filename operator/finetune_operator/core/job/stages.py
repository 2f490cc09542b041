"""The table of stages: which containers run, from which image, and what each stage may use.

A new stage is a row here, a condition in conditions.py and a phase in phase.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from finetune_trainer.contract.paths import Stage

PYTHON = "/opt/finetune/bin/python"


@dataclass(frozen=True)
class Container:
    """One container of a stage's pod."""

    name: str
    module: str
    image: Literal["trainer", "server"]
    init: bool = False
    """Runs to its end before the main container starts."""

    @property
    def command(self) -> list[str]:
        """The program of the container."""
        return [PYTHON, "-m", self.module]


@dataclass(frozen=True)
class StageRow:
    """One stage, from the operator's side."""

    name: Stage
    condition: str
    """The condition that is True once the stage has succeeded."""
    started: str
    """Reason of the event when an attempt starts."""
    containers: tuple[Container, ...]
    online: bool = False
    """May reach the network; the others reach DNS and the progress port only."""
    held: bool = True
    """Runs only while admission holds memory for the run."""
    gpu: bool = False
    """Asks for a GPU, on platforms that have one."""
    reports: bool = False
    """Reports progress, with a token of its own."""
    grace_seconds: int = 30
    """From SIGTERM to SIGKILL."""


STAGES: tuple[StageRow, ...] = (
    StageRow(
        name="prepare",
        condition="Prepared",
        started="Preparing",
        containers=(Container("prepare", "finetune_trainer.prepare", "trainer"),),
        online=True,
        held=False,
    ),
    StageRow(
        name="train",
        condition="Trained",
        started="TrainingStarted",
        containers=(Container("train", "finetune_trainer.train", "trainer"),),
        gpu=True,
        reports=True,
        grace_seconds=120,
    ),
    StageRow(
        name="export",
        condition="Exported",
        started="Exporting",
        containers=(
            Container("merge", "finetune_trainer.export", "trainer", init=True),
            Container("convert", "finetune_server.convert", "server"),
        ),
    ),
    StageRow(
        name="evaluate",
        condition="Evaluated",
        started="Evaluating",
        containers=(Container("evaluate", "finetune_server.evaluate", "server"),),
        gpu=True,
    ),
)

BY_NAME: dict[str, StageRow] = {row.name: row for row in STAGES}
