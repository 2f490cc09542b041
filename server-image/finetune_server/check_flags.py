"""Run while the image is built: does this llama-server know every flag that we emit?

``python -m finetune_server.check_flags`` ends with 1 and a sentence if not.
"""

from __future__ import annotations

import re
import subprocess
import sys

from finetune_server.argv import EMITTED_FLAGS
from finetune_server.contract import llama_cpp


def missing_flags(help_text: str) -> set[str]:
    """The flags that we emit and the help does not name."""
    return set(EMITTED_FLAGS) - set(re.findall(r"--[a-z0-9][a-z0-9-]*", help_text))


def main() -> int:
    """Ask the binary."""
    server = llama_cpp() / "bin" / "llama-server"
    answer = subprocess.run([server, "--help"], capture_output=True, text=True, check=True)  # noqa: S603 - our own binary
    missing = missing_flags(answer.stdout + answer.stderr)
    if missing:
        sys.stderr.write(
            f"{server} does not know {', '.join(sorted(missing))}: change finetune_server/argv.py for this build.\n"
        )
        return 1
    sys.stdout.write(f"{server} knows all {len(EMITTED_FLAGS)} flags.\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
