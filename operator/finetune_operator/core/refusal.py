"""The API server refuses what a plan needs: the condition that waits for it says so, until it is taken."""

from __future__ import annotations

from typing import TYPE_CHECKING

from finetune_operator.api.v1alpha1.common import Condition, manifest
from finetune_operator.core import conditions, phase
from finetune_operator.core.job.stages import STAGES

if TYPE_CHECKING:
    from datetime import datetime

    from finetune_operator.core.types import Manifest

REASON = "CreateFailed"
_WAY = (*(row.condition for row in STAGES), "Loaded")


def status_patch(about: Manifest, planned: Manifest, message: str, now: datetime) -> Manifest | None:
    """A merge patch for the status (its content, not wrapped), or None if it says this already.

    Only conditions and phase: that the attempt has begun is not true.
    """
    known = [Condition.model_validate(each) for each in planned.get("conditions", [])]
    kind = next((each.type for each in known if each.type in _WAY and each.status != "True"), None)
    old = [Condition.model_validate(each) for each in about.get("status", {}).get("conditions", [])]
    if kind is None:
        return None
    fact = {kind: conditions.no(REASON, message)}
    (new,) = conditions.update(old, fact, about["metadata"].get("generation"), now)
    known = [new if each.type == kind else each for each in known]
    named = phase.of_job(known) if about["kind"] == "FineTuneJob" else phase.of_service(known)
    changes: Manifest = {"conditions": [manifest(each) for each in known], "phase": named}
    return changes if any(about.get("status", {}).get(key) != value for key, value in changes.items()) else None
