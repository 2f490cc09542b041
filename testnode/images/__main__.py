"""``python -m testnode.images build | load | extract | requirements``."""

import argparse
import sys
from pathlib import Path

from testnode.console import NodeError, complain
from testnode.images import bases, requirements
from testnode.images.buildah import Buildah, ensure_programs
from testnode.images.catalogue import IMAGES, Image, build, give
from testnode.images.extract import extract
from testnode.settings import Settings, cache_folder

ROOT = Path(__file__).parents[2]


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(prog="python -m testnode.images", description="The product's images, without Docker.")
    commands = top.add_subparsers(dest="command", required=True)
    building = commands.add_parser("build", help="build images; what did not change is taken from the cache")
    building.add_argument("image", nargs="?", default="all", choices=[*IMAGES, "base", "all"])
    loading = commands.add_parser("load", help="give built images to the node; only layers that it lacks travel")
    loading.add_argument("image", nargs="?", default="all", choices=[*IMAGES, "all"])
    commands.add_parser("extract", help="copy llama.cpp's programs and converters out of the server image")
    locks = commands.add_parser("requirements", help="write each image's requirements.lock")
    locks.add_argument("--check", action="store_true", help="write nothing; fail if one is out of date")
    return top


def main(arguments: list[str]) -> int:
    """Do it, and return the exit status."""
    chosen = parser().parse_args(arguments)
    try:
        _act(chosen, Buildah(cache_folder()))
    except NodeError as error:
        complain(error)
        return 1
    return 0


def _act(chosen: argparse.Namespace, buildah: Buildah) -> None:
    if chosen.command == "requirements":
        (requirements.check if chosen.check else requirements.write)(ROOT)
        return
    with buildah.alone():
        if chosen.command == "build":
            _build(chosen.image, buildah)
        elif chosen.command == "load":
            for image in _images(chosen.image):
                give(buildah, Settings(cache_folder()), image)
        else:
            extract(buildah)


def _build(name: str, buildah: Buildah) -> None:
    ensure_programs()
    if name == "base":
        bases.cpu(buildah, ROOT)
        return
    for image in _images(name):
        build(buildah, ROOT, image)


def _images(name: str) -> list[Image]:
    return list(IMAGES.values()) if name == "all" else [IMAGES[name]]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
