"""kubectl for tests: one namespace, and waiting by watches instead of sleeping."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from typing import Any

from testnode.settings import Settings, cache_folder

Manifest = dict[str, Any]
Predicate = Callable[[Manifest], bool]
FINISHED = frozenset({"Succeeded", "Failed"})


class Kube:
    """kubectl against the test node, in one namespace."""

    def __init__(self, namespace: str) -> None:
        """Take the node's own kubeconfig, never the person's."""
        self.namespace = namespace
        settings = Settings(cache_folder())
        self._env = os.environ | {
            "KUBECONFIG": str(settings.kubeconfig),
            "PATH": f"{settings.bin}:{os.environ['PATH']}",
        }

    def run(self, *args: str, check: bool = True, stdin: str | None = None, timeout: float = 120) -> str:
        """Run kubectl and give what it printed (both streams); fail with it if check."""
        command = ["kubectl", "-n", self.namespace, *args]
        done = subprocess.run(
            command, env=self._env, input=stdin, capture_output=True, text=True, timeout=timeout, check=False
        )
        output = done.stdout + done.stderr
        assert not check or done.returncode == 0, f"{' '.join(command)}\n{output}"
        return output

    def json(self, *args: str) -> Manifest:
        """Run kubectl with -o json."""
        found: Manifest = json.loads(self.run(*args, "-o", "json"))
        return found

    def items(self, kind: str, selector: str | None = None) -> list[Manifest]:
        """All objects of a kind in the namespace."""
        chosen = ["-l", selector] if selector else []
        found: list[Manifest] = self.json("get", kind, *chosen)["items"]
        return found

    def names(self, kind: str) -> set[str]:
        """The names of all objects of a kind."""
        return {item["metadata"]["name"] for item in self.items(kind)}

    def apply(self, *manifests: Manifest) -> None:
        """Apply, as a person does it."""
        self.run("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(manifests)}))

    def refused(self, manifest: Manifest) -> str:
        """Apply something that must be refused, and give the sentence."""
        output = self.run("apply", "--dry-run=server", "-f", "-", stdin=json.dumps(manifest), check=False)
        assert "dry run" not in output, f"was accepted: {output}"
        return output

    def patch(self, kind: str, name: str, patch: Manifest) -> None:
        """A merge patch."""
        self.run("patch", kind, name, "--type=merge", "-p", json.dumps(patch))

    def wait(self, kind: str, name: str, wanted: Predicate, seconds: float = 120, what: str = "") -> Manifest:
        """Watch an object until the predicate holds; fail with its last state if time runs out."""
        last: Manifest = {}
        for seen in self._watch(kind, name, seconds):
            last = seen
            if wanted(seen):
                return seen
        state = json.dumps(last.get("status"), indent=1)[-6000:]
        raise AssertionError(
            f"{kind}/{name}: not seen in {seconds:.0f} s: {what or 'the wanted state'}; last status: {state}"
        )

    def wait_phase(self, kind: str, name: str, *phases: str, seconds: float = 120) -> Manifest:
        """Watch until the phase is one of those; a job that fails ends the waiting at once."""
        found = self.wait(
            kind,
            name,
            lambda seen: seen.get("status", {}).get("phase") in {*phases, *FINISHED},
            seconds,
            f"phase {' or '.join(phases)}",
        )
        phase = found["status"]["phase"]
        assert phase in phases, (
            f"{name} is {phase}: {json.dumps(found['status'], indent=1)[-6000:]}\n{self.story(name)}"
        )
        return found

    def wait_condition(self, kind: str, name: str, type_: str, reason: str, seconds: float = 120) -> str:
        """Watch until a condition has that reason; give its message."""
        found = self.wait(
            kind, name, lambda seen: condition(seen, type_).get("reason") == reason, seconds, f"{type_}: {reason}"
        )
        return str(condition(found, type_).get("message", ""))

    def wait_gone(self, kind: str, selector_or_name: str, seconds: float = 120) -> None:
        """Wait until nothing of that name or selector (with =) is left."""
        chosen = ["-l", selector_or_name] if "=" in selector_or_name else [selector_or_name]
        self.run("wait", kind, *chosen, "--for=delete", f"--timeout={seconds:.0f}s", timeout=seconds + 10)

    def story(self, name: str) -> str:
        """What kubectl describe tells, and the pods."""
        return self.run("describe", "ftj", name, check=False)[-3000:] + self.run(
            "get", "pods", "-o", "wide", check=False
        )

    def _watch(self, kind: str, name: str, seconds: float) -> Iterator[Manifest]:
        selector = f"--field-selector=metadata.name={name}"
        command = ["kubectl", "-n", self.namespace, "get", kind, selector, "--watch", "-o", "json"]
        process = subprocess.Popen(command, env=self._env, stdout=subprocess.PIPE, text=True)
        timer = threading.Timer(seconds, process.kill)
        timer.start()
        try:
            yield from _documents(process)
        finally:
            timer.cancel()
            process.kill()
            # Reads to the end and closes the pipe.
            process.communicate()


def _documents(process: subprocess.Popen[str]) -> Iterator[Manifest]:
    """The JSON documents that kubectl writes one after the other."""
    assert process.stdout is not None
    text = ""
    for line in process.stdout:
        text += line
        if line.rstrip("\n") == "}":
            yield json.loads(text)
            text = ""


def condition(obj: Manifest, type_: str) -> Manifest:
    """A condition of an object, or an empty one."""
    conditions = obj.get("status", {}).get("conditions", [])
    return next((one for one in conditions if one["type"] == type_), {})
