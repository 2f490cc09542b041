"""One run of a job: the RunSpec, frozen in an immutable ConfigMap at the first attempt and read back ever after."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from finetune_trainer.contract.runspec import RunSpec

from finetune_operator.api.rules import FREE_FIELDS, FROZEN_PHASES
from finetune_operator.api.v1alpha1.common import manifest
from finetune_operator.core import names, phase
from finetune_operator.core.job import resolve

if TYPE_CHECKING:
    from finetune_operator.api.v1alpha1.finetunejob import FineTuneJob, FineTuneJobSpec
    from finetune_operator.core.types import Children, Facts, Manifest

SPEC_DIGEST = f"{names.PREFIX}/spec-digest"
RUN_DIGEST = f"{names.PREFIX}/run-digest"
RUNSPEC_KEY = "runspec.json"
CA_KEY = "ca.crt"


@dataclass(frozen=True)
class Run:
    """A frozen RunSpec and the names that follow from it."""

    spec: RunSpec
    digest: str
    """Digest of the RunSpec: what is trained."""
    spec_digest: str
    """Digest of the frozen part of the object's spec: what the user asked for."""
    fresh: bool
    """The object's status is about another run, or none: everything starts over."""

    def job_name(self, job: FineTuneJob, stage: str, attempt: int) -> str:
        """The name of the Job of one attempt."""
        return names.child(job.metadata.name, f"{stage}-{attempt}", job.metadata.uid, self.digest, self.spec_digest)

    def config_map_name(self, job: FineTuneJob) -> str:
        """The name of the ConfigMap that holds the RunSpec."""
        return names.child(job.metadata.name, "run", job.metadata.uid, self.digest, self.spec_digest)


def spec_digest(spec: FineTuneJobSpec) -> str:
    """Digest of what is frozen: an edit of suspend, retries and so on makes no new run."""
    frozen = {key: value for key, value in manifest(spec).items() if key not in FREE_FIELDS}
    return names.digest(json.dumps(frozen, sort_keys=True))


def current(job: FineTuneJob, children: Children, facts: Facts) -> Run:
    """The run that this object is about: the frozen one, or a new one if there is none or the spec was edited."""
    status, wanted = job.status, spec_digest(job.spec)
    if status.spec_digest and phase.of_job(status.conditions) in FROZEN_PHASES:
        wanted = status.spec_digest  # the API server refuses such an edit; one that slipped in between waits
    fresh = wanted != status.spec_digest
    spec = _frozen(children, wanted, None if fresh else status.run_digest) or resolve.run_spec(job, facts)
    return Run(spec, spec.digest(), wanted, fresh)


def _frozen(children: Children, wanted: str, run_digest: str | None) -> RunSpec | None:
    """Read the RunSpec back: with the digest in the status, or, before there is one, the first for this spec."""
    for config_map in children.config_maps:
        annotations = config_map["metadata"].get("annotations", {})
        if annotations.get(SPEC_DIGEST) == wanted and run_digest in {None, annotations.get(RUN_DIGEST)}:
            return RunSpec.model_validate_json(config_map["data"][RUNSPEC_KEY])
    return None


def config_map(job: FineTuneJob, run: Run, progress_ca: str) -> Manifest:
    """The immutable ConfigMap that every pod of the run mounts."""
    labels = names.labels(job.metadata, "run", job_uid=job.metadata.uid)
    meta = names.metadata(job.metadata, "FineTuneJob", run.config_map_name(job), labels)
    meta["annotations"] |= {SPEC_DIGEST: run.spec_digest, RUN_DIGEST: run.digest}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": meta,
        "immutable": True,
        "data": {RUNSPEC_KEY: run.spec.to_json(), CA_KEY: progress_ca},
    }
