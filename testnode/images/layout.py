"""The OCI layout in which images wait until the node takes them: one folder, where images share their layers.

``buildah push`` could write it, but it packs every layer anew each time: a minute for an image that did not change.
Here layers are taken out of buildah's storage as they are, and one that lies in the layout already costs nothing.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

from testnode.images.buildah import Buildah
from testnode.load import REFERENCE


def push(buildah: Buildah, image: str) -> None:
    """Copy an image from buildah's storage to the layout."""
    layout, content = buildah.layout, buildah.storage("get-image-data", image, "manifest")
    manifest = json.loads(content)
    blobs(layout).mkdir(parents=True, exist_ok=True)
    put(layout, digest_of(content), content)
    put(layout, manifest["config"]["digest"], buildah.storage("get-image-data", image, manifest["config"]["digest"]))
    stored = json.loads(buildah.storage("layers", "--json"))
    layers = {layer["diff-digest"]: layer["id"] for layer in stored if "diff-digest" in layer}
    for layer in manifest["layers"]:
        copy(buildah, layers[layer["digest"]], layer["digest"])
    name = {"mediaType": manifest["mediaType"], "digest": digest_of(content), "size": len(content.encode())}
    enter(layout, {**name, "annotations": {REFERENCE: image}})
    prune(layout)


def copy(buildah: Buildah, layer: str, digest: str) -> None:
    """Copy one layer, unless it is there."""
    target = blob(buildah.layout, digest)
    if not target.exists():
        partial = target.with_suffix(".partial")
        buildah.storage("diff", "--uncompressed", "--file", str(partial), layer)
        partial.rename(target)


def enter(layout: Path, descriptor: dict[str, Any]) -> None:
    """Name an image in the layout's index; an older one of the same name leaves it."""
    name = descriptor["annotations"][REFERENCE]
    others = [known for known in manifests(layout) if known["annotations"][REFERENCE] != name]
    (layout / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    fresh = layout / "index.json.partial"
    fresh.write_text(json.dumps({"schemaVersion": 2, "manifests": [*others, descriptor]}))
    fresh.rename(layout / "index.json")


def prune(layout: Path) -> None:
    """Remove the blobs that belong to no image any more."""
    kept = {descriptor["digest"] for descriptor in manifests(layout)}
    for digest in list(kept):
        manifest = json.loads(blob(layout, digest).read_text())
        kept |= {part["digest"] for part in (manifest["config"], *manifest["layers"])}
    for path in blobs(layout).iterdir():
        if f"sha256:{path.name}" not in kept:
            path.unlink()


def manifests(layout: Path) -> list[dict[str, Any]]:
    """The images in the layout."""
    index = layout / "index.json"
    found: list[dict[str, Any]] = json.loads(index.read_text())["manifests"] if index.exists() else []
    return found


def put(layout: Path, digest: str, content: str) -> None:
    """Write a small blob."""
    blob(layout, digest).write_text(content)


def blobs(layout: Path) -> Path:
    """The folder of all blobs."""
    return layout / "blobs" / "sha256"


def blob(layout: Path, digest: str) -> Path:
    """The file of one blob."""
    return blobs(layout) / digest.removeprefix("sha256:")


def digest_of(content: str) -> str:
    """The digest of a small blob."""
    return "sha256:" + hashlib.sha256(content.encode()).hexdigest()
