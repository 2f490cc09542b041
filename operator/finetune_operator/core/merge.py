"""JSON merge patches (RFC 7386)."""

from __future__ import annotations

from typing import Any


def patch(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """The patch that turns old into new: what is gone becomes null, lists are replaced."""
    changed = {key: _value(old.get(key), value) for key, value in new.items() if old.get(key) != value}
    return changed | {key: None for key in old if key not in new}


def _value(old: Any, new: Any) -> Any:
    return patch(old, new) if isinstance(old, dict) and isinstance(new, dict) else new
