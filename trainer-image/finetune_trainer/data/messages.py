"""From the turns of a row to messages: roles, contents, tool calls."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from finetune_trainer.data.conversation import Message, ToolCall
from finetune_trainer.data.faults import Fault, kind, missing
from finetune_trainer.data.roles import CALL, role_of

if TYPE_CHECKING:
    from collections.abc import Mapping

_KEPT = ("name", "tool_call_id", "reasoning_content")


@dataclass(frozen=True, slots=True)
class TurnKeys:
    """What the two keys of a turn are called in the file."""

    role: str
    content: str


def message_of(turn: object, keys: TurnKeys, roles: Mapping[str, str], where: tuple[str, int]) -> Message:
    """One turn as a message; a fault says which turn of which column it is."""
    field, index = where
    try:
        return _message(turn, keys, roles)
    except Fault as fault:
        raise Fault(fault.message, hint=fault.hint, field=f"{field}[{index}]{fault.field}", turn=index) from fault


def _message(turn: object, keys: TurnKeys, roles: Mapping[str, str]) -> Message:
    if not isinstance(turn, dict):
        raise Fault(f"a turn must be an object, this is {kind(turn)}")
    if keys.role not in turn:
        raise missing(keys.role, turn)
    name = turn[keys.role]
    role = role_of(name, roles)
    calls = tool_calls(turn.get("tool_calls"))
    if isinstance(name, str) and name.casefold() == CALL:
        return Message(role, "", (_function_call(turn.get(keys.content)),))
    if keys.content not in turn and not calls:
        raise missing(keys.content, turn)
    content = turn.get(keys.content)
    if content is None and not calls:
        raise Fault(
            "empty answer: the content is null and there is no tool call"
            if role == "assistant"
            else f"the {role}'s content is null"
        )
    extra = {key: turn[key] for key in _KEPT if isinstance(turn.get(key), str)}
    return Message(role, text_of(content), calls, extra)


def text_of(content: object, field: str = "") -> str:
    """Text, or the text parts of a list, joined. Null (beside a tool call) is empty text, never the word None."""
    if content is None:
        return ""
    if isinstance(content, list):
        return "".join(_part(part, f"{field}[{index}]") for index, part in enumerate(content))
    if not isinstance(content, str):
        raise Fault(f"the content must be text, this is {kind(content)}", field=field)
    if any("\ud800" <= sign <= "\udfff" for sign in content):
        raise Fault(
            "half of a surrogate pair, which is no character", hint="Write the file again as UTF-8.", field=field
        )
    return content


def _part(part: object, field: str) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        raise Fault(f"a part of the content must be an object, this is {kind(part)}", field=field)
    name = part.get("type", "text")
    if name != "text":
        raise Fault(
            f"text-only training, and this is a part of type '{name}'",
            hint="Remove rows with images or sound.",
            field=field,
        )
    if "text" not in part:
        raise missing("text", part, field=field)
    return text_of(part["text"], field)


def tool_calls(value: object) -> tuple[ToolCall, ...]:
    """The calls of an assistant; arguments may be an object or JSON text."""
    if value is None:
        return ()
    if not isinstance(value, list):
        raise Fault(f"tool_calls must be a list, this is {kind(value)}", field=".tool_calls")
    return tuple(_call(call, f".tool_calls[{index}]") for index, call in enumerate(value))


def _call(call: object, field: str) -> ToolCall:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(call, dict) or not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise Fault("a tool call needs function.name and function.arguments", field=field)
    arguments = _arguments(function.get("arguments", {}), field)
    identity = {"id": call["id"]} if isinstance(call.get("id"), str) else {}
    return {**identity, "type": "function", "function": {"name": function["name"], "arguments": arguments}}


def _function_call(value: object) -> ToolCall:
    """ShareGPT writes a call as JSON text in a turn of its own."""
    call = _arguments(value, "") if isinstance(value, str) else value
    return _call({"function": call}, "")


def _arguments(value: object, field: str) -> dict[str, Any]:
    try:
        parsed = json.loads(value) if isinstance(value, str) else value
    except json.JSONDecodeError as error:
        raise Fault(f"the arguments of the tool call are not JSON: {error}", field=field) from error
    if not isinstance(parsed, dict):
        raise Fault(f"the arguments of a tool call must be an object, this is {kind(parsed)}", field=field)
    return parsed
