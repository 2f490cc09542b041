import json
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from testnode.console import NodeError
from testnode.load import Archive, Folder, Layout, forgotten, load, pick, wanted_blobs
from testnode.settings import Settings

DEV = {"digest": "sha256:dev", "annotations": {"org.opencontainers.image.ref.name": "dev"}}
FULL = {"digest": "sha256:full", "annotations": {"org.opencontainers.image.ref.name": "localhost/x:1"}}
NAMELESS = {"digest": "sha256:nameless"}
MANIFEST = {"config": {"digest": "sha256:config"}, "layers": [{"digest": "sha256:layer"}]}


@pytest.mark.parametrize(
    ("manifests", "reference", "expected"),
    [
        pytest.param([NAMELESS], "localhost/x:1", NAMELESS, id="the only one is meant, whatever its name"),
        pytest.param([DEV, FULL], "localhost/x:1", FULL, id="by its full name"),
        pytest.param([DEV, FULL], "localhost/y:dev", DEV, id="by its tag"),
    ],
)
def test_pick(manifests: list[dict[str, object]], reference: str, expected: dict[str, object]) -> None:
    assert pick({"manifests": manifests}, reference) == expected


def test_a_layout_without_that_image_says_what_it_holds() -> None:
    with pytest.raises(NodeError, match="holds dev, localhost/x:1, and none of them is called localhost/z:9"):
        pick({"manifests": [DEV, FULL]}, "localhost/z:9")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    blobs = tmp_path / "layout" / "blobs" / "sha256"
    blobs.mkdir(parents=True)
    (blobs / "manifest").write_text(json.dumps(MANIFEST))
    (blobs / "layer").write_text("layer")
    return tmp_path / "layout"


@pytest.fixture(params=["folder", "archive", "archive with ./"])
def layout(request: pytest.FixtureRequest, folder: Path, tmp_path: Path) -> Iterator[Layout]:
    if request.param == "folder":
        yield Folder(folder)
        return
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        tar.add(folder, arcname="." if "./" in request.param else "")
    with tarfile.open(tmp_path / "a.tar") as tar:
        yield Archive(tar)


def test_an_image_is_its_manifest_configuration_and_layers(layout: Layout) -> None:
    assert wanted_blobs(layout, {"digest": "sha256:manifest"}) == {"sha256:manifest", "sha256:config", "sha256:layer"}


def test_the_blobs_of_a_layout(layout: Layout) -> None:
    found = {name: (size, content.read()) for name, size, content in layout.blobs()}
    assert found["blobs/sha256/layer"] == (5, b"layer")
    assert set(found) == {"blobs/sha256/layer", "blobs/sha256/manifest"}


def test_an_index_of_platforms_is_refused(folder: Path) -> None:
    (folder / "blobs" / "sha256" / "index").write_text('{"manifests": []}')
    with pytest.raises(NodeError, match="index of several platforms"):
        wanted_blobs(Folder(folder), {"digest": "sha256:index"})


def test_a_source_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NodeError, match="does not exist; it should be an OCI layout folder"):
        load(Settings(tmp_path), tmp_path / "nothing", "localhost/x:1")


def test_images_without_a_name_are_forgotten() -> None:
    listing = """REF TYPE DIGEST SIZE PLATFORMS LABELS
localhost/x:dev application/vnd.oci.image.manifest.v1+json sha256:new 1.0 MiB linux/amd64 -
sha256:config-of-new application/vnd.oci.image.manifest.v1+json sha256:new 1.0 MiB linux/amd64 managed
sha256:config-of-old application/vnd.oci.image.manifest.v1+json sha256:old 1.0 MiB linux/amd64 managed
"""
    assert forgotten(listing) == ["sha256:config-of-old"]
