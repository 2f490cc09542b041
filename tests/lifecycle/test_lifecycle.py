"""Up, some pods, down: the machine is what it was before. Needs a machine whose node is down, and takes a minute."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from testnode import host, iptables
from testnode.control_plane import apply, kubectl
from testnode.settings import BRIDGE, CGROUP, Settings, cache_folder

PODS = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: claim}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: pod}
spec:
  containers:
    - name: main
      image: localhost/finetune/busybox:1
      command: [sleep, inf]
      ports: [{containerPort: 80, hostPort: 18080}]
      volumeMounts: [{name: data, mountPath: /data}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: claim}}]
---
apiVersion: v1
kind: Service
metadata: {name: service}
spec: {type: NodePort, selector: {run: pod}, ports: [{port: 80}]}
"""


@pytest.fixture
def settings() -> Settings:
    settings = Settings(cache_folder())
    if host.recall(settings) is not None:
        pytest.fail("the node is up, and this test would take it down: run `make node-down` first")
    return settings


def test_after_down_the_machine_is_what_it_was(settings: Settings) -> None:
    before = _machine()
    _testnode("up")
    apply(settings, PODS)
    _run(kubectl(settings, "wait", "--for=condition=Ready", "pod/pod", "--timeout=60s"))
    _testnode("down")
    assert _machine() == before
    assert _processes_with(str(settings.node)) == []


def _testnode(command: str) -> None:
    _run([sys.executable, "-m", "testnode", command])


def _run(argv: list[str]) -> str:
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


def _machine() -> dict[str, object]:
    mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return {
        "rules": {family: iptables.rules(iptables.save(family)) for family in iptables.FAMILIES},
        "links": [link["ifname"] for link in json.loads(_run(["ip", "-json", "link"]))],
        "bridge": Path("/sys/class/net", BRIDGE).exists(),
        "mounts": [mount for mount in mounts if "testnode" in mount or "/node/" in mount or "/containerd/" in mount],
        "control groups": sorted(map(str, Path("/sys/fs/cgroup").glob(f"**/{CGROUP}"))),
        "kernel": {name: path.read_text() for name in host.SYSCTLS if (path := Path("/proc/sys", name)).exists()},
        "folders": [folder for folder in (*host.FOREIGN_FOLDERS, "/run/finetune-testnode") if Path(folder).exists()],
    }


def _processes_with(text: str) -> list[str]:
    commands = (_command(path) for path in Path("/proc").glob("[0-9]*/cmdline"))
    return [command for command in commands if text in command]


def _command(path: Path) -> str:
    try:
        return path.read_text(errors="replace").replace("\0", " ")
    except (FileNotFoundError, ProcessLookupError):
        return ""
