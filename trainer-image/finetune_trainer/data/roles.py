"""Who speaks: the names that are known, and the four that we use."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from finetune_trainer.data.faults import Fault

if TYPE_CHECKING:
    from collections.abc import Mapping

ROLES = ("system", "user", "assistant", "tool")
CALL = "function_call"
"""ShareGPT's turn in which the assistant calls a tool."""
SYNONYMS = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "gpt": "assistant",
    "model": "assistant",
    "bot": "assistant",
    "chatgpt": "assistant",
    "tool": "tool",
    "observation": "tool",
    "function_response": "tool",
    "function": "tool",
    CALL: "assistant",
}


def check_map(roles: Mapping[str, str]) -> None:
    """dataset.roles may only lead to roles that exist."""
    for name, role in roles.items():
        if role not in ROLES:
            raise Fault(
                f"'{name}' is mapped to '{role}'",
                hint=f"Map it to one of: {', '.join(ROLES)}.",
                field="dataset.roles",
            )


def role_of(name: object, roles: Mapping[str, str]) -> str:
    """The role behind a name; the user's own map comes first, upper and lower case are the same."""
    if not isinstance(name, str):
        raise Fault("the role is not text", hint=f"Use one of: {', '.join(SYNONYMS)}.")
    known = {**SYNONYMS, **{key.casefold(): value for key, value in roles.items()}}
    role = known.get(name.strip().casefold())
    if role is None:
        close = difflib.get_close_matches(name.casefold(), list(known), n=1, cutoff=0.6)
        meant = f"Did you mean '{close[0]}'? " if close else ""
        hint = f"{meant}Known roles: {', '.join(known)}; others can be mapped in dataset.roles."
        raise Fault(f"unknown role '{name}'", hint=hint)
    return role
