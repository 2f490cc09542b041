"""``finetune chat``: talk to an InferenceService through a port-forward of its own."""

from __future__ import annotations

import http.client
import json
import sys
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from finetune_operator.api.v1alpha1.inferenceservice import InferenceServiceSpec
from finetune_operator.cli.cluster import Cluster, Manifest, fail
from finetune_operator.core import references

if TYPE_CHECKING:
    from collections.abc import Iterator

PORT = 8080
_TIMEOUT = 600
Message = dict[str, str]
Answer = dict[str, Any]


def chat(
    name: Annotated[str, typer.Argument(help="Name of an InferenceService.")],
    message: Annotated[
        str | None, typer.Option("--message", "-m", help="Ask this and leave; without it, a conversation.")
    ] = None,
    system: Annotated[str | None, typer.Option(help="A system message.")] = None,
    namespace: Annotated[
        str | None, typer.Option("--namespace", "-n", help="Namespace; the context's if not said.")
    ] = None,
    max_tokens: Annotated[int, typer.Option(help="Longest answer in tokens.")] = 512,
    temperature: Annotated[float, typer.Option(help="0 gives the same answer every time.")] = 0.0,
    output: Annotated[str | None, typer.Option("--output", "-o", help="json: the server's whole answer.")] = None,
) -> None:
    """Talk to a tuned model. No port-forward, no key to copy: both are found by the service's name."""
    endpoint = Endpoint(Cluster(namespace), name)
    settings: Answer = {"max_tokens": max_tokens, "temperature": temperature}
    start: list[Message] = [{"role": "system", "content": system}] if system else []
    if message is not None or not sys.stdin.isatty():
        asked = message if message is not None else sys.stdin.read().strip()
        answer = endpoint.ask([*start, {"role": "user", "content": asked}], settings)
        sys.stdout.write((json.dumps(answer) if output == "json" else text_of(answer)) + "\n")
        return
    _converse(endpoint, start, settings)


def _converse(endpoint: Endpoint, messages: list[Message], settings: Answer) -> None:
    console = Console()
    console.print(f"[dim]Talking to {endpoint.name}. An empty line or Ctrl-D ends it.[/dim]")
    while True:
        try:
            asked = console.input("[bold cyan]you[/bold cyan] ").strip()
        except (EOFError, KeyboardInterrupt):
            return
        if not asked:
            return
        messages.append({"role": "user", "content": asked})
        answer = ""
        for piece in endpoint.stream(messages, settings):
            answer += piece
            console.print(piece, end="", highlight=False, markup=False)
        console.print()
        messages.append({"role": "assistant", "content": answer})


def text_of(answer: Answer) -> str:
    """The assistant's words."""
    return str(answer["choices"][0]["message"]["content"])


class Endpoint:
    """The server of one InferenceService."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        """Find the service's pod and its key; say clearly what is missing."""
        self._cluster = cluster
        self.name = name
        service = cluster.get("inferenceservices", name)
        if service is None:
            raise fail(f"There is no InferenceService {cluster.namespace}/{name}. See `kubectl get infsvc`.")
        self._pod = self._ready_pod(service)
        self._key = self._api_key(service)

    def _ready_pod(self, service: Manifest) -> str:
        selector = self._cluster.service_selector(self.name)
        pod = self._cluster.ready_pod(selector) if selector else None
        if pod is None:
            status = service.get("status") or {}
            said = next((one.get("message", "") for one in status.get("conditions", []) if one["type"] == "Ready"), "")
            raise fail(f"InferenceService {self.name} is {status.get('phase', 'Pending')}, not Ready. {said}")
        return pod

    def _api_key(self, service: Manifest) -> str | None:
        wanted = references.api_key_secret(self.name, InferenceServiceSpec.model_validate(service["spec"]))
        if wanted is None:
            return None
        secret, key = wanted
        value = self._cluster.secret(secret, key)
        if value is None:
            raise fail(f"Secret {self._cluster.namespace}/{secret} has no key {key}: the server's API key is unknown.")
        return value

    def ask(self, messages: list[Message], settings: Answer) -> Answer:
        """The whole answer, as the OpenAI API gives it."""
        with self._post({"messages": messages} | settings) as response:
            answer: Answer = json.loads(response.read())
        return answer

    def stream(self, messages: list[Message], settings: Answer) -> Iterator[str]:
        """The answer piece by piece."""
        with self._post({"messages": messages, "stream": True} | settings) as response:
            for line in response:
                if not line.startswith(b"data: ") or line.strip() == b"data: [DONE]":
                    continue
                delta = json.loads(line[6:])["choices"][0]["delta"]
                if delta.get("content"):
                    yield delta["content"]

    @contextmanager
    def _post(self, body: Answer) -> Iterator[http.client.HTTPResponse]:
        connection = http.client.HTTPConnection("127.0.0.1", timeout=_TIMEOUT)
        connection.sock = self._cluster.connect(self._pod, PORT)
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {self._key}"} if self._key else {})
        with closing(connection):
            connection.request("POST", "/v1/chat/completions", json.dumps(body), headers)
            response = connection.getresponse()
            if response.status != http.client.OK:
                said = response.read().decode(errors="replace")[:500]
                raise fail(f"The server answered {response.status}: {said}")
            yield response
