"""Run while the image is built: does this llama-server know every flag that we emit?

``python -m finetune_server.check_flags`` ends with 1 and a sentence if not.
"""

from __future__ import annotations

import re
import subprocess
import sys

from finetune_server.argv import EMITTED_FLAGS
from finetune_server.llama import server, without_gpu


def missing_flags(help_text: str) -> set[str]:
    """The flags that we emit and the help does not name."""
    return set(EMITTED_FLAGS) - set(re.findall(r"--[a-z0-9][a-z0-9-]*", help_text))


def main() -> int:
    """Ask the binary."""
    argv = [server(), "--help"]
    answer = subprocess.run(argv, capture_output=True, text=True, check=False, env=without_gpu())  # noqa: S603 - ours
    if answer.returncode != 0:
        sys.stderr.write(f"{argv[0]} does not start here (exit status {answer.returncode}): {answer.stderr}\n")
        return 1
    missing = missing_flags(answer.stdout + answer.stderr)
    if missing:
        sys.stderr.write(
            f"{argv[0]} does not know {', '.join(sorted(missing))}: change finetune_server/argv.py for this build.\n"
        )
        return 1
    sys.stdout.write(f"{argv[0]} knows all {len(EMITTED_FLAGS)} flags.\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
