"""Faults that are not in the YAML: a hub that is down, an image that is not there, an operator in one namespace."""

from __future__ import annotations

import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

from testnode.hub.server import DOWN
from testnode.install import RELEASE, helm_upgrade
from testnode.settings import Settings, cache_folder
from tests.support.kube import condition
from tests.support.objects import config_map, job, rows_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.kube import Kube

SETTINGS = Settings(cache_folder())


@contextmanager
def hub_down() -> Iterator[None]:
    mark = SETTINGS.hub / DOWN
    mark.touch()
    try:
        yield
    finally:
        mark.unlink()


@contextmanager
def operator_in(product: Kube, namespace: str, *values: str) -> Iterator[None]:
    """An operator of its own in a namespace, in place of the one that watches them all."""
    scale = ("scale", f"deployment/{RELEASE}", "--timeout=60s")
    helm = [str(SETTINGS.bin / "helm"), "--kubeconfig", str(SETTINGS.kubeconfig)]
    own = ("--set=crds.install=false", f"--set=watchNamespace={namespace}", *values)
    product.run(*scale, "--replicas=0")
    try:
        subprocess.run(helm_upgrade(SETTINGS, "alone", namespace, *own), check=True, capture_output=True)
        yield
    finally:
        subprocess.run(
            [*helm, "uninstall", "alone", "--namespace", namespace, "--wait"], check=True, capture_output=True
        )
        product.run(*scale, "--replicas=1")


def test_a_hub_that_is_down_is_waited_for(kube: Kube) -> None:
    with hub_down():
        kube.apply(config_map(rows_text()), job())
        message = kube.wait_condition("ftj", "tiny", "Prepared", "HubUnreachable")
        assert "10.42.0.1:8089" in message
        assert kube.json("get", "ftj", "tiny")["status"]["phase"] == "Preparing"
    kube.wait_condition("ftj", "tiny", "Prepared", "Prepared", seconds=180)


def test_an_operator_of_one_namespace_says_that_an_image_cannot_be_pulled(product: Kube, kube: Kube) -> None:
    with operator_in(product, kube.namespace, "--set-string=images.trainer.tag=no-such-tag"):
        kube.apply(config_map(rows_text()), job())
        message = kube.wait_condition("ftj", "tiny", "Prepared", "ImagePullFailed")
        assert "localhost/finetune/trainer:no-such-tag" in message
        assert condition(kube.json("get", "ftj", "tiny"), "Failed")["status"] == "False"
        kube.run("delete", "ftj", "tiny", "--timeout=20s")
        kube.wait_gone("pods", "finetune.dev/stage=prepare", seconds=60)
