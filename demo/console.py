"""How the demo speaks."""

from __future__ import annotations

from rich.console import Console

console = Console()


class DemoError(Exception):
    """Something did not work; the message says what, and where to look."""


def heading(text: str) -> None:
    """The title of a step."""
    console.print(f"\n[bold]▸ {text}[/bold]", highlight=False)
