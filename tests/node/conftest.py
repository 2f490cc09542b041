"""What tests on the real node share: kubectl, and a namespace of their own that is gone afterwards."""

import os
import subprocess
import uuid
from collections.abc import Callable, Iterator

import pytest

from testnode.settings import Settings, cache_folder

Kubectl = Callable[..., str]


@pytest.fixture(scope="session")
def kubeconfig() -> str:
    """The user's own choice of a cluster, or the node of this machine."""
    return os.environ.get("KUBECONFIG") or str(Settings(cache_folder()).kubeconfig)


@pytest.fixture(scope="session")
def kubectl(kubeconfig: str) -> Kubectl:
    """Run kubectl; what it complains about becomes the failure's text."""
    program = [str(Settings(cache_folder()).bin / "kubectl"), f"--kubeconfig={kubeconfig}"]

    def run(*arguments: str, stdin: str | None = None) -> str:
        done = subprocess.run([*program, *arguments], input=stdin, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            pytest.fail(f"kubectl {' '.join(arguments)}: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout

    return run


@pytest.fixture
def namespace(kubectl: Kubectl) -> Iterator[str]:
    """A namespace that enforces the restricted Pod Security Standard."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    kubectl("create", "namespace", name)
    kubectl("label", "namespace", name, "pod-security.kubernetes.io/enforce=restricted")
    yield name
    kubectl("delete", "namespace", name, "--wait=false")
