"""Before a server starts: is the version whole? ``python -m finetune_server.verify /models/versions/<version>``.

Every file that the manifest lists must have its size and hash, and the GGUF must be one that this build can load.
A hash is remembered by device, inode, size and time of change, so that a restarted pod does not read 20 GB again.
"""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path

from finetune_trainer.contract.paths import GGUF, MANIFEST, TERMINATION_LOG
from finetune_trainer.contract.results import Termination
from finetune_trainer.files import sha256_of
from finetune_trainer.stage import StageError, as_stage_error, write_file

from finetune_server.gguf import NotGguf, read_gguf
from finetune_server.llama import build, known_architectures
from finetune_server.publish import published

log = logging.getLogger("finetune")

REMEMBERED = Path("/tmp/verified.json")  # noqa: S108 - the pod's own emptyDir


def verify(folder: Path, remembered: Path = REMEMBERED) -> str:
    """Return a sentence, or raise with what is wrong and where."""
    manifest = published(folder)
    if manifest is None:
        raise StageError("ModelNotFound", f"There is no version in {folder}: {MANIFEST} is missing.")
    for entry in manifest.files:
        _check_file(folder / entry.path, entry.bytes, entry.sha256, remembered)
    _check_gguf(folder / GGUF)
    return f"{folder.name}: {len(manifest.files)} files are whole."


def _check_file(path: Path, size: int, sha256: str, remembered: Path) -> None:
    if not path.is_file():
        raise StageError("ModelCorrupt", f"{path} is missing.")
    if path.stat().st_size != size:
        raise StageError("ModelCorrupt", f"{path} has {path.stat().st_size} bytes; the manifest says {size}.")
    found = _hash(path, remembered)
    if found != sha256:
        raise StageError("ModelCorrupt", f"{path} has the sha256 {found}; the manifest says {sha256}.")


def _hash(path: Path, remembered: Path) -> str:
    known: dict[str, str] = json.loads(remembered.read_text(encoding="utf-8")) if remembered.exists() else {}
    stat = path.stat()
    key = f"{stat.st_dev}:{stat.st_ino}:{stat.st_size}:{stat.st_mtime_ns}"
    if key not in known:
        log.info("Reading %s", path)
        known[key] = sha256_of(path)
        write_file(remembered, json.dumps(known))
    return known[key]


def _check_gguf(path: Path) -> None:
    try:
        architecture = read_gguf(path).facts().architecture
    except NotGguf as error:
        raise StageError("ModelCorrupt", str(error)) from error
    if architecture not in known_architectures():
        raise StageError(
            "ModelUnsupported", f"{path}: llama.cpp {build()} cannot load the architecture {architecture}."
        )


def main(folder: Path, termination_log: Path = Path(TERMINATION_LOG)) -> int:
    """Verify, and leave the reason where the operator reads it."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stdout)
    try:
        ending, code = Termination(reason="Completed", message=verify(folder)), 0
    except Exception as error:  # noqa: BLE001 - whatever happened must reach the person who waits
        failed = as_stage_error(error)
        ending, code = Termination(reason=failed.reason.name, message=failed.message), failed.reason.exit_code
    log.info("%s: %s", ending.reason, ending.message)
    if termination_log.exists():  # outside of a pod there is none
        termination_log.write_text(ending.to_message(), encoding="utf-8")
    return code


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
