"""A conversation, the one form that every format becomes."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

ToolCall = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Message:
    """One turn. ``extra`` holds name, tool_call_id and reasoning_content where the row has them."""

    role: str
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    extra: dict[str, str] = field(default_factory=dict)

    @property
    def blank(self) -> bool:
        """Does it say nothing at all?"""
        return not self.content.strip() and not self.tool_calls

    def for_template(self) -> dict[str, Any]:
        """As chat templates want it: the arguments of a tool call are an object."""
        calls = {"tool_calls": list(self.tool_calls)} if self.tool_calls else {}
        return {"role": self.role, "content": self.content, **self.extra, **calls}

    def for_chat(self) -> dict[str, Any]:
        """As an OpenAI-compatible endpoint wants it: the arguments of a tool call are JSON text."""
        plain = self.for_template()
        if self.tool_calls:
            plain["tool_calls"] = [_as_text(call) for call in self.tool_calls]
        return plain


def _as_text(call: ToolCall) -> ToolCall:
    function = call["function"]
    return {**call, "function": {**function, "arguments": json.dumps(function["arguments"], ensure_ascii=False)}}


@dataclass(frozen=True, slots=True)
class Conversation:
    """Messages that end with an assistant's answer; or, in the text format, plain text and no messages."""

    line: int
    messages: tuple[Message, ...] = ()
    tools: tuple[dict[str, Any], ...] = ()
    """Descriptions of the tools that the assistant may call."""
    text: str | None = None

    def templated(self) -> list[dict[str, Any]]:
        """The messages as a chat template takes them."""
        return [message.for_template() for message in self.messages]

    def canonical(self) -> str:
        """The same text for the same content, wherever in a file it stands."""
        content = {"messages": self.templated(), "tools": list(self.tools), "text": self.text}
        return json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def digest(conversations: Iterable[Conversation]) -> str:
    """sha256 over what the rows say, in their order: line ends, marks and unused columns do not count."""
    state = hashlib.sha256()
    for conversation in conversations:
        state.update(conversation.canonical().encode())
        state.update(b"\n")
    return state.hexdigest()
