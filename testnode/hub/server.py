"""The hub's HTTP: metadata, trees, and files with ranges, ETags and the refusals of the real one."""

import json
import re
from collections import Counter
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

from testnode.hub.repository import Repository, etag, find

_API = re.compile(
    r"/api/(?P<kind>models|datasets)/(?P<repo>[^/]+/[^/]+)(/(?P<what>revision|tree)/(?P<revision>[^/]+))?(/.*)?"
)
_FILE = re.compile(r"/((?P<kind>datasets)/)?(?P<repo>[^/]+/[^/]+)/resolve/(?P<revision>[^/]+)/(?P<path>.+)")
_RANGE = re.compile(r"bytes=(\d+)-(\d*)")
DOWN = ".down"
"""While a file of this name lies in the root, every answer is 503."""


class Hub(ThreadingHTTPServer):
    """Serves the repositories below a root folder."""

    daemon_threads = True

    def __init__(self, root: Path, address: str, port: int) -> None:
        """Bind; port 0 takes a free one."""
        super().__init__((address, port), Handler)
        self.root = root
        self.asked: Counter[str] = Counter()
        """How often each file was asked for: a fault may hold for the first few times only."""


class Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    server: Hub

    def do_HEAD(self) -> None:  # the base class looks for this name
        """Answer without a body."""
        self.do_GET()

    def do_GET(self) -> None:  # the base class looks for this name
        """Answer."""
        path = unquote(urlsplit(self.path).path)
        if (self.server.root / DOWN).exists():
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, "", "the hub is down for a test")
        elif found := _API.fullmatch(path):
            self._api(found["kind"], found["repo"], found["what"], found["revision"] or "main")
        elif found := _FILE.fullmatch(path):
            self._file(found["kind"] or "models", found["repo"], found["revision"], found["path"])
        else:
            self._refuse(HTTPStatus.NOT_FOUND, "", f"no such address: {path}")

    def _api(self, kind: str, name: str, what: str | None, revision: str) -> None:
        repository = self._repository(kind, name, revision)
        if repository is None:
            return
        if what == "tree":
            files = repository.files().items()
            tree = [
                {"type": "file", "path": name, "size": path.stat().st_size, "oid": etag(path)[:40]}
                for name, path in files
            ]
            self._json(tree)
            return
        siblings = [{"rfilename": name} for name in repository.files()]
        gated = "manual" if repository.tokens() is not None else False
        facts = {"id": name, "sha": repository.commit(), "siblings": siblings, "private": False, "gated": gated}
        self._json(facts | {"tags": [], "downloads": 0, "likes": 0})

    def _repository(self, kind: str, name: str, revision: str) -> Repository | None:
        repository = find(self.server.root, kind, name)
        if repository is None:
            # The real hub says 401 to people without a token: it does not tell what is private from what is not there.
            status = HTTPStatus.NOT_FOUND if self._token() else HTTPStatus.UNAUTHORIZED
            self._refuse(status, "RepoNotFound", "Repository not found")
        elif not repository.has(revision):
            self._refuse(HTTPStatus.NOT_FOUND, "RevisionNotFound", f"Invalid rev id: {revision}")
            return None
        return repository

    def _file(self, kind: str, name: str, revision: str, path: str) -> None:
        repository = self._repository(kind, name, revision)
        if repository is None:
            return
        tokens, file = repository.tokens(), repository.files().get(path)
        if tokens is not None and self._token() not in tokens:
            status = HTTPStatus.FORBIDDEN if self._token() else HTTPStatus.UNAUTHORIZED
            self._refuse(status, "GatedRepo", f"Access to {name} is restricted: ask for access on its page")
        elif file is None:
            self._refuse(HTTPStatus.NOT_FOUND, "EntryNotFound", f"Entry not found: {path}")
        else:
            self._send(repository, path, file)

    def _send(self, repository: Repository, name: str, file: Path) -> None:
        fault = repository.faults().get(name, {})
        if self.command == "GET" and fault:
            self.server.asked[f"{repository.name}/{name}"] += 1
            if self.server.asked[f"{repository.name}/{name}"] > fault.get("times", 1):
                fault = {}
        else:
            fault = {}
        if "status" in fault:
            self._refuse(HTTPStatus(fault["status"]), "", "a fault for a test")
            return
        first, last, size = *self._wanted(file.stat().st_size), file.stat().st_size
        if first >= size > 0:
            self._head(
                HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, {"Content-Range": f"bytes */{size}", "Content-Length": "0"}
            )
            return
        partial = last - first + 1 < size
        headers = {"ETag": f'"{etag(file)}"', "X-Repo-Commit": repository.commit(), "Accept-Ranges": "bytes"}
        headers |= {"Content-Length": str(last - first + 1)}
        headers |= {"Content-Range": f"bytes {first}-{last}/{size}"} if partial else {}
        self._head(HTTPStatus.PARTIAL_CONTENT if partial else HTTPStatus.OK, headers)
        if self.command == "GET":
            self._copy(file, first, min(last - first + 1, fault.get("cut", size)))
            self.close_connection = self.close_connection or "cut" in fault

    def _wanted(self, size: int) -> tuple[int, int]:
        found = _RANGE.fullmatch(self.headers.get("Range", ""))
        if found is None:
            return 0, size - 1
        return int(found[1]), min(int(found[2]) if found[2] else size - 1, size - 1)

    def _copy(self, file: Path, first: int, count: int) -> None:
        with file.open("rb") as source:
            source.seek(first)
            while count > 0 and (piece := source.read(min(count, 1 << 20))):
                self.wfile.write(piece)
                count -= len(piece)

    def _token(self) -> str:
        return str(self.headers.get("Authorization", "")).removeprefix("Bearer ").strip()

    def _json(self, value: object) -> None:
        body = json.dumps(value).encode()
        self._head(HTTPStatus.OK, {"Content-Type": "application/json", "Content-Length": str(len(body))})
        if self.command == "GET":
            self.wfile.write(body)

    def _refuse(self, status: HTTPStatus, code: str, message: str) -> None:
        body = json.dumps({"error": message}).encode()
        headers = {"Content-Type": "application/json", "Content-Length": str(len(body)), "X-Error-Message": message}
        self._head(status, headers | ({"X-Error-Code": code} if code else {}))
        if self.command == "GET":
            self.wfile.write(body)

    def _head(self, status: HTTPStatus, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()


def serve(root: Path, address: str, port: int) -> None:
    """Serve until stopped."""
    with Hub(root, address, port) as hub:
        hub.serve_forever()
