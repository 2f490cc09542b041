"""https:// sources, against a real TLS server."""

from __future__ import annotations

import ssl
import subprocess
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest
from finetune_trainer.sources import web
from finetune_trainer.sources.datasets import Datasets
from finetune_trainer.sources.hub import Hub
from finetune_trainer.sources.web import Download, Rules
from finetune_trainer.stage import StageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BODY = b'{"text": "wind"}\n' * 1000
PRIVATE = Rules(allow_private=True, sleep=lambda _: None)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        name = self.path.partition("?")[0].strip("/")
        self.server.asked[name] += 1
        self.server.tokens.append(self.headers.get("Authorization"))
        getattr(self, f"_{name.partition('/')[0]}", self._missing)()
        self.close_connection = True

    def _rows(self) -> None:
        self._answer(200, BODY)

    def _cut(self) -> None:
        """The first connection breaks off; a range goes on."""
        start = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").removesuffix("-"))
        end = 5000 if self.server.asked["cut"] == 1 else len(BODY)
        headers = {"ETag": '"one"', "Content-Length": str(len(BODY) - start)}
        self._answer(206 if start else 200, BODY[start:end], headers)

    def _busy(self) -> None:
        """Too busy once."""
        self._answer(503 if self.server.asked["busy"] == 1 else 200, BODY)

    def _down(self) -> None:
        self._answer(500, b"")

    def _closed(self) -> None:
        self._answer(403, b"")

    def _missing(self) -> None:
        self._answer(404, b"")

    def _moved(self) -> None:
        self._answer(302, b"", {"Location": "/rows"})

    def _elsewhere(self) -> None:
        self._answer(302, b"", {"Location": f"https://127.0.0.1:{self.server.server_port}/rows"})

    def _plain(self) -> None:
        self._answer(302, b"", {"Location": "http://127.0.0.1/rows"})

    def _round(self) -> None:
        self._answer(302, b"", {"Location": "/round"})

    def _answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Keep the test's output clean."""


class Server(ThreadingHTTPServer):
    def __init__(self, certificate: Path, key: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: Counter[str] = Counter()
        self.tokens: list[str | None] = []
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.socket = context.wrap_socket(self.socket, server_side=True)

    def url(self, path: str) -> str:
        return f"https://localhost:{self.server_port}/{path}"

    def handle_error(self, *_: object) -> None:
        """A client that refuses the certificate is part of a test."""


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("tls")
    certificate, key = folder / "cert.pem", folder / "key.pem"
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    new = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *names]
    subprocess.run([*new, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    return certificate, key


@pytest.fixture
def server(pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("SSL_CERT_FILE", str(pair[0]))
    with Server(*pair) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "dataset"


@pytest.mark.parametrize("path", ["rows", "rows?version=2", "moved", "cut", "busy"])
def test_brings_a_file(server: Server, target: Path, path: str) -> None:
    assert Download(server.url(path), target, None, PRIVATE).run().read_bytes() == BODY


def test_a_broken_download_goes_on_where_it_ended(server: Server, target: Path) -> None:
    Download(server.url("cut"), target, None, PRIVATE).run()
    assert server.asked["cut"] == 2


def test_sends_the_token(server: Server, target: Path) -> None:
    Download(server.url("moved"), target, "t0ken", PRIVATE).run()
    assert server.tokens == ["Bearer t0ken", "Bearer t0ken"]


def test_sends_the_token_to_no_other_host(server: Server, target: Path) -> None:
    Download(server.url("elsewhere"), target, "t0ken", PRIVATE).run()
    assert server.tokens == ["Bearer t0ken", None]


REFUSALS = {
    "missing": ("DatasetNotFound", "does not exist (HTTP 404)"),
    "closed": ("DatasetNotFound", "it needs a token: name one in dataset.tokenSecretRef"),
    "round": ("DatasetNotFound", "leads through more than 5 redirects"),
    "plain": ("AddressNotAllowed", "which is not https://"),
    "down": ("HubUnreachable", "could not be fetched in 5 attempts: HTTP 500"),
}


@pytest.mark.parametrize("path", REFUSALS)
def test_says_why_it_cannot_have_a_file(server: Server, target: Path, path: str) -> None:
    reason, sentence = REFUSALS[path]
    with pytest.raises(StageError) as told:
        Download(server.url(path), target, None, PRIVATE).run()
    assert told.value.reason.name == reason
    assert sentence in told.value.message


def test_what_may_be_a_secret_is_not_told(server: Server, target: Path) -> None:
    with pytest.raises(StageError) as told:
        Download(server.url("missing?signature=s3cret"), target, None, PRIVATE).run()
    assert told.value.message == f"{server.url('missing')} does not exist (HTTP 404)."


def test_a_dataset_takes_its_token_from_the_environment(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATASET_TOKEN", "t0ken")
    datasets = Datasets(Hub("https://hub.invalid", tmp_path), tmp_path, tmp_path / "downloads", PRIVATE)
    assert datasets.open(server.url("rows"), "dataset").read_bytes() == BODY
    assert server.tokens == ["Bearer t0ken"]


def test_a_token_that_is_refused_is_not_told(server: Server, target: Path) -> None:
    with pytest.raises(StageError, match=r"the token of dataset.tokenSecretRef is refused") as told:
        Download(server.url("closed"), target, "t0ken", PRIVATE).run()
    assert "t0ken" not in told.value.message


def test_a_file_has_a_largest_size(server: Server, target: Path) -> None:
    with pytest.raises(StageError, match=r"is larger than 1.0 kB"):
        Download(server.url("rows"), target, None, Rules(allow_private=True, max_bytes=1000)).run()


def test_a_private_address_is_refused_before_it_is_asked(server: Server, target: Path) -> None:
    with pytest.raises(StageError, match=r"localhost is .*: no address of the public internet") as told:
        Download(server.url("rows"), target, None, Rules()).run()
    assert told.value.reason.name == "AddressNotAllowed"
    assert not server.asked


def test_a_certificate_that_nobody_knows_is_refused(
    server: Server, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises(StageError, match="CERTIFICATE_VERIFY_FAILED"):
        Download(server.url("rows"), target, None, PRIVATE).run()


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.216.34", True),
        ("2606:2800:220:1::1", True),
        ("127.0.0.1", False),
        ("10.43.0.1", False),
        ("169.254.169.254", False),
        ("100.64.0.1", False),
        ("0.0.0.0", False),  # noqa: S104 - an address to refuse
        ("224.0.0.1", False),
        ("::1", False),
        ("fe80::1%eth0", False),
        ("fd00::1", False),
        ("::ffff:169.254.169.254", False),
        ("2002:a9fe:a9fe::1", False),
        ("64:ff9b::a9fe:a9fe", False),
    ],
)
def test_knows_the_addresses_of_the_public_internet(address: str, public: bool) -> None:  # noqa: FBT001 - a table
    assert web.allowed(address) is public
