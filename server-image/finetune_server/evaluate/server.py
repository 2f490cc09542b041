"""A llama-server of our own for as long as the questions take."""

from __future__ import annotations

import http.client
import json
import logging
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from finetune_trainer.stage import StageError

from finetune_server.argv import server_argv
from finetune_server.evaluate.metrics import Answer
from finetune_server.llama import last_lines, server

if TYPE_CHECKING:
    from types import TracebackType

    from finetune_server.contract import ServeSpec
    from finetune_server.evaluate.rows import Question

log = logging.getLogger("finetune")

LOCAL = "127.0.0.1"
_ANSWER_SECONDS = 1800
"""The longest that one answer may take."""
_START_SECONDS = 60
_SLOWEST_READ = 50 * 10**6
"""Bytes per second that a load may be expected to reach."""
_STOP_SECONDS = 30


class LlamaServer:
    """Use it with ``with``: it is loaded inside and gone afterwards."""

    def __init__(self, spec: ServeSpec) -> None:
        """Take what to serve; the address should be LOCAL and a free port."""
        self._spec = spec
        self._running: _Running | None = None

    def __enter__(self) -> Self:
        """Start, and wait until the model is loaded."""
        argv = [server(), *server_argv(self._spec)]
        log.info("Starting %s", " ".join(argv))
        self._running = _Running(argv)
        try:
            self._await_load(self._running)
        except BaseException:
            self._running.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop it."""
        if self._running is not None:
            self._running.stop()

    def ask(self, question: Question, max_tokens: int) -> Answer:
        """One question, answered without chance. A question that the server refuses is an empty answer."""
        body = {"messages": question.prompt, "temperature": 0, "max_tokens": max_tokens, "seed": 0}
        try:
            status, answer = self._request("POST", "/v1/chat/completions", body)
        except (OSError, http.client.HTTPException) as error:
            raise self._failed(f"did not answer the question of line {question.line}") from error
        if status != http.HTTPStatus.OK:
            log.warning("Line %d: the server answered %d: %s", question.line, status, answer)
            return Answer("", stopped=False, refusal=f"{status} {answer}")
        choice = answer["choices"][0]
        return Answer(
            choice["message"]["content"] or "", choice["finish_reason"] == "stop", answer["usage"]["completion_tokens"]
        )

    def _await_load(self, running: _Running) -> None:
        deadline = time.monotonic() + _START_SECONDS + Path(self._spec.model_path).stat().st_size / _SLOWEST_READ
        while not self._healthy():
            if running.ended:
                raise self._failed("ended while it loaded")
            if time.monotonic() > deadline:
                raise self._failed("did not become healthy in time")
            time.sleep(0.1)

    def _healthy(self) -> bool:
        try:
            return self._request("GET", "/health")[0] == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False

    def _request(self, method: str, path: str, body: dict[str, Any] | None = None) -> tuple[int, Any]:
        connection = http.client.HTTPConnection(self._spec.host, self._spec.port, timeout=_ANSWER_SECONDS)
        try:
            content = None if body is None else json.dumps(body)
            connection.request(method, path, content, {"Content-Type": "application/json"})
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def _failed(self, what: str) -> StageError:
        said = last_lines(self._running.lines()) if self._running is not None else ""
        return StageError("ServerFailed", f"llama-server {what} ({self._spec.model_path}): {said}")


class _Running:
    """The process and what it said."""

    def __init__(self, argv: list[str]) -> None:
        self._log = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 - closed in stop
        self._process = subprocess.Popen(argv, stdout=self._log, stderr=subprocess.STDOUT)  # noqa: S603 - ours

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    def lines(self) -> list[str]:
        self._log.seek(0)
        return self._log.read().splitlines()

    def stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind((LOCAL, 0))
        port: int = probe.getsockname()[1]
        return port
