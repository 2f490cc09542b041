"""Fetching llama.cpp from a package index."""

import hashlib
import importlib.util
import io
import json
import tarfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import ModuleType

import pytest

PROGRAM = Path(__file__).parents[2] / "server-image" / "llama.cpp" / "fetch.py"


def archive() -> bytes:
    files = {"vendor/llama.cpp/LICENSE": b"MIT", "vendor/llama.cpp/src/llama.cpp": b"//", "README.md": b"not wanted"}
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as tar:
        for name, text in files.items():
            info = tarfile.TarInfo(f"llama_cpp_python-1.0/{name}")
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text))
    return content.getvalue()


ARCHIVE = archive()
SHA256 = hashlib.sha256(ARCHIVE).hexdigest()


class Index(BaseHTTPRequestHandler):
    """A package index with one file."""

    def do_GET(self) -> None:
        page = {"files": [{"filename": "llama_cpp_python-1.0.tar.gz", "url": "../../files/it.tar.gz"}]}
        answers = {"/simple/llama-cpp-python/": json.dumps(page).encode(), "/files/it.tar.gz": ARCHIVE}
        self.send_response(200)
        self.end_headers()
        self.wfile.write(answers[self.path])

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def fetch(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("fetch", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with ThreadingHTTPServer(("127.0.0.1", 0), Index) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setattr(module, "INDEX", f"http://127.0.0.1:{server.server_port}/simple/")
        yield module
        server.shutdown()


def test_only_llama_cpp_is_unpacked(fetch: ModuleType, tmp_path: Path) -> None:
    fetch.main("1.0", SHA256, tmp_path)
    files = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file())
    assert files == ["LICENSE", "src/llama.cpp"]


def test_another_content_is_refused(fetch: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="and the Dockerfile expects 00; do not use it"):
        fetch.main("1.0", "00", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_version_that_the_index_lacks_is_named(fetch: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"has no llama_cpp_python-2.0.tar.gz; check LLAMA_CPP_PYTHON"):
        fetch.main("2.0", SHA256, tmp_path)
