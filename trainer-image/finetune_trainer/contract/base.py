"""The base of every model that crosses a process border."""

from __future__ import annotations

import json

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class Wire(BaseModel):
    """Frozen, camelCase outside and snake_case inside, as Kubernetes objects are.

    A field that the reader does not know is ignored: an older image can read what a newer operator wrote.
    """

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, frozen=True, extra="ignore", use_attribute_docstrings=True
    )

    def to_json(self) -> str:
        """The canonical JSON: sorted keys, no spaces, unset optional fields left out. Equal objects, equal text."""
        plain = self.model_dump(mode="json", by_alias=True, exclude_none=True)
        return json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
