"""The wire protocol of Kubeflow Trainer's status endpoint, which transformers 5 speaks by itself.

``POST {"trainerStatus": {"progressPercentage", "estimatedRemainingSeconds", "metrics", "lastUpdatedTime"}}`` with a
bearer token. Our own callback sends more metrics by the same door; they are named as the
fields of ``status.progress`` that they become.
"""

from __future__ import annotations

from pydantic import Field

from finetune_trainer.contract.base import Wire

URL_ENV = "KUBEFLOW_TRAINER_SERVER_URL"
CA_ENV = "KUBEFLOW_TRAINER_SERVER_CA_CERT"
TOKEN_ENV = "KUBEFLOW_TRAINER_SERVER_TOKEN"  # noqa: S105 - the name of a variable
AUDIENCE = "finetune.dev/progress"
MAX_BYTES = 64 * 1024


class Metric(Wire):
    """One number."""

    name: str = Field(max_length=63)
    value: str = Field(max_length=64)


class TrainerStatus(Wire):
    """What a trainer knows about its own progress."""

    progress_percentage: int | None = Field(default=None, ge=0, le=100)
    estimated_remaining_seconds: int | None = Field(default=None, ge=0)
    metrics: list[Metric] = Field(default_factory=list, max_length=256)
    last_updated_time: str | None = None


class ProgressReport(Wire):
    """The body of a report."""

    trainer_status: TrainerStatus
