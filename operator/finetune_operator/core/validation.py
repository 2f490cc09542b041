"""pydantic's errors as a sentence for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import ValidationError


def sentence(error: ValidationError) -> str:
    """Each wrong field by its path, as the YAML writes it, with what is wrong."""
    found = [f"{'.'.join(str(part) for part in item['loc'])}: {item['msg']}" for item in error.errors()]
    return "; ".join(found) + "."
