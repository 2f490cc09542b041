"""What the command needs of a cluster: the current context, our objects, and a connection to a pod."""

from __future__ import annotations

import base64
import os
from typing import TYPE_CHECKING, Any, cast

import typer
from kubernetes import client, config
from kubernetes.stream import portforward
from rich.console import Console

from finetune_operator.api.v1alpha1.common import GROUP, VERSION

if TYPE_CHECKING:
    import socket

Manifest = dict[str, Any]
_NOT_FOUND = 404
_stderr = Console(stderr=True)


def fail(message: str) -> typer.Exit:
    """Say what is wrong; raise what this returns."""
    _stderr.print(f"[red]✗[/red] {message}", highlight=False)
    return typer.Exit(1)


class Cluster:
    """The cluster of the current kubectl context."""

    def __init__(self, namespace: str | None) -> None:
        """Connect; the namespace of the context is used when none is given."""
        try:
            # Read here: the client looks at the environment only once, when it is imported.
            path = os.environ.get("KUBECONFIG")
            _, context = config.list_kube_config_contexts(path)  # type: ignore[no-untyped-call]
            config.load_kube_config(path)  # type: ignore[no-untyped-call]
        except config.ConfigException as error:
            where = os.environ.get("KUBECONFIG", "~/.kube/config")
            raise fail(
                f"No cluster: {error} (looked at {where}). Set KUBECONFIG, or run `kubectl config use-context`."
            ) from error
        self.namespace = namespace or context["context"].get("namespace") or "default"
        self._objects = client.CustomObjectsApi()
        self._core = client.CoreV1Api()

    def get(self, plural: str, name: str) -> Manifest | None:
        """One of our objects, or None."""
        try:
            found = self._objects.get_namespaced_custom_object(GROUP, VERSION, self.namespace, plural, name)
        except client.ApiException as error:
            if error.status == _NOT_FOUND:
                return None
            raise fail(f"The cluster refused: {error.reason}.") from error
        return cast("Manifest", found)

    def list(self, plural: str) -> list[Manifest]:
        """All of our objects in the namespace, by name."""
        try:
            answer = cast(
                "Manifest", self._objects.list_namespaced_custom_object(GROUP, VERSION, self.namespace, plural)
            )
        except client.ApiException as error:
            if error.status == _NOT_FOUND:
                raise fail(
                    "This cluster does not know FineTuneJob: install the chart finetune-operator first."
                ) from error
            raise fail(f"The cluster refused: {error.reason}.") from error
        return sorted(answer["items"], key=lambda item: str(item["metadata"]["name"]))

    def secret(self, name: str, key: str) -> str | None:
        """A value out of a Secret, or None."""
        try:
            data = self._core.read_namespaced_secret(name, self.namespace).data or {}
        except client.ApiException as error:
            if error.status == _NOT_FOUND:
                return None
            raise fail(f"Secret {self.namespace}/{name} cannot be read: {error.reason}.") from error
        return base64.b64decode(data[key]).decode() if key in data else None

    def ready_pod(self, selector: str) -> str | None:
        """The name of a ready pod, or None."""
        pods = self._core.list_namespaced_pod(self.namespace, label_selector=selector).items
        for pod in (one.to_dict() for one in pods):
            conditions = {one["type"]: one["status"] for one in (pod["status"] or {}).get("conditions") or []}
            if conditions.get("Ready") == "True" and not pod["metadata"]["deletion_timestamp"]:
                return str(pod["metadata"]["name"])
        return None

    def service_selector(self, name: str) -> str | None:
        """The label selector of a Service, or None."""
        try:
            service = self._core.read_namespaced_service(name, self.namespace).to_dict()
        except client.ApiException as error:
            if error.status == _NOT_FOUND:
                return None
            raise fail(f"Service {self.namespace}/{name} cannot be read: {error.reason}.") from error
        return ",".join(f"{key}={value}" for key, value in (service["spec"]["selector"] or {}).items())

    def connect(self, pod: str, port: int) -> socket.socket:
        """A connection to a port of a pod, through the API server."""
        forward = portforward(self._core.connect_get_namespaced_pod_portforward, pod, self.namespace, ports=str(port))
        connection: socket.socket = forward.socket(port)
        return connection
