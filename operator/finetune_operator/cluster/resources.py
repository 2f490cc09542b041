"""The kinds of objects that the operator talks about, and their addresses in the API."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from finetune_operator.api.v1alpha1.common import API_VERSION
from finetune_operator.core.names import MANAGED_BY

if TYPE_CHECKING:
    from collections.abc import Mapping

OURS = ",".join(f"{key}={value}" for key, value in MANAGED_BY.items())


class Key(NamedTuple):
    """The address of an object."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        """As the log says it; the kind only where there could be a doubt."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True)
class Resource:
    """A kind, and which objects of it are watched."""

    kind: str
    api_version: str
    plural: str
    labels: str = ""
    """Label selector of what is watched."""
    fields: str = ""
    """Field selector of what is watched."""

    @property
    def group(self) -> str:
        """The API group; empty for the oldest one."""
        return self.api_version.rpartition("/")[0]

    @property
    def version(self) -> str:
        """The version within the group."""
        return self.api_version.rpartition("/")[2]

    def path(self, namespace: str | None = None, name: str = "", part: str = "") -> str:
        """The address; without a namespace, that of all namespaces or of a cluster-wide object."""
        root = f"/apis/{self.api_version}" if self.group else f"/api/{self.api_version}"
        inside = f"/namespaces/{namespace}" if namespace else ""
        return "/".join(piece for piece in (f"{root}{inside}/{self.plural}", name, part) if piece)

    @property
    def selectors(self) -> dict[str, str]:
        """The selectors as parameters of a list."""
        return {
            name: value for name, value in (("labelSelector", self.labels), ("fieldSelector", self.fields)) if value
        }


OWNERS = (
    Resource("FineTuneJob", API_VERSION, "finetunejobs"),
    Resource("InferenceService", API_VERSION, "inferenceservices"),
)
WATCHED = (
    *OWNERS,
    Resource("Job", "batch/v1", "jobs", OURS),
    Resource("Pod", "v1", "pods", OURS),
    Resource("Deployment", "apps/v1", "deployments", OURS),
    Resource("Service", "v1", "services", OURS),
    Resource("ConfigMap", "v1", "configmaps", OURS),
    Resource("PersistentVolumeClaim", "v1", "persistentvolumeclaims"),
    Resource("Event", "v1", "events", fields="reason=FailedCreate"),
)
"""What the operator keeps a picture of. Secrets are not among it: they are read one by one, when somebody names one."""

SECRET = Resource("Secret", "v1", "secrets")
CONFIG_MAP = Resource("ConfigMap", "v1", "configmaps")
EVENT = Resource("Event", "v1", "events")
NODE = Resource("Node", "v1", "nodes")
POD = Resource("Pod", "v1", "pods")
CRD = Resource("CustomResourceDefinition", "apiextensions.k8s.io/v1", "customresourcedefinitions")
TOKEN_REVIEW = Resource("TokenReview", "authentication.k8s.io/v1", "tokenreviews")
_OTHERS = (SECRET, NODE, CRD, TOKEN_REVIEW, Resource("NetworkPolicy", "networking.k8s.io/v1", "networkpolicies"))

BY_KIND = {resource.kind: resource for resource in (*WATCHED, *_OTHERS)}


def key_of(manifest: Mapping[str, Any]) -> Key:
    """The address of an object."""
    meta = manifest["metadata"]
    return Key(manifest["kind"], meta.get("namespace", ""), meta["name"])


def controller(manifest: Mapping[str, Any]) -> dict[str, Any] | None:
    """The owner reference of the controller, if there is one."""
    owners: list[dict[str, Any]] = manifest["metadata"].get("ownerReferences", [])
    return next((owner for owner in owners if owner.get("controller")), None)
