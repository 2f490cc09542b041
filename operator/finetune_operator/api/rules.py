"""The CEL rules of both kinds: what the API server refuses at ``kubectl apply``, and the sentence that it says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

NAME_LENGTH = 63
_LABEL = "^[a-z]([-a-z0-9]*[a-z0-9])?$"

FREE_FIELDS = frozenset({"suspend", "ttlSecondsAfterFinished", "retryToken", "retries", "priority", "serve"})
"""May change at any time."""

FROZEN_FIELDS = (
    "model", "dataset", "method", "training", "runtime", "evaluation", "export", "storage", "platform", "memory",
    "nodeSelector", "tolerations", "runtimeClassName", "activeDeadlineSeconds", "reuse",
)  # fmt: skip
"""Frozen from Training on, and while suspended: what was trained is what the object says."""

FROZEN_PHASES = ("Training", "Exporting", "Evaluating", "Succeeded", "Suspended")


@dataclass(frozen=True)
class Rule:
    """One CEL rule and its sentence."""

    rule: str
    message: str

    def as_validation(self) -> dict[str, Any]:
        """The rule as a schema writes it."""
        return {"rule": self.rule, "message": self.message}


def _frozen(field: str) -> Rule:
    phases = ", ".join(f"'{phase}'" for phase in FROZEN_PHASES)
    running = f"has(oldSelf.status) && has(oldSelf.status.phase) && oldSelf.status.phase in [{phases}]"
    new, old = f"self.spec.{field}", f"oldSelf.spec.{field}"
    return Rule(
        f"!({running}) || (has({new}) == has({old}) && (!has({new}) || {new} == {old}))",
        f"spec.{field} is frozen once training has started: delete the job, or make one of another name. "
        f"Free to change: {', '.join(sorted(FREE_FIELDS))}.",
    )


def _name() -> Rule:
    return Rule(
        f"self.metadata.name.size() <= {NAME_LENGTH} && self.metadata.name.matches('{_LABEL}')",
        f"metadata.name: at most {NAME_LENGTH} of a-z, 0-9 and '-', a letter first, a letter or digit last.",
    )


FINETUNEJOB_RULES = (_name(), *(_frozen(field) for field in FROZEN_FIELDS))
INFERENCESERVICE_RULES = (_name(),)

SPEC_RULES: dict[tuple[str, ...], tuple[Rule, ...]] = {
    ("training",): (
        Rule("!(has(self.epochs) && has(self.maxSteps))", "training: say epochs or maxSteps, not both."),
    ),
    ("dataset", "validation"): (
        Rule(
            "(has(self.fraction) ? 1 : 0) + (has(self.rows) ? 1 : 0) + (has(self.source) ? 1 : 0) == 1",
            "dataset.validation: say exactly one of fraction, rows and source.",
        ),
    ),
    ("dataset", "roles"): (
        Rule(
            "self.all(name, self[name] in ['system', 'user', 'assistant', 'tool'])",
            "dataset.roles: every value is one of system, user, assistant and tool.",
        ),
    ),
    ("method",): (Rule("has(self.lora)", "method: say how to tune; lora is what there is."),),
    ("auth",): (
        Rule(
            "!(has(self.type) && self.type == 'None' && has(self.apiKeySecretRef))",
            "auth: apiKeySecretRef has no use with type None; leave one of them out.",
        ),
    ),
}  # fmt: skip
"""Path of a field below spec → its rules."""
