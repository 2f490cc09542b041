"""The operator as a process of this machine, with the rights that the chart gives it and no more."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from testnode.settings import Settings, cache_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.kube import Kube, Manifest

CHART = Path(__file__).parents[2] / "charts" / "finetune-operator"
RIGHTS = {"ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"}
INSTALLED = "app.kubernetes.io/name=finetune-operator"
READY, METRICS = "http://127.0.0.1:8081/readyz", "http://127.0.0.1:9090/metrics"


def until(holds: Callable[[], Any], what: str, seconds: float = 30) -> Any:
    """The first true answer; fails when time runs out."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := holds():
            return found
        time.sleep(0.1)
    raise AssertionError(f"not seen within {seconds:.0f} s: {what}")


def answer(address: str) -> str:
    """What a server says, or nothing."""
    try:
        with urllib.request.urlopen(address, timeout=5) as found:  # noqa: S310 - servers of this machine
            return str(found.read().decode())
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return ""


@contextmanager
def alone(kube: Kube) -> Iterator[None]:
    """Without an installed operator, which would do the same work."""
    found = kube.json("get", "deployments", "-A", "-l", INSTALLED)["items"]
    places = [(each["metadata"]["namespace"], each["metadata"]["name"], each["spec"]["replicas"]) for each in found]
    for namespace, name, _ in places:
        kube.run("-n", namespace, "scale", f"deployment/{name}", "--replicas=0")
    kube.run("wait", "pods", "-A", "-l", INSTALLED, "--for=delete", "--timeout=60s", check=False)
    yield
    for namespace, name, replicas in places:
        kube.run("-n", namespace, "scale", f"deployment/{name}", f"--replicas={replicas}")


@contextmanager
def rights(kube: Kube, watch_namespace: str, kubeconfig: Path) -> Iterator[None]:
    """Roles and account out of the chart, and a kubeconfig with the account's token."""
    settings, release = Settings(cache_folder()), f"io-{kube.namespace}"
    command = [str(settings.bin / "helm"), "template", release, str(CHART), "-n", kube.namespace]
    command += ["--set", f"watchNamespace={watch_namespace}"]
    rendered = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    objects = [each for each in yaml.safe_load_all(rendered) if each and each["kind"] in RIGHTS]
    kube.apply(*objects)
    kubeconfig.write_text(
        yaml.safe_dump(_with_token(settings.kubeconfig, kube.run("create", "token", release).strip()))
    )
    yield
    for each in objects:
        kube.run("delete", each["kind"], each["metadata"]["name"], "--ignore-not-found", check=False)


def _with_token(kubeconfig: Path, token: str) -> Manifest:
    config: Manifest = yaml.safe_load(kubeconfig.read_text())
    return {**config, "users": [{"name": each["name"], "user": {"token": token}} for each in config["users"]]}


class Operator:
    """``python -m finetune_operator``, started and stopped by the test."""

    def __init__(self, kube: Kube, kubeconfig: Path, watch_namespace: str, log: Path) -> None:
        """Nothing runs yet."""
        self._process: subprocess.Popen[bytes] | None = None
        self._log = log
        self._environment = os.environ | {
            "KUBECONFIG": str(kubeconfig),
            "FINETUNE_OPERATOR_NAMESPACE": kube.namespace,
            "FINETUNE_TRAINER_IMAGE": "localhost/finetune/trainer:dev",
            "FINETUNE_SERVER_IMAGE": "localhost/finetune/server:dev",
            "FINETUNE_DEFAULT_PLATFORM": "cpu",
            "FINETUNE_PROGRESS_URL": "https://127.0.0.1:8443/v1/progress",
            "FINETUNE_WATCH_NAMESPACE": watch_namespace,
        }

    @property
    def log(self) -> str:
        """Everything that it has said."""
        return self._log.read_text()

    def start(self) -> None:
        """Until it is ready."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "finetune_operator"], env=self._environment, stdout=log, stderr=log
            )
        until(lambda: answer(READY), f"readiness; its log: {self.log}")

    def stop(self) -> int:
        """SIGTERM, as Kubernetes does it; the exit status."""
        if self._process is None:
            return 0
        self._process.terminate()
        return self._process.wait(timeout=20)

    def looks(self) -> float:
        """How often it has looked at an object since its start."""
        lines = answer(METRICS).splitlines()
        wanted = "finetune_reconcile_duration_seconds_count"
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(wanted))
