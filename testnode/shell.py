"""Running other programs."""

import subprocess
from collections.abc import Sequence

from testnode.console import NodeError


def run(argv: Sequence[str], *, stdin: str | None = None) -> str:
    """Run a program that has to succeed, and return what it printed."""
    done = attempt(argv, stdin=stdin)
    if done.returncode != 0:
        raise NodeError(
            f"`{' '.join(argv)}` ended with status {done.returncode}: {(done.stderr or done.stdout).strip()}"
        )
    return done.stdout


def attempt(argv: Sequence[str], *, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run a program that may fail; the caller looks at the status."""
    try:
        return subprocess.run(argv, input=stdin, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise NodeError(f"{argv[0]} is not installed; `python -m testnode up` installs what the node needs") from error
