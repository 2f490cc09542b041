"""What an InferenceService does next: a table of rules, first match wins.

Beside the old server where memory allows it (on a CPU), else in its place: the old one goes first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from finetune_operator.core import classify, platforms
from finetune_operator.core.service import server

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from finetune_operator.api.v1alpha1.common import Hold
    from finetune_operator.api.v1alpha1.finetunejob import MemoryStatus
    from finetune_operator.api.v1alpha1.inferenceservice import InferenceService
    from finetune_operator.core.prerequisites import Missing
    from finetune_operator.core.service.health import Health
    from finetune_operator.core.service.server import Revision
    from finetune_operator.core.service.serving import Resolution
    from finetune_operator.core.types import Children, Facts, Manifest

Action = Literal["Suspend", "Wait", "Missing", "Queue", "Release", "Clear", "Start", "Switch", "Load"]
"""Release: give the hold back. Clear: the old servers go first. Switch: clients get the new server."""


@dataclass(frozen=True)
class View:
    """A service, and all that is known about it at this moment."""

    service: InferenceService
    resolution: Resolution
    platform: str
    needs: MemoryStatus | None
    revision: Revision | None
    """What should run; None without a model or a hold."""
    missing: Missing | None
    wanted: Health
    """How the revision does that should run."""
    children: Children
    facts: Facts
    now: datetime

    @property
    def hold(self) -> Hold | None:
        """Memory and GPUs that admission gave, on a node that still exists."""
        return platforms.kept(self.service.status.hold, self.facts.nodes)

    @property
    def current(self) -> Manifest | None:
        """The Deployment of the revision that should run, if it exists."""
        found = (item for item in self.children.deployments if self.revision and _name(item) == self.revision.name)
        return next(found, None)

    @property
    def others(self) -> tuple[Manifest, ...]:
        """Deployments of other revisions."""
        return tuple(item for item in self.children.deployments if item is not self.current)

    @property
    def alive(self) -> tuple[Manifest, ...]:
        """Pods of other revisions in which something may still run."""
        wanted = self.revision.hash if self.revision else ""
        return tuple(
            pod
            for pod in self.children.pods
            if classify.alive(pod) and pod["metadata"].get("labels", {}).get(server.REVISION_LABEL) != wanted
        )

    @property
    def fits(self) -> bool:
        """Is the hold large enough for what should run?"""
        hold, needs = self.hold, self.needs
        if hold is None or needs is None:
            return False
        return needs.host <= hold.host_bytes and needs.device <= hold.device_bytes and needs.gpus <= hold.gpus

    @property
    def at_rest(self) -> bool:
        """Is nothing of this service running?"""
        return not self.children.deployments and not any(classify.alive(pod) for pod in self.children.pods)


def next_action(view: View) -> Action:
    """The first rule that applies."""
    return next(action for holds, action in RULES if holds(view))


def _in_its_place(view: View) -> bool:
    return platforms.has_gpu(view.platform) and bool(view.others or view.alive)


RULES: tuple[tuple[Callable[[View], bool], Action], ...] = (
    (lambda view: bool(view.service.spec.suspend), "Suspend"),
    (lambda view: view.resolution.model is None, "Wait"),
    (lambda view: view.missing is not None, "Missing"),
    (lambda view: view.hold is None, "Queue"),
    (lambda view: not view.fits and not view.at_rest, "Clear"),
    (lambda view: not view.fits, "Release"),
    (lambda view: view.current is None and _in_its_place(view), "Clear"),
    (lambda view: view.current is None or view.current["spec"].get("replicas") != 1, "Start"),
    (lambda view: view.wanted.ready or not view.others, "Switch"),
    (lambda _view: True, "Load"),
)


def _name(manifest: Manifest) -> str:
    name: str = manifest["metadata"]["name"]
    return name
