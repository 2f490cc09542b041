"""Runs the demo; its exit status says whether all of it worked."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from demo import story
from demo.console import DemoError, console, heading

ROOT = Path(__file__).resolve().parent.parent
NAMESPACE = "default"


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m demo", description=__doc__)
    parser.add_argument(
        "--context",
        choices=["testnode", "current"],
        default="testnode",
        help="testnode: make a node on this machine; current: the cluster of the current kubectl context, with the "
        "published images and the public hub",
    )
    return parser.parse_args()


def use_testnode() -> None:
    """A node on this machine with our images, hub and chart; from here on kubectl means that node."""
    from testnode.settings import Settings, cache_folder  # noqa: PLC0415 - only the test node needs it

    settings = Settings(cache_folder())
    for title, command in (
        ("A real Kubernetes node", ["testnode", "up"]),
        ("The images", ["testnode.images", "build", "all"]),
        ("The images, onto the node", ["testnode.images", "load"]),
        ("The operator, by helm", ["testnode", "install"]),
    ):
        heading(title)
        run(sys.executable, "-m", *command)
    os.environ["KUBECONFIG"] = str(settings.kubeconfig)
    os.environ["PATH"] = f"{settings.bin}:{os.environ['PATH']}"


def use_current_context() -> None:
    """The person's own cluster: install the chart as the README says."""
    heading("The operator, by helm")
    chart = str(ROOT / "charts/finetune-operator")
    release = ["upgrade", "--install", "finetune-operator", chart, "-n", "finetune-system"]
    run("helm", *release, "--create-namespace", "--wait")


def run(*command: str) -> None:
    """Run a command with its output on the screen."""
    if subprocess.run(command, cwd=ROOT, check=False).returncode:
        raise DemoError(f"`{' '.join(command)}` failed; what it printed above says why.")


def main() -> int:
    """The whole demo."""
    started = time.monotonic()
    try:
        if arguments().context == "testnode":
            use_testnode()
        else:
            use_current_context()
        heading("kubectl apply -f examples/quickstart.yaml")
        run("kubectl", "-n", NAMESPACE, "apply", "-f", "examples/quickstart.yaml")
        worked = story.tell(NAMESPACE)
    except DemoError as error:
        console.print(f"\n[red]✗ {error}[/red]", highlight=False)
        return 1
    console.print(f"\nThe whole demo took {(time.monotonic() - started) / 60:.0f} minutes.")
    return 0 if worked else 1


if __name__ == "__main__":
    sys.exit(main())
