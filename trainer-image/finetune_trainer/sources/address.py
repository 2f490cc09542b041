"""Addresses taken apart."""

from __future__ import annotations

import re
from dataclasses import dataclass

from finetune_trainer.stage import StageError

_HUB = re.compile(r"(?P<repo>[^/@]+/[^/@]+)(@(?P<revision>[^/@]+))?(/(?P<path>.+))?")


@dataclass(frozen=True)
class Address:
    """An address. ``name`` is a repository, a claim or a ConfigMap; ``path`` is what lies in it."""

    scheme: str
    name: str
    path: str = ""
    revision: str = "main"


def parse(source: str, field: str) -> Address:
    """Take an address apart; the API server has checked its form, a stage run by hand has not."""
    scheme, _, rest = source.partition("://")
    if scheme == "hf":
        found = _HUB.fullmatch(rest.removeprefix("datasets/"))
        if found:
            return Address(scheme, found["repo"], found["path"] or "", found["revision"] or "main")
    elif scheme in {"pvc", "configMap"} and rest:
        name, _, path = rest.partition("/")
        return Address(scheme, name, path)
    elif scheme == "https" and rest:
        return Address(scheme, source)
    raise StageError("InvalidSpec", f"{field}: '{source}' is no address that can be read from.")


def file_name(source: str) -> str:
    """What to call a dataset's file in a message; what follows a question mark may be a secret."""
    return source.partition("?")[0].rpartition("/")[2]
