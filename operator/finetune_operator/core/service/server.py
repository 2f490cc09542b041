"""The children of an InferenceService: a Deployment for each revision, the Service, and the Secret with the key."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from finetune_server.argv import server_argv
from finetune_server.contract import API_KEY_FILE, LLAMA_CPP

from finetune_operator.core import names, pods, references, sizes
from finetune_operator.core.job.stages import PYTHON
from finetune_operator.core.service import serving

if TYPE_CHECKING:
    from finetune_server.contract import ServeSpec

    from finetune_operator.api.v1alpha1.common import Hold
    from finetune_operator.api.v1alpha1.inferenceservice import InferenceService, ResolvedModel
    from finetune_operator.core.types import Manifest, Settings

SERVICE_LABEL = f"{names.PREFIX}/service-uid"
REVISION_LABEL = f"{names.PREFIX}/revision"
RANDOM_KEY = "{{random}}"
"""The I/O side puts a random key in its place: chance has no place in the core."""
MODELS = "/models"
KEY_FOLDER = str(PurePosixPath(API_KEY_FILE).parent)
DRAIN_SECONDS = 330
"""Running requests may take five minutes to end."""
PROBE_SECONDS = 5
LOAD_BYTES_PER_SECOND = 50_000_000
"""A slow disk: the startup probe waits this long for the file to be read, and a minute more."""
ENV = {"HOME": "/tmp", "TMPDIR": "/tmp", "PYTHONUNBUFFERED": "1"}  # noqa: S108 - an emptyDir of the pod


@dataclass(frozen=True)
class Revision:
    """A model, the settings to serve it with, and the place that admission gave."""

    service: InferenceService
    model: ResolvedModel
    spec: ServeSpec
    memory_bytes: int
    hold: Hold
    settings: Settings

    @property
    def hash(self) -> str:
        """Eight hex digits: another model or another pod spec is another revision."""
        return names.digest(self.model.digest, json.dumps(pod_spec(self), sort_keys=True))[: names.HASH_LENGTH]

    @property
    def name(self) -> str:
        """The Deployment's name."""
        return names.child(self.service.metadata.name, "server", self.service.metadata.uid, self.hash)

    @property
    def selector(self) -> dict[str, str]:
        """Labels of the revision's pods."""
        return {SERVICE_LABEL: self.service.metadata.uid, REVISION_LABEL: self.hash}


def deployment(revision: Revision) -> Manifest:
    """One server. Recreate: two of them would need the memory twice."""
    meta, selector = revision.service.metadata, revision.selector
    labels = names.labels(meta, "server") | selector
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": names.metadata(meta, "InferenceService", revision.name, labels),
        "spec": {
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": selector},
            "template": {
                "metadata": {"labels": labels, "annotations": {f"{names.PREFIX}/name": meta.name}},
                "spec": pod_spec(revision),
            },
        },
    }


def pod_spec(revision: Revision) -> dict[str, Any]:
    """The server's pod: verify the files, then serve them."""
    gpu = revision.spec.acceleration == "cuda"
    version = str(PurePosixPath(revision.model.path).parent)
    return {
        **pods.base_spec(revision.service.spec, revision.settings, gpu=gpu),
        **pods.on_nodes([revision.hold.node]),
        "terminationGracePeriodSeconds": DRAIN_SECONDS,
        "initContainers": [_container(revision, "verify", [PYTHON, "-m", "finetune_server.verify", version])],
        "containers": [_server(revision, gpu=gpu)],
        "volumes": _volumes(revision),
    }


def _server(revision: Revision, *, gpu: bool) -> dict[str, Any]:
    command = [f"{LLAMA_CPP}/bin/llama-server", *server_argv(revision.spec)]
    health = {"httpGet": {"path": "/health", "port": "http"}, "periodSeconds": PROBE_SECONDS, "timeoutSeconds": 5}
    loading = 60 + revision.model.bytes // LOAD_BYTES_PER_SECOND
    return {
        **_container(revision, "server", command, gpu=gpu),
        "ports": [{"name": "http", "containerPort": revision.spec.port}],
        "startupProbe": {**health, "failureThreshold": -(-loading // PROBE_SECONDS)},
        "readinessProbe": health,
        "livenessProbe": {**health, "periodSeconds": 10, "failureThreshold": 6},
        "lifecycle": {"preStop": {"exec": {"command": [PYTHON, "-m", "finetune_server.drain"]}}},
    }


def _container(revision: Revision, name: str, command: list[str], *, gpu: bool = False) -> dict[str, Any]:
    settings = revision.settings
    keyed = [pods.mount("api-key", KEY_FOLDER, read_only=True)] if revision.spec.api_key_file else []
    return {
        "name": name,
        "image": settings.server_image,
        "imagePullPolicy": settings.image_pull_policy,
        "command": command,
        "env": pods.env(ENV),
        "resources": pods.resources(sizes.quantity(revision.memory_bytes), settings, gpu=gpu),
        "securityContext": pods.CONTAINER_SECURITY,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            pods.mount("models", MODELS, read_only=True),
            pods.mount("tmp", "/tmp"),  # noqa: S108 - an emptyDir of the pod
            *keyed,
        ],
    }


def _volumes(revision: Revision) -> list[dict[str, Any]]:
    service = revision.service
    claim = service.spec.storage_claim or references.MODELS_CLAIM
    volumes = [pods.claim_volume("models", claim), {"name": "tmp", "emptyDir": {}}]
    key = references.api_key_secret(service.metadata.name, service.spec)
    if key:
        items = [{"key": key[1], "path": PurePosixPath(API_KEY_FILE).name}]
        volumes.append({"name": "api-key", "secret": {"secretName": key[0], "items": items}})
    return volumes


def service_of(service: InferenceService, selector: dict[str, str]) -> Manifest:
    """The Service, named exactly as the object; a roll-out switches its selector."""
    kind = (service.spec.service and service.spec.service.type) or "ClusterIP"
    port = {"name": "http", "port": serving.port(service), "targetPort": "http", "protocol": "TCP"}
    labels = names.labels(service.metadata, "server", service_uid=service.metadata.uid)
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": names.metadata(service.metadata, "InferenceService", service.metadata.name, labels),
        "spec": {"type": kind, "selector": selector, "ports": [port]},
    }


def api_key_secret(service: InferenceService) -> Manifest:
    """The Secret with a key of our making: created once, without an owner, so that clients keep their key."""
    labels = {"app.kubernetes.io/name": "finetune", "app.kubernetes.io/component": "api-key", **names.MANAGED_BY}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": references.own_api_key_secret(service.metadata.name),
            "namespace": service.metadata.namespace,
            "labels": labels,
        },
        "type": "Opaque",
        "stringData": {references.API_KEY: RANDOM_KEY},
    }
