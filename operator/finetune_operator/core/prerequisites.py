"""What must exist before the prepare Job is made. What is missing may appear: the job goes on by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from finetune_operator.core import references

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from finetune_operator.core.references import References
    from finetune_operator.core.types import Facts

DEFAULT_CLAIMS = frozenset({references.CACHE_CLAIM, references.MODELS_CLAIM})


class Missing(NamedTuple):
    """The first thing that is missing."""

    reason: str
    message: str


def missing(namespace: str, wanted: References, facts: Facts) -> Missing | None:
    """The first of the named objects that does not exist or lacks its key."""
    return next(_all_missing(namespace, wanted, facts), None)


def _all_missing(namespace: str, wanted: References, facts: Facts) -> Iterator[Missing]:
    for name, key in wanted.secrets:
        if problem := _lacks("Secret", f"{namespace}/{name}", key, facts.secret_keys.get(name)):
            yield Missing("SecretNotFound", problem)
    for name, key in wanted.config_maps:
        if problem := _lacks("ConfigMap", f"{namespace}/{name}", key, facts.config_map_keys.get(name)):
            yield Missing("ConfigMapNotFound", problem)
    yield from _missing_claims(namespace, wanted, facts.claims)


def _lacks(kind: str, name: str, key: str, keys: frozenset[str] | None) -> str | None:
    if keys is None:
        return f"{kind} {name} does not exist; it must hold the key {key}."
    return None if key in keys else f"{kind} {name} lacks key {key}; it has {', '.join(sorted(keys)) or 'none'}."


def _missing_claims(namespace: str, wanted: References, claims: Mapping[str, object]) -> Iterator[Missing]:
    for name in wanted.claims:
        if name not in claims and name not in DEFAULT_CLAIMS:
            yield Missing("ClaimNotFound", f"PersistentVolumeClaim {namespace}/{name} does not exist.")
