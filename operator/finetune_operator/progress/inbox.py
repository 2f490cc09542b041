"""The last report of each attempt, in memory: a trainer repeats itself soon enough after a restart of the operator."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from finetune_trainer.contract.progress import TrainerStatus


class Inbox:
    """Reports by the uid of the Job whose pod sent them."""

    def __init__(self) -> None:
        """Begin empty."""
        self._reports: dict[str, TrainerStatus] = {}

    def put(self, job_uid: str, report: TrainerStatus) -> None:
        """The newest report replaces the one before."""
        self._reports[job_uid] = report

    def latest(self, job_uid: str) -> TrainerStatus | None:
        """The newest report, if there is one."""
        return self._reports.get(job_uid)

    def forget(self, job_uid: str) -> None:
        """The Job is gone."""
        self._reports.pop(job_uid, None)
