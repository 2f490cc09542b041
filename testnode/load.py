"""Loading an image from an OCI layout (a folder) or an OCI archive (a tar of one) into the node.

What containerd has already is left out of the stream, so that a changed last layer costs only itself.
"""

import io
import json
import subprocess
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

from testnode.console import NodeError
from testnode.containerd import ctr
from testnode.settings import Settings
from testnode.shell import run

REFERENCE = "org.opencontainers.image.ref.name"
CONTAINERD_NAME = "io.containerd.image.name"
Descriptor = dict[str, object]


class Layout(Protocol):
    """Where the files of an OCI layout are."""

    def read(self, name: str) -> bytes:
        """A small file."""

    def blobs(self) -> Iterator[tuple[str, int, IO[bytes]]]:
        """Every blob: name, size and content."""


@dataclass(frozen=True)
class Folder:
    """A layout as a folder."""

    path: Path

    def read(self, name: str) -> bytes:
        """A small file."""
        return (self.path / name).read_bytes()

    def blobs(self) -> Iterator[tuple[str, int, IO[bytes]]]:
        """Every blob: name, size and content."""
        for path in sorted((self.path / "blobs").rglob("*")):
            if path.is_file():
                with path.open("rb") as content:
                    yield str(path.relative_to(self.path)), path.stat().st_size, content


@dataclass(frozen=True)
class Archive:
    """A layout as a tar."""

    tar: tarfile.TarFile

    def read(self, name: str) -> bytes:
        """A small file."""
        content = self.tar.extractfile(self._stored(name))
        return content.read() if content else b""

    def blobs(self) -> Iterator[tuple[str, int, IO[bytes]]]:
        """Every blob: name, size and content."""
        for member in self.tar:
            content = self.tar.extractfile(member)
            name = member.name.removeprefix("./")
            if content is not None and name.startswith("blobs/"):
                yield name, member.size, content

    def _stored(self, name: str) -> str:
        return next(stored for stored in self.tar.getnames() if stored.removeprefix("./") == name)


def load(settings: Settings, source: Path, reference: str) -> None:
    """Give the image in ``source`` to the node, under the name ``reference``."""
    if not source.exists():
        raise NodeError(f"{source} does not exist; it should be an OCI layout folder or an OCI archive")
    if source.is_dir():
        _stream(settings, Folder(source), reference)
    else:
        with tarfile.open(source) as tar:
            _stream(settings, Archive(tar), reference)
    for old in forgotten(run(ctr(settings, "images", "list"))):
        run(ctr(settings, "images", "remove", old))


def pick(index: dict[str, object], reference: str) -> Descriptor:
    """The manifest in an index that is meant: the only one, or the one that is called so."""
    manifests: list[Descriptor] = index["manifests"]  # type: ignore[assignment]  # JSON
    names = {_name(manifest): manifest for manifest in manifests}
    if len(manifests) == 1:
        return manifests[0]
    for wanted in (reference, reference.rpartition(":")[2]):
        if wanted in names:
            return names[wanted]
    raise NodeError(f"the layout holds {', '.join(sorted(names))}, and none of them is called {reference}")


def wanted_blobs(layout: Layout, manifest: Descriptor) -> set[str]:
    """Digests of the manifest, its configuration and its layers."""
    content = json.loads(layout.read(_path(str(manifest["digest"]))))
    if "layers" not in content:
        raise NodeError(
            f"{manifest['digest']} is an index of several platforms; export the image for this machine's alone"
        )
    return {str(manifest["digest"]), content["config"]["digest"], *(layer["digest"] for layer in content["layers"])}


def forgotten(listing: str) -> list[str]:
    """Records of images that no name points to any more, in the output of ``ctr images list``.

    For every image containerd keeps a record that is called by its digest, also after the name went to a newer
    one; gigabytes of old layers would stay because of it.
    """
    rows = [line.split() for line in listing.splitlines()[1:]]
    named = {digest for reference, _, digest, *_ in rows if not reference.startswith("sha256:")}
    return [reference for reference, _, digest, *_ in rows if reference.startswith("sha256:") and digest not in named]


def _stream(settings: Settings, layout: Layout, reference: str) -> None:
    manifest = pick(json.loads(layout.read("index.json")), reference)
    wanted = wanted_blobs(layout, manifest) - _present(settings)
    # The manifest always travels: containerd reads from it what the image needs.
    paths = {_path(digest) for digest in wanted | {str(manifest["digest"])}}
    with subprocess.Popen(
        ctr(settings, "images", "import", "-"), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as importer:
        _write(importer, layout, paths, {**manifest, "annotations": {CONTAINERD_NAME: reference}})
        errors = importer.stderr.read().decode() if importer.stderr else ""
    if importer.returncode != 0:
        raise NodeError(f"containerd refused the image {reference}: {errors.strip()}")


def _write(importer: subprocess.Popen[bytes], layout: Layout, paths: set[str], manifest: Descriptor) -> None:
    index = json.dumps({"schemaVersion": 2, "manifests": [manifest]}).encode()
    try:
        with tarfile.open(fileobj=importer.stdin, mode="w|") as tar:
            _add(tar, "oci-layout", io.BytesIO(b'{"imageLayoutVersion": "1.0.0"}'), 31)
            _add(tar, "index.json", io.BytesIO(index), len(index))
            for name, size, content in layout.blobs():
                if name in paths:
                    _add(tar, name, content, size)
    except BrokenPipeError:
        return  # ctr has given up, and says why on its standard error
    finally:
        if importer.stdin:
            importer.stdin.close()


def _add(tar: tarfile.TarFile, name: str, content: IO[bytes], size: int) -> None:
    info = tarfile.TarInfo(name)
    info.size = size
    tar.addfile(info, content)


def _present(settings: Settings) -> set[str]:
    return set(run(ctr(settings, "content", "list", "--quiet")).split())


def _name(manifest: Descriptor) -> str:
    annotations: dict[str, str] = manifest.get("annotations", {})  # type: ignore[assignment]  # JSON
    return annotations.get(REFERENCE, "(no name)")


def _path(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/')}"
