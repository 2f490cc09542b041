"""Reports reach the operator over TLS, and never hold training up."""

from __future__ import annotations

import json
import ssl
import threading
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from finetune_trainer.train import progress
from finetune_trainer.train.progress import Endpoint, Reporter, make_report

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@dataclass
class Operator:
    """A progress endpoint that remembers."""

    url: str
    ca: Path
    token: Path
    bodies: list[dict[str, Any]] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)
    gate: threading.Event = field(default_factory=threading.Event)

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint(self.url, self.ca, self.token)


def make_certificate(folder: Path) -> tuple[Path, Path]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "progress")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(minutes=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    public, private = folder / "ca.crt", folder / "tls.key"
    public.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    private.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain))
    return public, private


@pytest.fixture
def operator(tmp_path: Path) -> Iterator[Operator]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            seen.bodies.append(json.loads(body)["trainerStatus"])
            seen.tokens.append(self.headers["Authorization"])
            seen.gate.wait(5)
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    public, private = make_certificate(tmp_path)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(public, private)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    token = tmp_path / "token"
    token.write_text("first\n")
    seen = Operator(f"https://127.0.0.1:{server.server_port}/v1/progress", public, token)
    seen.gate.set()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield seen
    server.shutdown()
    server.server_close()


def test_a_report_has_the_protocols_form() -> None:
    report = make_report(3, 8, 12.6, {"loss": 1.25, "learningRate": 2e-4, "evalLoss": None})
    status = json.loads(report.to_json())["trainerStatus"]
    assert status["progressPercentage"] == 37
    assert status["estimatedRemainingSeconds"] == 13
    assert {metric["name"]: metric["value"] for metric in status["metrics"]} == {
        "step": "3",
        "totalSteps": "8",
        "loss": "1.25",
        "learningRate": "0.0002",
    }


def test_first_and_last_arrive_and_those_between_give_way(operator: Operator) -> None:
    operator.gate.clear()
    with closing(Reporter(operator.endpoint)) as reporter:
        for step in range(100):
            reporter.send(make_report(step, 100, None, {}))
        operator.gate.set()
    steps = [body["metrics"][0]["value"] for body in operator.bodies]
    assert steps[-1] == "99"
    assert len(steps) <= 2
    assert operator.tokens[0] == "Bearer first"


def test_the_token_is_read_for_every_report(operator: Operator) -> None:
    operator.endpoint.post(make_report(1, 2, None, {}))
    operator.token.write_text("second")
    operator.endpoint.post(make_report(2, 2, None, {}))
    assert operator.tokens == ["Bearer first", "Bearer second"]


def test_a_stranger_in_the_operators_place_gets_no_token(operator: Operator, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other, _ = make_certificate(tmp_path / "other")
    with pytest.raises(OSError, match="certificate verify failed"):
        Endpoint(operator.url, other, operator.token).post(make_report(1, 2, None, {}))
    assert operator.tokens == []


def test_failures_are_said_once(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "INTERVAL", 0.0)
    tried: list[int] = []
    reached = threading.Event()

    class Unreachable(Endpoint):
        def post(self, _report: Any) -> None:
            tried.append(1)
            reached.set()
            raise ConnectionRefusedError("nobody there")

    with closing(Reporter(Unreachable("http://127.0.0.1:9", None, None))) as reporter:
        for step in range(3):
            reached.clear()
            reporter.send(make_report(step, 3, None, {}))
            assert reached.wait(5)
    assert len(tried) == 3
    assert caplog.text.count("Progress could not be sent") == 1


def test_outside_of_a_pod_nothing_is_sent() -> None:
    assert Endpoint.from_environment({}) is None
    with closing(Reporter(None)) as reporter:
        reporter.send(make_report(1, 2, None, {}))
