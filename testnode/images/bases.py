"""The bases of the tests' images, cached under a hash of all that goes into them.

``base-debian`` is Debian with Python and compilers. ``base-cpu`` adds torch, and so stands for NVIDIA's PyTorch image,
which no test machine has and which needs a GPU to be of use.
"""

import hashlib
import shutil
from inspect import getsource
from pathlib import Path

from testnode.console import step
from testnode.images.buildah import Buildah
from testnode.images.requirements import constraints, uv_install

DEBIAN = "bookworm"
PYTHON = "3.11"
PACKAGES = (
    "ca-certificates",
    "python3",
    "python3-venv",
    "python3-pip",
    "build-essential",
    "cmake",
    "ninja-build",
    "ccache",
)
UNREAD = (
    "var/cache/apt/archives/*.deb",
    "var/lib/apt/lists/*",
    *(f"usr/share/{it}/*" for it in ("doc", "man", "info", "locale")),
)
SITE = f"/usr/local/lib/python{PYTHON}/dist-packages"
SLIM = Path(__file__).with_name("slim.py")
PREFIX = "localhost/finetune"


def debian(buildah: Buildah) -> str:
    """The image with Python and compilers; built if it is not there yet."""
    image = f"{PREFIX}/base-debian:{digest(DEBIAN, *PACKAGES, *UNREAD, getsource(build_debian))}"
    if not buildah.has(image):
        with step("building base-debian (debootstrap)"):
            build_debian(buildah, image)
    return image


def build_debian(buildah: Buildah, image: str) -> None:
    """Let debootstrap fill an empty container."""
    program = ["debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", DEBIAN]
    with buildah.container("scratch") as container:
        with container.mounted() as root:
            buildah.logged("debootstrap", [*program, str(root)])
            remove(root, UNREAD)
        container.commit(image)


def cpu(buildah: Buildah, repository: Path) -> str:
    """The image with torch; built if it is not there yet."""
    base, pins = debian(buildah), constraints(repository)
    image = f"{PREFIX}/base-cpu:{digest(base, pins_of_torch(pins), SLIM.read_text(), getsource(build_cpu))}"
    if not buildah.has(image):
        with step("building base-cpu (torch without CUDA's libraries)"):
            build_cpu(buildah, base, pins, image)
    return image


def build_cpu(buildah: Buildah, base: str, pins: str, image: str) -> None:
    """Install torch outside, slim it, and put what is left into a container."""
    site = install(buildah, pins)
    with buildah.container(base) as container:
        container.run("slim", ["python3", "/slim.py", "/site"], "-v", f"{site}:/site", "-v", f"{SLIM}:/slim.py:ro")
        buildah.ask("copy", "--quiet", container.name, str(site), SITE)
        container.run("compile", ["python3", "-m", "compileall", "-q", "-j", "0", "-x", "py312", SITE])
        container.commit(image)
    shutil.rmtree(site)


def install(buildah: Buildah, pins: str) -> Path:
    """What the package index calls torch, in a folder of its own."""
    site, pinned = buildah.folder / "site", buildah.folder / "constraints.txt"
    shutil.rmtree(site, ignore_errors=True)
    pinned.write_text(pins)
    buildah.logged("torch", uv_install(site, PYTHON, pinned, "torch", "torchvision"))
    return site


def pins_of_torch(pins: str) -> str:
    """The lines that base-cpu depends on: a new release of something else does not build it anew."""
    return "\n".join(line for line in pins.splitlines() if line.startswith(("torch==", "torchvision==", "numpy==")))


def remove(root: Path, patterns: tuple[str, ...]) -> None:
    """Delete what nobody reads in a container."""
    for pattern in patterns:
        for path in list(root.glob(pattern)):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def digest(*contents: str) -> str:
    """A short name for contents."""
    return hashlib.sha256("\0".join(contents).encode()).hexdigest()[:12]
