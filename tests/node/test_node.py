"""What the operator and its tests need of the node: DNS, storage, the GPU's runtime class, logs, exec, honest ends."""

import json
import subprocess
import sys
from collections.abc import Callable

import pytest

Kubectl = Callable[..., str]
RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "runAsUser": 10001,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def _pod_spec(script: str, **container: object) -> dict[str, object]:
    main = {
        "name": "main",
        "image": "localhost/finetune/busybox:1",
        "command": ["sh", "-c", script],
        "securityContext": RESTRICTED,
        **container,
    }
    return {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [main]}


def _object(kind: str, name: str, api: str = "v1", **fields: object) -> str:
    return json.dumps({"apiVersion": api, "kind": kind, "metadata": {"name": name}, **fields})


def _run_to(kubectl: Kubectl, namespace: str, phase: str, spec: dict[str, object]) -> None:
    kubectl("apply", f"--namespace={namespace}", "-f", "-", stdin=_object("Pod", "pod", spec=spec))
    kubectl("wait", f"--namespace={namespace}", f"--for=jsonpath={{.status.phase}}={phase}", "pod/pod", "--timeout=60s")


def test_the_node_is_ready_and_has_a_gpu_to_ask_for(kubectl: Kubectl) -> None:
    nodes = json.loads(kubectl("get", "nodes", "--output=json"))["items"]
    assert [node["status"]["allocatable"]["nvidia.com/gpu"] for node in nodes] == ["1"]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("kubernetes.default.svc", id="a service of another namespace"),
        pytest.param("kubernetes.default.svc.cluster.local", id="its full name"),
        pytest.param("web", id="a service of the pod's own namespace"),
    ],
)
def test_pods_find_services_by_name(name: str, kubectl: Kubectl, namespace: str) -> None:
    service = _object("Service", "web", spec={"ports": [{"port": 80}]})
    kubectl("apply", f"--namespace={namespace}", "-f", "-", stdin=service)
    # ping asks the C library for the address, as programs do; nslookup would not use the search list.
    _run_to(kubectl, namespace, "Succeeded", _pod_spec(f"ping -c 1 -W 1 {name} 2>&1 | grep -o 'PING {name} (10.43.*'"))
    assert "(10.43." in kubectl("logs", f"--namespace={namespace}", "pod")


def test_pods_reach_the_api_server_through_its_service_address(kubectl: Kubectl, namespace: str) -> None:
    script = "wget -q -O- --no-check-certificate https://kubernetes.default.svc/readyz"
    _run_to(kubectl, namespace, "Succeeded", _pod_spec(script))
    assert kubectl("logs", f"--namespace={namespace}", "pod") == "ok"


def test_a_claim_binds_and_keeps_what_one_pod_wrote_for_the_next(kubectl: Kubectl, namespace: str) -> None:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    kubectl("apply", f"--namespace={namespace}", "-f", "-", stdin=_object("PersistentVolumeClaim", "data", spec=claim))
    for script in ("echo kept > /data/file", "cat /data/file"):
        spec = _pod_spec(script, volumeMounts=[{"name": "data", "mountPath": "/data"}])
        spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
        _run_to(kubectl, namespace, "Succeeded", spec)
        logs = kubectl("logs", f"--namespace={namespace}", "pod")
        kubectl("delete", f"--namespace={namespace}", "pod/pod")
    assert logs == "kept\n"


def test_a_job_that_asks_for_the_gpu_runs_in_a_restricted_namespace(kubectl: Kubectl, namespace: str) -> None:
    spec = _pod_spec("true", resources={"limits": {"nvidia.com/gpu": "1"}}) | {"runtimeClassName": "nvidia"}
    job = _object("Job", "train", "batch/v1", spec={"backoffLimit": 0, "template": {"spec": spec}})
    kubectl("apply", f"--namespace={namespace}", "-f", "-", stdin=job)
    kubectl("wait", f"--namespace={namespace}", "--for=condition=Complete", "job/train", "--timeout=60s")


def test_two_pods_do_not_get_the_one_gpu_at_the_same_time(kubectl: Kubectl, namespace: str) -> None:
    spec = _pod_spec("sleep 1000", resources={"limits": {"nvidia.com/gpu": "1"}})
    _run_to(kubectl, namespace, "Running", spec)
    kubectl("apply", f"--namespace={namespace}", "-f", "-", stdin=_object("Pod", "second", spec=spec))
    unscheduled = "--for=condition=PodScheduled=False"
    kubectl("wait", f"--namespace={namespace}", unscheduled, "pod/second", "--timeout=30s")


def test_a_privileged_pod_is_refused_in_a_restricted_namespace(kubectl: Kubectl, namespace: str) -> None:
    pod = _object("Pod", "pod", spec=_pod_spec("true", securityContext={"privileged": True}))
    with pytest.raises(pytest.fail.Exception, match="violates PodSecurity"):
        kubectl("apply", f"--namespace={namespace}", "-f", "-", stdin=pod)


def test_commands_can_be_run_in_a_pod(kubectl: Kubectl, namespace: str) -> None:
    _run_to(kubectl, namespace, "Running", _pod_spec("sleep 1000"))
    assert "uid=10001" in kubectl("exec", f"--namespace={namespace}", "pod", "--", "id")


@pytest.mark.parametrize(
    ("script", "want_reason", "want_exit_code"),
    [
        pytest.param("exit 64", "Error", 64, id="a status of its own"),
        pytest.param("exec dd if=/dev/zero of=/dev/null bs=128M count=1", "OOMKilled", 137, id="out of memory"),
    ],
)
def test_how_a_pod_ended_is_told_truly(
    script: str, want_reason: str, want_exit_code: int, kubectl: Kubectl, namespace: str
) -> None:
    spec = _pod_spec(script, resources={"limits": {"memory": "32Mi"}})
    _run_to(kubectl, namespace, "Failed", spec)
    pod = json.loads(kubectl("get", f"--namespace={namespace}", "pod", "pod", "--output=json"))
    ended = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (ended["reason"], ended["exitCode"]) == (want_reason, want_exit_code)


def test_the_last_words_of_a_pod_reach_its_status(kubectl: Kubectl, namespace: str) -> None:
    _run_to(kubectl, namespace, "Failed", _pod_spec("printf 'row 3: no text' > /dev/termination-log; exit 65"))
    pod = json.loads(kubectl("get", f"--namespace={namespace}", "pod", "pod", "--output=json"))
    assert pod["status"]["containerStatuses"][0]["state"]["terminated"]["message"] == "row 3: no text"


def test_bringing_up_a_node_that_is_up_changes_nothing(kubectl: Kubectl) -> None:
    def pids() -> list[str]:
        argv = [sys.executable, "-m", "testnode", "status"]
        return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.splitlines()[:9]

    before = pids()
    subprocess.run([sys.executable, "-m", "testnode", "up"], check=True, capture_output=True)
    assert pids() == before
    assert "node1" in kubectl("get", "nodes")
