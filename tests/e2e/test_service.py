"""A service of its own, which refers to a job: it waits for it, serves it, and outlives it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.kube import condition
from tests.support.objects import config_map, job, rows_text, service

if TYPE_CHECKING:
    from tests.support.kube import Kube


def test_a_service_waits_for_its_job_serves_it_and_outlives_it(kube: Kube) -> None:
    kube.apply(service())
    said = kube.wait_phase("infsvc", "chat", "WaitingForModel")
    assert "tiny" in condition(said, "ModelResolved")["message"]
    assert kube.names("deployments") == set()

    kube.apply(config_map(rows_text()), job())
    kube.wait_phase("ftj", "tiny", "Succeeded", seconds=300)
    ready = kube.wait_phase("infsvc", "chat", "Ready", seconds=180)
    assert ready["status"]["model"]["job"] == "tiny"
    assert ready["status"]["contextLength"] == 512

    kube.run("delete", "ftj", "tiny", "--timeout=30s")
    (pod,) = [one for one in kube.items("pods") if "-server-" in one["metadata"]["name"]]
    kube.run("delete", "pod", pod["metadata"]["name"], "--timeout=60s")
    back = kube.wait("infsvc", "chat", lambda seen: seen["status"]["phase"] == "Ready", 180, "Ready again")
    assert back["status"]["model"]["version"] == ready["status"]["model"]["version"]

    kube.patch("infsvc", "chat", {"spec": {"suspend": True}})
    kube.wait_phase("infsvc", "chat", "Suspended")
    kube.wait_gone("pods", "app.kubernetes.io/managed-by=finetune-operator")
