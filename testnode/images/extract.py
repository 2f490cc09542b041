"""llama.cpp out of the server image onto the host, for tests that run it there."""

import shutil
from pathlib import Path

from testnode.console import NodeError, note, step
from testnode.images.buildah import Buildah
from testnode.images.catalogue import IMAGES

INSIDE = "opt/llama.cpp"


def extract(buildah: Buildah) -> None:
    """Put a copy of the image's /opt/llama.cpp into the cache folder."""
    image, target = IMAGES["server"].reference, buildah.cache / "llama.cpp"
    if not buildah.has(image):
        message = f"{image} is not built yet: run `python -m testnode.images build server`"
        raise NodeError(message)
    with step(f"copying llama.cpp to {target}"), buildah.container(image) as container, container.mounted() as root:
        replace(root / INSIDE, target)
    note(f"llama.cpp is in {target}")


def replace(source: Path, target: Path) -> None:
    """Copy beside the target and rename: whoever uses it meanwhile never sees half of it."""
    fresh, old = (target.with_name(f"{target.name}.{state}") for state in ("new", "old"))
    for leftover in (fresh, old):
        shutil.rmtree(leftover, ignore_errors=True)
    shutil.copytree(source, fresh, symlinks=True)  # driver/ leads into the base, where a CPU has nothing
    if target.exists():
        target.rename(old)
    fresh.rename(target)
    shutil.rmtree(old, ignore_errors=True)
