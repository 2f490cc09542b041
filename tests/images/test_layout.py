"""The OCI layout: layers come once, old ones go."""

import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from testnode.images.buildah import Buildah
from testnode.images.layout import blob, blobs, digest_of, manifests, push
from testnode.load import REFERENCE


@dataclass
class Storage:
    """What containers-storage would answer: images as lists of layers' contents."""

    images: dict[str, list[str]]
    copied: list[str] = field(default_factory=list)

    def __call__(self, command: str, *arguments: str) -> str:
        if command == "get-image-data":
            return self.data(*arguments)
        return self.diff(*arguments) if command == "diff" else self.layers()

    def data(self, image: str, key: str) -> str:
        config = f"the configuration of {self.images[image]}"
        if key == digest_of(config):
            return config
        layers = [{"digest": digest_of(content)} for content in self.images[image]]
        return json.dumps({"mediaType": "m", "config": {"digest": digest_of(config)}, "layers": layers})

    def layers(self) -> str:
        contents = {content for image in self.images.values() for content in image}
        # A container's own layer has no digest yet.
        return json.dumps([{"id": "rw"}, *({"id": it, "diff-digest": digest_of(it)} for it in contents)])

    def diff(self, *arguments: str) -> str:
        Path(arguments[-2]).write_text(arguments[-1])
        self.copied.append(arguments[-1])
        return ""


@pytest.fixture
def storage(monkeypatch: pytest.MonkeyPatch) -> Storage:
    fake = Storage({"server:dev": ["base", "code"], "trainer:dev": ["base", "recipes"]})
    monkeypatch.setattr(Buildah, "storage", lambda _self, *arguments: fake(*arguments))
    return fake


def test_images_share_the_layers_of_their_base(storage: Storage, tmp_path: Path) -> None:
    for image in storage.images:
        push(Buildah(tmp_path), image)
    assert storage.copied == ["base", "code", "recipes"]
    assert blob(Buildah(tmp_path).layout, digest_of("base")).read_text() == "base"


def test_a_changed_image_costs_its_changed_layer_and_takes_the_old_ones_place(storage: Storage, tmp_path: Path) -> None:
    layout = Buildah(tmp_path).layout
    push(Buildah(tmp_path), "server:dev")
    storage.images["server:dev"] = ["base", "better code"]
    push(Buildah(tmp_path), "server:dev")
    assert storage.copied == ["base", "code", "better code"]
    assert [manifest["annotations"][REFERENCE] for manifest in manifests(layout)] == ["server:dev"]
    assert not blob(layout, digest_of("code")).exists()
    assert len(list(blobs(layout).iterdir())) == 4  # manifest, configuration, two layers


def test_the_index_describes_the_manifest(storage: Storage, tmp_path: Path) -> None:
    push(Buildah(tmp_path), "trainer:dev")
    [descriptor] = manifests(Buildah(tmp_path).layout)
    content = storage.data("trainer:dev", "manifest")
    assert (descriptor["digest"], descriptor["size"]) == (digest_of(content), len(content))
