"""What the user sees: one line for each step with its seconds, and errors that say where to look."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LOG_LINES = 20
LINE_LENGTH = 300


class NodeError(Exception):
    """A step failed. The message says what, where and what to do about it."""


@contextmanager
def step(what: str) -> Iterator[None]:
    """Print ``what`` and, when the block is done, how long it took."""
    started = time.monotonic()
    print(f"{what} ...", end=" ", flush=True)
    try:
        yield
    except BaseException:
        print("failed", flush=True)
        raise
    print(f"{time.monotonic() - started:.1f} s", flush=True)


def note(text: str) -> None:
    """Print a line that is no step."""
    print(text, flush=True)


def complain(error: NodeError) -> None:
    """Print an error where errors go."""
    print(f"error: {error}", file=sys.stderr, flush=True)


def tail(log: Path) -> str:
    """The end of a log file, with its name, to be put under an error message."""
    if not log.exists():
        return f"({log} was never written)"
    lines = log.read_text(errors="replace").splitlines()[-LOG_LINES:]
    return "\n".join([f"the last lines of {log}:", *(f"  | {line[:LINE_LENGTH]}" for line in lines)])
