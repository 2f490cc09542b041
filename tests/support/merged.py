"""What the API server does with a JSON merge patch."""

from __future__ import annotations

from typing import Any


def merged(old: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """The object after the patch."""
    new = dict(old)
    for key, value in changes.items():
        if value is None:
            new.pop(key, None)
        elif isinstance(value, dict):
            before = new.get(key)
            new[key] = merged(before if isinstance(before, dict) else {}, value)
        else:
            new[key] = value
    return new
