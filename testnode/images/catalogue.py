"""The three images of the product, and how the tests build them: as released, but on another base."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from testnode.console import NodeError, step
from testnode.images import bases
from testnode.images.buildah import Buildah
from testnode.images.layout import push
from testnode.load import load
from testnode.settings import Settings


@dataclass(frozen=True)
class Image:
    """One image."""

    name: str
    folder: str
    base: Callable[[Buildah, Path], str]
    arguments: dict[str, str] = field(default_factory=dict)

    @property
    def reference(self) -> str:
        """Its name on the node."""
        return f"{bases.PREFIX}/{self.name}:dev"


IMAGES = {
    image.name: image
    for image in (
        Image("operator", "operator", lambda buildah, _: bases.debian(buildah)),
        Image("trainer", "trainer-image", bases.cpu),
        Image("server", "server-image", bases.cpu, {"LLAMA_CUDA": "OFF"}),
    )
}


def build(buildah: Buildah, repository: Path, image: Image) -> None:
    """Build the image and push it to the layout."""
    arguments = {"BASE_IMAGE": image.base(buildah, repository), **image.arguments}
    options = [part for name, value in arguments.items() for part in ("--build-arg", f"{name}={value}")]
    place = ["--tag", image.reference, "--file", str(repository / image.folder / "Dockerfile"), str(repository)]
    with step(f"building {image.reference}"):
        buildah.logged(
            image.name,
            buildah.argv("bud", "--layers", "--isolation", "chroot", *buildah.volumes(), *options, *place),
        )
    with step(f"copying {image.reference} to the layout"):
        push(buildah, image.reference)


def give(buildah: Buildah, settings: Settings, image: Image) -> None:
    """Load the image into the node."""
    if not buildah.layout.exists():
        message = f"{image.reference} is not built yet: run `python -m testnode.images build {image.name}`"
        raise NodeError(message)
    with step(f"loading {image.reference}"):
        load(settings, buildah.layout, image.reference)
