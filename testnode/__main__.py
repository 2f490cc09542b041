"""``python -m testnode up | down | …``; needs nothing but Python, so that it can come before all else."""

import argparse
import sys
from pathlib import Path

from testnode import toolchain
from testnode.console import NodeError, complain, step
from testnode.down import down
from testnode.install import install
from testnode.load import load
from testnode.settings import Settings, cache_folder
from testnode.status import status
from testnode.up import up, usage


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(prog="python -m testnode", description="One real Kubernetes node on this machine.")
    commands = top.add_subparsers(dest="command", required=True)
    commands.add_parser("up", help="bring the node up; harmless if it is up already")
    commands.add_parser("down", help="remove the node and all that it made; images and programs stay cached")
    commands.add_parser("tools", help="install and build the programs that a node needs; nothing is started")
    commands.add_parser("status", help="say what runs; the exit status is 0 if the node is healthy")
    commands.add_parser("env", help="print the lines that make a shell use the node")
    commands.add_parser("install", help="start the model hub and install the operator on the node")
    loading = commands.add_parser("load", help="give an image to the node")
    loading.add_argument("source", type=Path, help="an OCI layout folder or an OCI archive")
    loading.add_argument("reference", help="the image's name on the node, such as localhost/finetune/operator:dev")
    return top


def main(arguments: list[str]) -> int:
    """Do it, and return the exit status."""
    chosen, settings = parser().parse_args(arguments), Settings(cache_folder())
    try:
        if chosen.command == "status":
            return 0 if status(settings) else 1
        _act(chosen, settings)
    except NodeError as error:
        complain(error)
        return 1
    return 0


def _act(chosen: argparse.Namespace, settings: Settings) -> None:
    if chosen.command == "up":
        up(settings)
    elif chosen.command == "down":
        down(settings)
    elif chosen.command == "tools":
        toolchain.ensure_tools(settings)
    elif chosen.command == "install":
        install(settings)
    elif chosen.command == "env":
        print(usage(settings))
    else:
        with step(f"loading {chosen.reference}"):
            load(settings, chosen.source, chosen.reference)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
