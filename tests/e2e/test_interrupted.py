"""Training that is interrupted goes on from its checkpoint, and says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.objects import config_map, job, rows_text

if TYPE_CHECKING:
    from tests.support.kube import Kube, Manifest

TRAINING = {"maxSteps": 150, "batchSize": 1, "gradientAccumulation": 1, "maxLength": 128, "saveEverySteps": 10}


def trained(steps: int, seen: Manifest) -> bool:
    """Has it done so many steps?"""
    return ((seen.get("status") or {}).get("progress") or {}).get("step", 0) >= steps


def test_a_killed_pod_costs_no_retry_and_training_goes_on(kube: Kube) -> None:
    kube.apply(config_map(rows_text()), job(training=TRAINING, retries=0))
    kube.wait("ftj", "tiny", lambda seen: trained(20, seen), 240, "20 steps")
    (pod,) = kube.items("pods", "finetune.dev/stage=train")
    kube.run("delete", "pod", pod["metadata"]["name"], "--timeout=120s")

    done = kube.wait_phase("ftj", "tiny", "Succeeded", seconds=300)
    attempts = [stage for stage in done["status"]["stages"] if stage["name"] == "train"]
    assert [stage["outcome"] for stage in attempts] == ["Disrupted", "Succeeded"]
    assert done["status"]["progress"]["resumedFromStep"] >= 20


def test_a_suspended_job_stops_and_goes_on(kube: Kube) -> None:
    kube.apply(config_map(rows_text()), job(training=TRAINING))
    kube.wait("ftj", "tiny", lambda seen: trained(20, seen), 240, "20 steps")
    kube.patch("ftj", "tiny", {"spec": {"suspend": True}})
    stopped = kube.wait_phase("ftj", "tiny", "Suspended")
    kube.wait_gone("pods", "finetune.dev/stage=train", seconds=120)
    assert not stopped["status"].get("finishedAt")

    kube.patch("ftj", "tiny", {"spec": {"suspend": False}})
    done = kube.wait_phase("ftj", "tiny", "Succeeded", seconds=300)
    assert done["status"]["progress"]["resumedFromStep"] >= 20
