"""Names and labels of children. Two long names never collide: each child's name ends in a hash."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from finetune_operator.api.v1alpha1.common import API_VERSION

if TYPE_CHECKING:
    from finetune_operator.api.v1alpha1.common import ObjectMeta

MAX_LENGTH = 52
"""Leaves room for what controllers append to the names of pods."""
HASH_LENGTH = 8
PREFIX = "finetune.dev"
MANAGED_BY = {"app.kubernetes.io/managed-by": "finetune-operator"}
"""On every child: the operator's watches select by it."""


def digest(*parts: str) -> str:
    """sha256 over the parts, in hex; ("a", "bc") and ("ab", "c") differ."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def child(name: str, suffix: str, *identity: str) -> str:
    """A child's name: the parent's, cut short; the suffix; a hash of everything that tells it from others."""
    mark = digest(name, suffix, *identity)[:HASH_LENGTH]
    room = MAX_LENGTH - len(suffix) - HASH_LENGTH - 2
    return f"{name[:room].replace('.', '-').rstrip('-')}-{suffix}-{mark}"


def labels(owner: ObjectMeta, component: str, **ours: str) -> dict[str, str]:
    """Labels of a child; ``stage="train"`` becomes ``finetune.dev/stage: train``."""
    return {
        "app.kubernetes.io/name": "finetune",
        "app.kubernetes.io/component": component,
        "app.kubernetes.io/instance": owner.name[:63].rstrip("-."),
        **MANAGED_BY,
        **{f"{PREFIX}/{key.replace('_', '-')}": value for key, value in ours.items()},
    }


def metadata(owner: ObjectMeta, kind: str, name: str, labels: dict[str, str]) -> dict[str, Any]:
    """Metadata of a child that goes with its owner; the annotation holds the owner's name uncut."""
    return {
        "name": name,
        "namespace": owner.namespace,
        "labels": labels,
        "annotations": {f"{PREFIX}/name": owner.name},
        "ownerReferences": [owner_reference(owner, kind)],
    }


def owner_reference(owner: ObjectMeta, kind: str) -> dict[str, Any]:
    """Garbage collection deletes the child with its owner, whether the operator runs or not."""
    return {
        "apiVersion": API_VERSION,
        "kind": kind,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
