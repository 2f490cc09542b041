"""What happens after ``kubectl apply``: follow the job, ask both models, and say where everything is."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import PurePosixPath
from typing import Any

from finetune_operator.cli.chat import Endpoint, text_of
from finetune_operator.cli.cluster import Cluster
from finetune_server.evaluate.metrics import is_exact
from rich.markup import escape
from rich.table import Table

from demo.console import DemoError, console, heading

JOB = "invoices"
JOB_SECONDS = 3600
SERVICE_SECONDS = 600
QUESTIONS = 2
Manifest = dict[str, Any]


def tell(namespace: str) -> bool:
    """The story; true if the tuned model is better than its base."""
    heading(f"finetune watch {JOB}")
    watched = [sys.executable, "-m", "finetune_operator.cli.main", "watch", JOB, "-n", namespace]
    if subprocess.run([*watched, "--timeout", str(JOB_SECONDS)], check=False).returncode:
        raise DemoError(f"The job did not succeed. `kubectl -n {namespace} describe ftj {JOB}` tells why.")
    job = kubectl(namespace, "get", "ftj", JOB)
    heading("The service")
    service = ready_service(namespace)
    ask_both(namespace, job)
    better = scores(job)
    where(namespace, job, service)
    return better


def kubectl(namespace: str, *arguments: str) -> Manifest:
    """An object."""
    done = subprocess.run(
        ["kubectl", "-n", namespace, *arguments, "-o", "json"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise DemoError(done.stderr.strip())
    found: Manifest = json.loads(done.stdout)
    return found


def ready_service(namespace: str) -> Manifest:
    """The InferenceService that the job made, once it is ready."""
    wait = [
        "kubectl",
        "-n",
        namespace,
        "wait",
        f"infsvc/{JOB}",
        "--for=condition=Ready",
        f"--timeout={SERVICE_SECONDS}s",
    ]
    if subprocess.run(wait, check=False).returncode:
        raise DemoError(f"The service is not ready. `kubectl -n {namespace} describe infsvc {JOB}` tells why.")
    return kubectl(namespace, "get", "infsvc", JOB)


def read_from_server(namespace: str, path: str) -> str:
    """A file of the model version, read in the server's pod."""
    selector = kubectl(namespace, "get", "service", JOB)["spec"]["selector"]
    chosen = ",".join(f"{key}={value}" for key, value in selector.items())
    (pod, *_) = kubectl(namespace, "get", "pods", "-l", chosen)["items"]
    command = ["kubectl", "-n", namespace, "exec", pod["metadata"]["name"], "-c", "server", "--", "cat", path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise DemoError(f"`{' '.join(command)}`: {done.stderr.strip()}")
    return done.stdout


def version_folder(job: Manifest) -> PurePosixPath:
    """Where the model version lies, as its server sees it."""
    return PurePosixPath(job["status"]["model"]["path"]).parent


def ask_both(namespace: str, job: Manifest) -> None:
    """Held-out questions: what the base said in the evaluation, and what the service says now."""
    heading("The same held-out questions to both")
    answers = read_from_server(namespace, str(version_folder(job) / "answers.jsonl"))
    endpoint = Endpoint(Cluster(namespace), JOB)
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    for row in map(json.loads, answers.splitlines()[:QUESTIONS]):
        live = text_of(endpoint.ask(row["prompt"], {"temperature": 0, "max_tokens": 96}))
        table.add_row("question", escape(row["prompt"][-1]["content"]))
        table.add_row("expected", escape(row["expected"]))
        table.add_row("base", marked(row["base"], row["expected"]))
        table.add_row("tuned, by the service", marked(live, row["expected"]), end_section=True)
        table.add_row("", "")
    console.print(table)


def marked(answer: str, expected: str) -> str:
    """An answer in green if it is exactly what was expected, else in red."""
    return f"[{'green' if is_exact(expected, answer) else 'red'}]{escape(answer)}[/]"


def scores(job: Manifest) -> bool:
    """Both scores on the held-out rows; true if the tuned model is better."""
    evaluation = job["status"]["evaluation"]
    base, tuned = evaluation["base"], evaluation["tuned"]
    table = Table("held-out rows", "base", "tuned")
    table.add_row("rows", str(base["rows"]), str(tuned["rows"]))
    for name, key in (("exact match", "exactMatch"), ("valid JSON", "validJson"), ("fields, F1", "fieldF1")):
        table.add_row(name, percent(base.get(key)), percent(tuned.get(key)))
    console.print(table)
    return float(tuned["exactMatch"]) > float(base["exactMatch"])


def percent(part: float | None) -> str:
    """A part of one, as people read it."""
    return "-" if part is None else f"{part:.0%}"


def where(namespace: str, job: Manifest, service: Manifest) -> None:
    """Where the endpoint, its key, its metrics and the report are."""
    heading("Where everything is")
    report = version_folder(job) / "report.md"
    forward = f"kubectl -n {namespace} port-forward svc/{JOB} 8080"
    lines = (
        ("endpoint", service["status"]["url"]),
        ("from here", f"{forward}, then http://127.0.0.1:8080/v1"),
        ("key", f"kubectl -n {namespace} get secret {JOB}-api-key -o jsonpath='{{.data.api-key}}' | base64 -d"),
        ("metrics", "http://127.0.0.1:8080/metrics, with the same key as bearer token"),
        ("report", f"kubectl -n {namespace} exec svc/{JOB} -c server -- cat {report}"),
        ("chat", f"finetune chat {JOB} -n {namespace}"),
        ("story", f"kubectl -n {namespace} describe ftj {JOB}"),
    )
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    for name, text in lines:
        table.add_row(name, escape(text))
    console.print(table)
