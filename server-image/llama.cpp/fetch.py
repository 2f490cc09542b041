# ruff: noqa: INP001 - a program of the image's build, no part of a package
"""Fetch llama.cpp's source: the copy inside llama-cpp-python's source archive, checked by its SHA-256.

Usage: ``python3 fetch.py <version> <sha256> <folder>``. ``pip download`` would do, but it also prepares the package's
own build, which takes minutes and is not wanted here. The package index is the one that pip would ask.
"""

import hashlib
import io
import json
import os
import sys
import tarfile
import urllib.parse
import urllib.request
from pathlib import Path

from pip._internal.models.index import PyPI  # pip has no public word for the index that it asks

PACKAGE = "llama-cpp-python"
INDEX = os.environ.get("PIP_INDEX_URL") or PyPI.simple_url
SIMPLE_API = "application/vnd.pypi.simple.v1+json"


def main(version: str, sha256: str, folder: Path) -> None:
    """Put the source of llama.cpp into ``folder``."""
    archive = download(address(f"llama_cpp_python-{version}.tar.gz"))
    found = hashlib.sha256(archive).hexdigest()
    if found != sha256:
        sys.exit(f"{PACKAGE} {version} has the SHA-256 {found}, and the Dockerfile expects {sha256}; do not use it")
    unpack(archive, f"llama_cpp_python-{version}/vendor/llama.cpp/", folder)


def address(name: str) -> str:
    """Where the package index keeps the file of this name."""
    page = json.loads(download(f"{INDEX.rstrip('/')}/{PACKAGE}/", accept=SIMPLE_API))
    urls = [str(file["url"]) for file in page["files"] if file["filename"] == name]
    if not urls:
        sys.exit(f"the package index {INDEX} has no {name}; check LLAMA_CPP_PYTHON in the Dockerfile")
    return urllib.parse.urljoin(f"{INDEX.rstrip('/')}/{PACKAGE}/", urls[0])


def download(url: str, accept: str = "*/*") -> bytes:
    """The content of an address."""
    request = urllib.request.Request(url, headers={"Accept": accept})  # noqa: S310 - the index chosen by whoever builds
    with urllib.request.urlopen(request, timeout=180) as answer:  # noqa: S310 - likewise
        content: bytes = answer.read()
    return content


def unpack(archive: bytes, prefix: str, folder: Path) -> None:
    """Unpack what lies under ``prefix`` in the archive into ``folder``; its hash is known, so its paths are trusted."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for member in tar:
            if member.name.startswith(prefix):
                member.name = member.name.removeprefix(prefix)
                tar.extract(member, folder)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
