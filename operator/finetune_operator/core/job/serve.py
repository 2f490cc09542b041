"""spec.serve: the InferenceService of a job that has succeeded. It has no owner: production outlives the job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from finetune_operator.api.v1alpha1.common import API_VERSION, manifest
from finetune_operator.core import names, references

if TYPE_CHECKING:
    from finetune_operator.api.v1alpha1.finetunejob import FineTuneJob
    from finetune_operator.core.types import Manifest

MANAGED_BY_JOB = f"{names.PREFIX}/managed-by-job"
INHERITED = ("platform", "nodeSelector", "tolerations", "runtimeClassName")
"""Placement that the service takes from the job where serve says nothing."""


class Served(NamedTuple):
    """What became of spec.serve."""

    name: str | None = None
    """The InferenceService that serves the model; kept in the status."""
    apply: Manifest | None = None
    problem: str = ""


def serve(job: FineTuneJob, existing: Manifest | None) -> Served:
    """What to do about the service once the job has succeeded.

    It is made once: a service that somebody deletes stays deleted, and one that a later job has taken stays theirs.
    """
    name = references.service_name(job.metadata.name, job.spec)
    if name is None:
        return Served()
    known = job.status.service == name
    if existing is None:
        return Served(name) if known else Served(name, _desired(job, name))
    if MANAGED_BY_JOB not in existing["metadata"].get("labels", {}):
        return Served(None, None, _taken(job, name))
    desired = _desired(job, name)
    theirs = known and existing["spec"]["model"] != desired["spec"]["model"]
    return Served(name, None if theirs or existing["spec"] == desired["spec"] else desired)


def _desired(job: FineTuneJob, name: str) -> Manifest:
    return {
        "apiVersion": API_VERSION,
        "kind": "InferenceService",
        "metadata": {
            "name": name,
            "namespace": job.metadata.namespace,
            "labels": {**names.MANAGED_BY, MANAGED_BY_JOB: "true"},
        },
        "spec": _spec(job),
    }


def _spec(job: FineTuneJob) -> dict[str, Any]:
    placement = {key: value for key, value in manifest(job.spec).items() if key in INHERITED}
    said = manifest(job.spec.serve) if job.spec.serve else {}
    said.pop("name", None)
    claim = {"storageClaim": references.models_claim(job.spec)}
    return {**placement, **said, **claim, "model": {"fromFineTuneJob": job.metadata.name}}


def _taken(job: FineTuneJob, name: str) -> str:
    return (
        f"InferenceService {job.metadata.namespace}/{name} was not made by a job and is left as it is: "
        f"set spec.serve.name to another name, or set its spec.model.fromFineTuneJob to {job.metadata.name}."
    )
