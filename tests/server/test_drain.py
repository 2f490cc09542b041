"""The preStop hook against a server that counts its requests."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest
from finetune_server.drain import drain, running_requests

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

METRICS = "llamacpp:requests_processing {}\nllamacpp:requests_deferred 0\nllamacpp:n_tokens_max 7\n"


class _Server(ThreadingHTTPServer):
    """Says the numbers of running requests one after the other, then the last one again."""

    def __init__(self, *running: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.running = list(running)
        self.keys: list[str | None] = []


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        self.server.keys.append(self.headers["Authorization"])
        running = self.server.running.pop(0) if len(self.server.running) > 1 else self.server.running[0]
        self.send_response(200)
        self.end_headers()
        self.wfile.write(METRICS.format(running).encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in the base class
        pass


@pytest.fixture
def serve() -> Iterator[type[_Server]]:
    servers: list[_Server] = []

    class Started(_Server):
        def __init__(self, *running: int) -> None:
            super().__init__(*running)
            servers.append(self)
            threading.Thread(target=self.serve_forever, daemon=True).start()

    yield Started
    for server in servers:
        server.shutdown()
        server.server_close()


def test_waits_until_it_is_quiet(serve: type[_Server], tmp_path: Path) -> None:
    server = serve(2, 1, 0)
    assert drain(10, server.server_port, tmp_path / "no-key", quiet=0.02)
    assert len(server.keys) >= 4


def test_gives_up_at_the_limit(serve: type[_Server], tmp_path: Path) -> None:
    assert not drain(0.1, serve(1).server_port, tmp_path / "no-key", quiet=0.02)


def test_a_request_in_between_starts_the_quiet_time_again(serve: type[_Server], tmp_path: Path) -> None:
    server = serve(0, 1, 0)
    assert drain(10, server.server_port, tmp_path / "no-key", quiet=0.02)
    assert server.running == [0]


def test_a_server_that_is_gone_is_drained(tmp_path: Path) -> None:
    assert drain(10, 9, tmp_path / "no-key")


def test_the_first_key_of_the_file_is_sent(serve: type[_Server], tmp_path: Path) -> None:
    (tmp_path / "key").write_text("first\nsecond\n")
    server = serve(0)
    assert running_requests(server.server_port, tmp_path / "key") == 0
    assert server.keys == ["Bearer first"]
