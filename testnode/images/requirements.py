"""Each image's requirements.lock: what uv.lock says about its package, with hashes.

What the base image brings is left out. torch and all that hangs on it belong to the base: NVIDIA builds its own.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from testnode.console import NodeError, note
from testnode.settings import Settings, cache_folder
from testnode.shell import run

HEADER = "# Made of uv.lock by `make requirements`; do not edit.\n"


@dataclass(frozen=True)
class Lock:
    """One image's requirements."""

    folder: str
    package: str
    extra: str | None = None
    base_brings: tuple[str, ...] = ()

    def path(self, root: Path) -> Path:
        """Where it lies."""
        return root / self.folder / "requirements.lock"


TRAIN = Lock("trainer-image", "finetune-trainer", "train", ("torch", "torchvision", "triton", "xformers"))
LOCKS = (
    Lock("operator", "finetune-operator"),
    TRAIN,
    Lock("server-image", "finetune-server", "convert", ("torch",)),
)


def write(root: Path) -> None:
    """Bring every requirements.lock up to date."""
    for lock in LOCKS:
        lock.path(root).write_text(export(root, lock))
        note(f"wrote {lock.path(root).relative_to(root)}")


def check(root: Path) -> None:
    """Fail if one of them is not what uv.lock says."""
    stale = [lock.path(root).relative_to(root) for lock in LOCKS if not current(root, lock)]
    if stale:
        message = f"{', '.join(map(str, stale))}: not what uv.lock says; run `make requirements` and commit the result"
        raise NodeError(message)


def current(root: Path, lock: Lock) -> bool:
    """Is the file what it should be?"""
    path = lock.path(root)
    return path.exists() and path.read_text() == export(root, lock)


def export(root: Path, lock: Lock) -> str:
    """The content of a requirements.lock."""
    left_out = [option for name in lock.base_brings for option in ("--prune", name)]
    return HEADER + uv_export(root, lock, *left_out)


def constraints(root: Path) -> str:
    """Every version that the trainer is locked to, torch included, without hashes."""
    return uv_export(root, TRAIN, "--no-hashes")


def uv() -> str:
    """The program, of the version that ``make setup`` installs."""
    program = Settings(cache_folder()).bin / "uv"
    if not program.exists():
        raise NodeError(f"{program} is missing: run `make setup`")
    return str(program)


def uv_export(root: Path, lock: Lock, *options: str) -> str:
    """The lock of one package in the format of pip."""
    os.environ.setdefault("UV_PYTHON_DOWNLOADS", "never")
    extra = ["--extra", lock.extra] if lock.extra else []
    form = ["--format", "requirements-txt", "--no-header", "--no-annotate", "--no-emit-workspace", "--no-dev"]
    project = ["--project", str(root), "--frozen", "--quiet", "--package", lock.package]
    return run([uv(), "export", *project, *form, *extra, *options])


def uv_install(target: Path, python: str, pins: Path, *packages: str) -> list[str]:
    """The command that installs packages of the locked versions into a folder."""
    place = ["--target", str(target), "--python-version", python, "--constraint", str(pins)]
    return [uv(), "pip", "install", "--quiet", "--link-mode", "hardlink", *place, *packages]
