"""Waiting for a condition, never for an amount of time."""

import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

from testnode.console import NodeError, tail

PERIOD = 0.1


def wait_until(missing: Callable[[], str | None], seconds: float, log: Path) -> None:
    """Ask until nothing is missing; after the deadline say what still was, and show the log that may say why."""
    deadline = time.monotonic() + seconds
    while (lack := missing()) is not None:
        if time.monotonic() > deadline:
            raise NodeError(f"after {seconds:.0f} s still: {lack}\n{tail(log)}")
        time.sleep(PERIOD)


def unanswered(url: str) -> str | None:
    """What is wrong with a health address, or None if it says that all is well."""
    try:
        with urllib.request.urlopen(url, timeout=2):  # noqa: S310  # only addresses that stand in this package
            return None
    except OSError as error:
        return f"{url} answers: {error}"
