"""Recognising the form of a row, and turning it into messages."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from finetune_trainer.data.conversation import Conversation, Message
from finetune_trainer.data.faults import Fault, kind, missing
from finetune_trainer.data.messages import TurnKeys, message_of, text_of
from finetune_trainer.data.roles import check_map

if TYPE_CHECKING:
    from finetune_trainer.contract.runspec import DatasetSpec

Row = dict[str, Any]
NAMES = (
    "messages", "conversations", "role", "content", "from", "value", "system", "tools",
    "instruction", "input", "output", "prompt", "completion", "text",
)  # fmt: skip
"""Our names of columns and of the keys of a turn: what dataset.columns may map."""
KNOWN = "messages, conversations, instruction and output, prompt and completion, or text"


@dataclass(frozen=True)
class Reader:
    """Reads rows as one DatasetSpec says."""

    spec: DatasetSpec

    def __post_init__(self) -> None:
        """Refuse a map that cannot mean anything."""
        check_map(self.spec.roles)
        unknown = [name for name in self.spec.columns if name not in NAMES]
        if unknown:
            raise Fault(
                f"'{unknown[0]}' is none of our names",
                hint=f"The keys are: {', '.join(NAMES)}.",
                field="dataset.columns",
            )

    def name(self, ours: str) -> str:
        """What a column is called in the file."""
        return self.spec.columns.get(ours, ours)

    def recognise(self, row: Row) -> str:
        """The format of a row: as the spec says, else by its columns."""
        if self.spec.format != "auto":
            return self.spec.format
        column = self._chat_column(row)
        if column:
            return self._style(row[column])
        for form, columns in (
            ("alpaca", ("instruction", "output")),
            ("prompt-completion", ("prompt", "completion")),
            ("text", ("text",)),
        ):
            if all(self.name(one) in row for one in columns):
                return form
        raise self._unrecognised(row)

    def read(self, row: Row, form: str, line: int) -> Conversation:
        """The row as a conversation, nothing tidied yet."""
        if form == "text":
            return Conversation(line, text=self._text(row, "text"))
        tools = self._tools(row)
        if form in {"messages", "sharegpt"}:
            return Conversation(line, self._system(row) + self._turns(row, form), tools)
        pair = self._alpaca(row) if form == "alpaca" else self._pair(row)
        return Conversation(line, self._system(row) + pair, tools)

    def _chat_column(self, row: Row) -> str | None:
        return next((self.name(one) for one in ("messages", "conversations") if self.name(one) in row), None)

    def _style(self, turns: object) -> str:
        """ShareGPT's turns have from and value; a turn that lacks one of its keys still shows by the other."""
        keys = {key for turn in turns if isinstance(turn, dict) for key in turn} if isinstance(turns, list) else set()
        sharegpt = {self.name("from"), self.name("value")} & keys
        return "sharegpt" if sharegpt and self.name("role") not in keys else "messages"

    def _unrecognised(self, row: Row) -> Fault:
        lower = {key.casefold(): key for key in row}
        wanted = next((one for one in ("messages", "instruction", "prompt") if missing(one, lower).hint), None)
        hint = missing(wanted, row).hint if wanted else ""
        return Fault(
            f"no known format (keys here: {', '.join(row) or 'none'})",
            hint=hint or f"A row has {KNOWN}; other names can be mapped in dataset.columns.",
        )

    def _turns(self, row: Row, form: str) -> tuple[Message, ...]:
        column = self._chat_column(row)
        if column is None:
            raise missing("messages" if form == "messages" else "conversations", row)
        role, content = ("role", "content") if form == "messages" else ("from", "value")
        return self._messages(row[column], column, TurnKeys(self.name(role), self.name(content)))

    def _messages(self, turns: object, column: str, keys: TurnKeys) -> tuple[Message, ...]:
        if not isinstance(turns, list):
            raise Fault(f"must be a list of turns, this is {kind(turns)}", field=column)
        return tuple(message_of(turn, keys, self.spec.roles, (column, index)) for index, turn in enumerate(turns))

    def _system(self, row: Row) -> tuple[Message, ...]:
        column = self.name("system")
        return (Message("system", text_of(row[column], column)),) if row.get(column) is not None else ()

    def _alpaca(self, row: Row) -> tuple[Message, ...]:
        given = self._text(row, "input") if row.get(self.name("input")) is not None else ""
        asked = "\n\n".join(part for part in (self._text(row, "instruction"), given) if part.strip())
        return Message("user", asked), Message("assistant", self._text(row, "output"))

    def _pair(self, row: Row) -> tuple[Message, ...]:
        """Prompt and completion: text, or lists of messages."""
        return self._side(row, "prompt", "user") + self._side(row, "completion", "assistant")

    def _side(self, row: Row, ours: str, role: str) -> tuple[Message, ...]:
        value = row.get(self.name(ours))
        if isinstance(value, list):
            return self._messages(value, self.name(ours), TurnKeys(self.name("role"), self.name("content")))
        return (Message(role, self._text(row, ours)),)

    def _text(self, row: Row, ours: str) -> str:
        column = self.name(ours)
        if column not in row:
            raise missing(ours, row)
        if not isinstance(row[column], str):
            raise Fault(f"must be text, this is {kind(row[column])}", field=column)
        return text_of(row[column], column)

    def _tools(self, row: Row) -> tuple[Row, ...]:
        """Descriptions of tools: a list, or a list as JSON text."""
        column = self.name("tools")
        value = row.get(column)
        try:
            tools = json.loads(value or "[]") if isinstance(value, str) else value or []
        except json.JSONDecodeError as error:
            raise Fault(f"must be a list of tools, and is no JSON: {error}", field=column) from error
        if not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools):
            raise Fault("must be a list of objects", field=column)
        return tuple(tools)
