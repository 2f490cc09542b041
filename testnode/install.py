"""The product on the node: the model hub beside it, and the operator on it, by the chart that people install."""

import sys
from pathlib import Path

from testnode import processes
from testnode.console import NodeError, note, step
from testnode.containerd import ctr
from testnode.settings import BRIDGE_ADDRESS, HUB_PORT, Settings, cache_folder
from testnode.shell import attempt, run
from testnode.waiting import unanswered, wait_until

CHART = Path(__file__).resolve().parent.parent / "charts/finetune-operator"
VALUES = Path(__file__).parent / "values.yaml"
RELEASE = "finetune-operator"
NAMESPACE = "finetune-system"
IMAGES = "localhost/finetune"
HUB_SECONDS = 30
PROBE = "api/models/finetune-test/tiny-llama"
"""Asked to see whether the hub answers."""


def install(settings: Settings | None = None) -> None:
    """Start the hub and install or upgrade the release; quick if nothing has changed."""
    settings = settings or Settings(cache_folder())
    ensure_hub(settings)
    with step(f"helm upgrade --install {RELEASE}"):
        upgraded = attempt(helm_upgrade(settings, RELEASE, NAMESPACE))
    if upgraded.returncode:
        raise NodeError(f"helm: {upgraded.stderr.strip()}\n{_operator_log(settings)}")
    note(f"the operator runs in namespace {NAMESPACE}")


def ensure_hub(settings: Settings) -> None:
    """The local model hub, with the small real model in it."""
    with step("the model hub's content"):
        run([sys.executable, "-m", "testnode.hub", "prepare"])
    sources = tuple(sorted((Path(__file__).parent / "hub").glob("*.py")))
    with step("the model hub"):
        processes.ensure(settings, processes.Daemon("hub", (sys.executable, "-m", "testnode.hub", "serve"), sources))
        address = f"http://{BRIDGE_ADDRESS}:{HUB_PORT}/{PROBE}"
        wait_until(lambda: unanswered(address), HUB_SECONDS, processes.log_of(settings, "hub"))


def helm_upgrade(settings: Settings, release: str, namespace: str, *more: str) -> list[str]:
    """The command that installs or upgrades a release on the node, and waits until it is ready."""
    tags = [f"--set-string=images.{image}.tag={tag_of(settings, image)}" for image in ("operator", "trainer", "server")]
    command = [str(settings.bin / "helm"), "--kubeconfig", str(settings.kubeconfig), "upgrade", "--install", release]
    where = [str(CHART), "--namespace", namespace, "--create-namespace", "--values", str(VALUES)]
    return [*command, *where, *tags, *more, "--wait", "--timeout", "3m"]


def _operator_log(settings: Settings) -> str:
    """What the operator says itself, which is more than helm knows."""
    kubectl = [str(settings.bin / "kubectl"), "--kubeconfig", str(settings.kubeconfig), "-n", NAMESPACE]
    said = attempt([*kubectl, "logs", f"deployment/{RELEASE}", "--tail=5"])
    return f"the operator's last lines:\n{said.stdout or said.stderr}"


def tag_of(settings: Settings, image: str) -> str:
    """A tag that changes with the image's content, so that a rebuilt image is used and an old run is not mistaken."""
    repository = f"{IMAGES}/{image}"
    known = digests(run(ctr(settings, "images", "list")))
    if f"{repository}:dev" not in known:
        raise NodeError(f"the node has no image {repository}:dev: run `make images`")
    tag = known[f"{repository}:dev"].removeprefix("sha256:")[:12]
    # Older tags stay: a run that has begun goes on with the image that it began with.
    if f"{repository}:{tag}" not in known:
        run(ctr(settings, "images", "tag", f"{repository}:dev", f"{repository}:{tag}"))
    return tag


def digests(listing: str) -> dict[str, str]:
    """Image → digest, out of the output of ``ctr images list``."""
    rows = [line.split() for line in listing.splitlines()[1:]]
    return {reference: digest for reference, _, digest, *_ in rows}
