"""``python -m testnode.hub prepare | serve``."""

import argparse
import sys
from pathlib import Path

from testnode.hub.content import prepare
from testnode.hub.server import serve
from testnode.settings import BRIDGE_ADDRESS, HUB_PORT, Settings, cache_folder


def main(arguments: list[str]) -> int:
    """Do it, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m testnode.hub", description=__doc__)
    parser.add_argument(
        "command", choices=["prepare", "serve"], help="prepare: make the models; serve: answer requests"
    )
    parser.add_argument(
        "--root", type=Path, default=Settings(cache_folder()).hub, help="folder with models/ and datasets/"
    )
    parser.add_argument("--address", default=BRIDGE_ADDRESS)
    parser.add_argument("--port", type=int, default=HUB_PORT)
    chosen = parser.parse_args(arguments)
    if chosen.command == "serve":
        serve(chosen.root, chosen.address, chosen.port)
        return 0
    prepare(chosen.root)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
