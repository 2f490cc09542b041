"""A line in the log now and then while something large arrives."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator  # noqa: TC003
from contextlib import contextmanager
from typing import TYPE_CHECKING

from finetune_trainer.sources.sizes import human

if TYPE_CHECKING:
    from pathlib import Path

log = logging.getLogger("finetune")
_EVERY = 10.0


@contextmanager
def watching(folder: Path, name: str, total: int) -> Iterator[None]:
    """Tell how many bytes have arrived in a folder, in percent of what is to come, and how fast."""
    if not total:
        yield
        return
    log.info("Fetching %s: %s", name, human(total))
    started, before, done = time.monotonic(), size(folder), threading.Event()

    def tell() -> None:
        while not done.wait(_EVERY):
            log.info(line(name, size(folder) - before, total, time.monotonic() - started))

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
    log.info(line(name, size(folder) - before, total, time.monotonic() - started))


def line(name: str, arrived: int, total: int, seconds: float) -> str:
    """One line of progress."""
    percent = min(100, round(100 * arrived / total))
    return f"Fetching {name}: {human(arrived)} of {human(total)} ({percent}%), {human(arrived / max(seconds, 0.001))}/s"


def size(folder: Path) -> int:
    """Bytes on disk, the unfinished files included."""
    return sum(path.stat().st_blocks * 512 for path in folder.glob("*")) if folder.exists() else 0
