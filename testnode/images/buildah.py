"""buildah, with a storage of its own, so that it never meets another one on the machine."""

import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from testnode.console import NodeError, step, tail
from testnode.shell import attempt, run

TRUST = Path("/etc/ssl/certs/ca-certificates.crt")
COMPILER_CACHE = "/root/.cache/ccache"
"""Inside the build's container, where root is at home."""
PROGRAMS = {"buildah": "buildah", "containers-storage": "containers-storage", "debootstrap": "debootstrap"}
"""Program and the Debian package that brings it."""


@dataclass(frozen=True)
class Buildah:
    """The program and where it keeps what."""

    cache: Path
    runroot: Path = Path("/run/finetune-buildah")

    @property
    def folder(self) -> Path:
        """Ours, for what is neither container nor image."""
        path = self.cache / "images"
        path.mkdir(parents=True, exist_ok=True)
        return path

    @property
    def layout(self) -> Path:
        """The OCI layout that all images are pushed to; they share the blobs of their bases there."""
        return self.folder / "layout"

    def argv(self, command: str, *arguments: str) -> list[str]:
        """A whole command line."""
        storage = ["--root", str(self.cache / "containers"), "--runroot", str(self.runroot)]
        return ["buildah", *storage, "--storage-driver", "overlay", command, *arguments]

    def storage(self, command: str, *arguments: str) -> str:
        """Ask buildah's storage itself, about what buildah does not tell."""
        storage = ["--graph", str(self.cache / "containers"), "--run", str(self.runroot), "--storage-driver", "overlay"]
        return run(["containers-storage", command, *storage, *arguments])

    def ask(self, command: str, *arguments: str) -> str:
        """Run a short command and return what it printed."""
        return run(self.argv(command, *arguments)).strip()

    def has(self, image: str) -> bool:
        """Is there an image of this name?"""
        return attempt(self.argv("inspect", "--type", "image", image)).returncode == 0

    def logged(self, name: str, argv: list[str]) -> None:
        """Run something long; what it prints goes to a log file, and its end into the error if it fails."""
        log = self.folder / f"{name}.log"
        with log.open("w") as out:
            status = subprocess.run(argv, stdout=out, stderr=subprocess.STDOUT, check=False).returncode
        if status:
            message = f"`{' '.join(argv[:1] + argv[-2:])}` ended with status {status}; {tail(log)}"
            raise NodeError(message)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """One build at a time: a second one waits here, and finds most of its work done."""
        with (self.folder / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                with step("waiting for another build of images"):
                    fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    @contextmanager
    def container(self, image: str) -> Iterator["Container"]:
        """A container to change and commit; gone afterwards."""
        name = self.ask("from", image)
        try:
            yield Container(self, name)
        finally:
            self.ask("rm", name)

    def volumes(self) -> list[str]:
        """What a build on this machine needs of it and the image must not keep: whom to trust, and ccache's memory."""
        ccache, pip = self.cache / "ccache", self.folder / "pip.conf"
        ccache.mkdir(parents=True, exist_ok=True)
        pip.write_text(pip_configuration())
        mounts = (
            f"{os.environ.get('SSL_CERT_FILE', TRUST)}:{TRUST}:ro",
            f"{pip}:/etc/pip.conf:ro",
            f"{ccache}:{COMPILER_CACHE}",
        )
        return [part for mount in mounts for part in ("--volume", mount)]


@dataclass(frozen=True)
class Container:
    """A container that becomes an image."""

    buildah: Buildah
    name: str

    @contextmanager
    def mounted(self) -> Iterator[Path]:
        """Its files, to be changed from outside."""
        path = Path(self.buildah.ask("mount", self.name))
        try:
            yield path
        finally:
            self.buildah.ask("umount", self.name)

    def run(self, log: str, program: list[str], *options: str) -> None:
        """Run a program inside."""
        argv = self.buildah.argv("run", "--isolation", "chroot", *options, self.name, "--", *program)
        self.buildah.logged(log, argv)

    def commit(self, image: str) -> None:
        """Make an image of it."""
        self.buildah.ask("commit", "--quiet", self.name, image)


def ensure_programs() -> None:
    """Install what is missing of the programs that build images."""
    missing = [package for program, package in PROGRAMS.items() if shutil.which(program) is None]
    if missing:
        with step(f"installing {' '.join(missing)} (apt-get)"):
            apt_get = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq"]
            run([*apt_get, "update"])
            run([*apt_get, "install", "--yes", "--no-install-recommends", *missing])


def pip_configuration() -> str:
    """The bundle of certificates that pip brings may not be enough here, and the index may be another."""
    index = os.environ.get("PIP_INDEX_URL")
    return f"[global]\ncert = {TRUST}\n" + (f"index-url = {index}\n" if index else "")
