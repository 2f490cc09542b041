"""``python -m finetune_operator``: the operator, with its settings out of the environment."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys

from finetune_operator import program
from finetune_operator.settings import SettingsError, read

QUIET = ("kopf", "aiohttp.access", "asyncio")
USAGE_ERROR = 2


def main() -> int:
    """Run until told to end; 2 if the settings are wrong."""
    try:
        settings = read(os.environ)
    except SettingsError as error:
        sys.stderr.write(f"finetune-operator: {error}\n")
        return USAGE_ERROR
    logging.basicConfig(level=settings.log_level, format="%(asctime)s %(levelname)-7s %(message)s")
    if settings.log_level != "DEBUG":
        for name in QUIET:
            logging.getLogger(name).setLevel(logging.WARNING)
    # Before kopf handles signals: the first process of a container ignores those that nobody handles.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    asyncio.run(program.run(settings))
    return 0


if __name__ == "__main__":
    sys.exit(main())
