"""The product on the node: installed once, a namespace of its own for each test."""

from __future__ import annotations

import json
import os
import uuid
from typing import TYPE_CHECKING

import pytest

from testnode import install
from testnode.settings import Settings, cache_folder
from tests.support.kube import Kube

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def product() -> Kube:
    """The operator, installed by helm as the demo does it; its own namespace."""
    install.install()
    os.environ["KUBECONFIG"] = str(Settings(cache_folder()).kubeconfig)
    return Kube(install.NAMESPACE)


@pytest.fixture
def kube(product: Kube) -> Iterator[Kube]:
    """A namespace for one test; deleted afterwards, with all that is in it."""
    name = f"e2e-{uuid.uuid4().hex[:8]}"
    namespace = {
        "apiVersion": "v1",
        "kind": "Namespace",
        # Every pod of ours must pass the strictest standard.
        "metadata": {"name": name, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}},
    }
    product.run("create", "-f", "-", stdin=json.dumps(namespace))
    yield Kube(name)
    product.run("delete", "namespace", name, "--wait=false")
