"""The ``finetune`` command: one line per subcommand."""

from __future__ import annotations

import typer

from finetune_operator.cli.chat import chat
from finetune_operator.cli.validate import validate
from finetune_operator.cli.watch import watch

app = typer.Typer(
    name="finetune",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_show_locals=False,
    help="Tune a language model on your own box, watch it, and talk to it.",
)
app.command()(validate)
app.command()(watch)
app.command()(chat)

if __name__ == "__main__":
    app()
