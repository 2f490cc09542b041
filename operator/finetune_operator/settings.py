"""The operator's settings, out of environment variables that the chart sets. A wrong one ends the start."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from finetune_operator.core.types import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping

PROGRESS_PORT, METRICS_PORT, HEALTH_PORT = 8443, 9090, 8081
_UNITS = {"": 1, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
_QUANTITY = re.compile(r"^([0-9]+)(Ki|Mi|Gi|Ti)?$")


@dataclass(frozen=True)
class Variable:
    """One environment variable."""

    name: str
    meaning: str
    default: str | None = None
    """None: it must be set."""
    allowed: tuple[str, ...] = ()
    """Values that it may have; empty: any."""


VARIABLES = (
    Variable("FINETUNE_OPERATOR_NAMESPACE", "Namespace of the operator itself, where it keeps its certificate."),
    Variable("FINETUNE_TRAINER_IMAGE", "Image of prepare, train and merge."),
    Variable("FINETUNE_SERVER_IMAGE", "Image of convert, evaluate and of the servers."),
    Variable(
        "FINETUNE_IMAGE_PULL_POLICY", "When images are pulled.", "IfNotPresent", ("IfNotPresent", "Always", "Never")
    ),
    Variable("FINETUNE_IMAGE_PULL_SECRETS", "Secrets with registry credentials, by commas.", ""),
    Variable(
        "FINETUNE_DEFAULT_PLATFORM",
        "Platform of objects that say auto or nothing.",
        "auto",
        ("auto", "dgx-spark", "nvidia-gpu", "cpu"),
    ),
    Variable("FINETUNE_HUB_ENDPOINT", "Address of the model hub; empty: the public one.", ""),
    Variable("FINETUNE_ALLOW_PRIVATE_ADDRESSES", "May datasets live on private addresses?", "false", ("true", "false")),
    Variable("FINETUNE_PROGRESS_URL", "Where trainers report to: https://service.namespace.svc:8443/v1/progress."),
    Variable("FINETUNE_MEMORY_FLOOR", "Memory that plans never touch on unified memory, for example 12Gi.", "12Gi"),
    Variable("FINETUNE_STORAGE_CLASS", "StorageClass of our claims; empty: the cluster's default.", ""),
    Variable("FINETUNE_CACHE_SIZE", "Size of the claim for downloads.", "200Gi"),
    Variable("FINETUNE_MODELS_SIZE", "Size of the claim for runs and models.", "200Gi"),
    Variable("FINETUNE_WATCH_NAMESPACE", "The one namespace that is watched; empty: all.", ""),
    Variable("FINETUNE_LOG_LEVEL", "How much is logged.", "INFO", ("DEBUG", "INFO", "WARNING", "ERROR")),
)
"""Every variable that the operator reads; the chart sets exactly these."""


class SettingsError(Exception):
    """A variable is missing or wrong."""


@dataclass(frozen=True)
class OperatorSettings:
    """What the program needs, beside what the core needs."""

    core: Settings
    watch_namespace: str | None
    log_level: str


def read(environment: Mapping[str, str]) -> OperatorSettings:
    """Read and check all variables."""
    values = {variable.name: _value(variable, environment) for variable in VARIABLES}
    return OperatorSettings(
        core=_core(values),
        watch_namespace=values["FINETUNE_WATCH_NAMESPACE"] or None,
        log_level=values["FINETUNE_LOG_LEVEL"],
    )


def _core(values: Mapping[str, str]) -> Settings:
    secrets = values["FINETUNE_IMAGE_PULL_SECRETS"].split(",")
    for name in ("FINETUNE_CACHE_SIZE", "FINETUNE_MODELS_SIZE"):
        _bytes(name, values[name])
    return Settings(
        operator_namespace=values["FINETUNE_OPERATOR_NAMESPACE"],
        trainer_image=values["FINETUNE_TRAINER_IMAGE"],
        server_image=values["FINETUNE_SERVER_IMAGE"],
        image_pull_policy=values["FINETUNE_IMAGE_PULL_POLICY"],
        image_pull_secrets=tuple(name.strip() for name in secrets if name.strip()),
        default_platform=values["FINETUNE_DEFAULT_PLATFORM"],
        hub_endpoint=values["FINETUNE_HUB_ENDPOINT"] or None,
        allow_private_addresses=values["FINETUNE_ALLOW_PRIVATE_ADDRESSES"] == "true",
        progress_url=values["FINETUNE_PROGRESS_URL"],
        memory_floor_bytes=_bytes("FINETUNE_MEMORY_FLOOR", values["FINETUNE_MEMORY_FLOOR"]),
        storage_class=values["FINETUNE_STORAGE_CLASS"] or None,
        cache_size=values["FINETUNE_CACHE_SIZE"],
        models_size=values["FINETUNE_MODELS_SIZE"],
    )


def _value(variable: Variable, environment: Mapping[str, str]) -> str:
    value = environment.get(variable.name, "").strip()
    if not value and variable.default is None:
        raise SettingsError(f"{variable.name} is not set. {variable.meaning}")
    value = value or variable.default or ""
    if variable.allowed and value not in variable.allowed:
        raise SettingsError(f"{variable.name}={value} is not one of {', '.join(variable.allowed)}. {variable.meaning}")
    return value


def _bytes(name: str, quantity: str) -> int:
    match = _QUANTITY.match(quantity)
    if match is None:
        raise SettingsError(f"{name}={quantity} is not an amount: write it like 12Gi or 512Mi.")
    return int(match[1]) * _UNITS[match[2] or ""]
