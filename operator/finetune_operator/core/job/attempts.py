"""The Job of one attempt of one stage, built from the table of stages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from finetune_trainer.contract import paths, progress, runspec

from finetune_operator.core import names, platforms, pods, references, sizes
from finetune_operator.core.job import networkpolicy
from finetune_operator.core.job.run import RUNSPEC_KEY

if TYPE_CHECKING:
    from finetune_operator.api.v1alpha1.common import Hold
    from finetune_operator.api.v1alpha1.finetunejob import FineTuneJob
    from finetune_operator.core.job.run import Run
    from finetune_operator.core.job.stages import Container, StageRow
    from finetune_operator.core.types import Facts, Manifest, Settings

STAGE_LABEL = f"{names.PREFIX}/stage"
ATTEMPT_LABEL = f"{names.PREFIX}/attempt"
OFFLINE_ENV = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
TOKEN_SECONDS = 3600


@dataclass(frozen=True)
class Attempt:
    """Everything that the Job of one attempt is made from."""

    job: FineTuneJob
    run: Run
    row: StageRow
    number: int
    memory_bytes: int
    hold: Hold | None
    """Where admission placed the run; None for stages that need no hold."""
    deadline_seconds: int | None
    facts: Facts

    @property
    def name(self) -> str:
        """The Job's name."""
        return self.run.job_name(self.job, self.row.name, self.number)

    @property
    def gpu(self) -> bool:
        """Does this attempt ask for a GPU?"""
        return self.row.gpu and self.run.spec.device == "cuda"

    @property
    def settings(self) -> Settings:
        """The operator's settings."""
        return self.facts.settings


def manifest(attempt: Attempt) -> Manifest:
    """The Job. backoffLimit 0: the operator decides what happens next, because it alone knows reasons and memory."""
    job, row = attempt.job, attempt.row
    labels = names.labels(
        job.metadata,
        row.name,
        job_uid=job.metadata.uid,
        stage=row.name,
        attempt=str(attempt.number),
        network=networkpolicy.network(row),
    )
    spec: dict[str, Any] = {
        "backoffLimit": 0,
        "completions": 1,
        "parallelism": 1,
        "template": {
            "metadata": {"labels": labels, "annotations": {f"{names.PREFIX}/name": job.metadata.name}},
            "spec": _pod_spec(attempt),
        },
    }
    if attempt.deadline_seconds is not None:
        spec["activeDeadlineSeconds"] = attempt.deadline_seconds
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": names.metadata(job.metadata, "FineTuneJob", attempt.name, labels),
        "spec": spec,
    }


def _pod_spec(attempt: Attempt) -> dict[str, Any]:
    containers = [(_container(attempt, row), row.init) for row in attempt.row.containers]
    inits = [container for container, init in containers if init]
    return {
        **pods.base_spec(attempt.job.spec, attempt.settings, gpu=attempt.gpu),
        **pods.on_nodes(_nodes(attempt)),
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": attempt.row.grace_seconds,
        **({"initContainers": inits} if inits else {}),
        "containers": [container for container, init in containers if not init],
        "volumes": _volumes(attempt),
    }


def _nodes(attempt: Attempt) -> list[str]:
    """The node that admission chose; before that, those where the later stages can run."""
    if attempt.hold:
        return [attempt.hold.node]
    if platforms.has_gpu(attempt.run.spec.platform):
        return pods.gpu_nodes(attempt.job.spec, attempt.facts.nodes)
    return []


def _container(attempt: Attempt, container: Container) -> dict[str, Any]:
    spec, settings = attempt.run.spec, attempt.settings
    gpu = attempt.gpu and not container.init
    return {
        "name": container.name,
        "image": spec.trainer_image if container.image == "trainer" else spec.server_image,
        "imagePullPolicy": settings.image_pull_policy,
        "command": container.command,
        "env": _env(attempt),
        "resources": pods.resources(sizes.quantity(attempt.memory_bytes), settings, gpu=gpu),
        "securityContext": pods.CONTAINER_SECURITY,
        "terminationMessagePolicy": "File",
        "volumeMounts": _mounts(attempt),
    }


def _env(attempt: Attempt) -> list[dict[str, Any]]:
    if attempt.row.online:
        hub = attempt.run.spec.hub_endpoint
        return pods.env(pods.COMMON_ENV | ({"HF_ENDPOINT": hub} if hub else {})) + _tokens(attempt)
    return pods.env(pods.COMMON_ENV | OFFLINE_ENV | (_progress_env(attempt) if attempt.row.reports else {}))


def _tokens(attempt: Attempt) -> list[dict[str, Any]]:
    spec = attempt.job.spec
    found = {"HF_TOKEN": spec.model.token_secret_ref, "DATASET_TOKEN": spec.dataset.token_secret_ref}
    return [pods.secret_env(name, ref.name, ref.key) for name, ref in found.items() if ref]


def _progress_env(attempt: Attempt) -> dict[str, str]:
    return {
        progress.URL_ENV: attempt.settings.progress_url,
        progress.CA_ENV: str(paths.PROGRESS_CA),
        progress.TOKEN_ENV: str(paths.PROGRESS_TOKEN),
    }


def _sources(attempt: Attempt) -> dict[str, Any]:
    """The model's claim is needed to the end; datasets are read by prepare alone."""
    found = references.source_mounts(attempt.job.spec)
    return {folder: source for folder, source in found.items() if attempt.row.online or folder == "model"}


def _volumes(attempt: Attempt) -> list[dict[str, Any]]:
    spec, config_map = attempt.job.spec, attempt.run.config_map_name(attempt.job)
    volumes = [
        {"name": "run", "configMap": {"name": config_map}},
        pods.claim_volume("cache", references.cache_claim(spec)),
        pods.claim_volume("models", references.models_claim(spec)),
        {"name": "tmp", "emptyDir": {}},
    ]
    for folder, source in _sources(attempt).items():
        volume = {"name": f"source-{folder}", "configMap": {"name": source.name}}
        volumes.append(pods.claim_volume(f"source-{folder}", source.claim) if source.claim else volume)
    return volumes + ([_token_volume()] if attempt.row.reports else [])


def _token_volume() -> dict[str, Any]:
    token = {"audience": progress.AUDIENCE, "expirationSeconds": TOKEN_SECONDS, "path": paths.PROGRESS_TOKEN.name}
    return {"name": "progress-token", "projected": {"sources": [{"serviceAccountToken": token}]}}


def _mounts(attempt: Attempt) -> list[dict[str, Any]]:
    mounts = [
        pods.mount("run", runspec.RUNSPEC_PATH.removesuffix(f"/{RUNSPEC_KEY}"), read_only=True),
        pods.mount("cache", str(paths.CACHE_MOUNT)),
        pods.mount("models", str(paths.MODELS_MOUNT)),
        pods.mount("tmp", "/tmp"),  # noqa: S108 - an emptyDir of the pod
    ]
    mounts += [
        pods.mount(f"source-{folder}", str(paths.SOURCES_MOUNT / folder), read_only=True)
        for folder in _sources(attempt)
    ]
    token = pods.mount("progress-token", str(paths.PROGRESS_TOKEN.parent), read_only=True)
    return mounts + ([token] if attempt.row.reports else [])
