"""The operator's picture of the cluster: what the watches told, and what we wrote ourselves. In memory alone."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from finetune_operator.cluster.resources import OWNERS, Key, controller, key_of
from finetune_operator.core.names import PREFIX
from finetune_operator.core.types import Children

if TYPE_CHECKING:
    from collections.abc import Iterator

    from finetune_operator.core.types import Manifest

OWNER_KINDS = frozenset(resource.kind for resource in OWNERS)
_OWNER_LABELS = (f"{PREFIX}/job-uid", f"{PREFIX}/service-uid")


class Store:
    """Objects by address, children by owner."""

    def __init__(self) -> None:
        """Begin empty."""
        self._objects: dict[Key, Manifest] = {}
        self._children: dict[str, dict[Key, None]] = defaultdict(dict)
        self._by_uid: dict[str, Key] = {}
        self._owners: dict[str, dict[Key, None]] = {kind: {} for kind in OWNER_KINDS}

    def put(self, manifest: Manifest) -> bool:
        """Take an object in; False if the picture is as new already."""
        key, old = key_of(manifest), self._objects.get(key_of(manifest))
        if old is not None and version(old) >= version(manifest):
            return False
        if old is not None and _uid(old) != _uid(manifest):
            self.remove(key)
        self._objects[key] = _pruned(manifest)
        self._by_uid[_uid(manifest)] = key
        if key.kind in OWNER_KINDS:
            self._owners[key.kind][key] = None
        elif mark := _owner_mark(manifest):
            self._children[mark][key] = None
        return True

    def remove(self, key: Key, uid: str | None = None) -> Manifest | None:
        """Take an object out; with a uid, only if it is that very object."""
        old = self._objects.get(key)
        if old is None or uid not in {None, _uid(old)}:
            return None
        del self._objects[key]
        self._by_uid.pop(_uid(old), None)
        self._owners.get(key.kind, {}).pop(key, None)
        self._forget_child(key, _owner_mark(old))
        return old

    def deleting(self, key: Key, stamp: str) -> None:
        """We have asked for its deletion: it is seen as ending until a watch tells that it is gone."""
        if (old := self._objects.get(key)) and "deletionTimestamp" not in old["metadata"]:
            self._objects[key] = {**old, "metadata": {**old["metadata"], "deletionTimestamp": stamp}}

    def get(self, kind: str, namespace: str, name: str) -> Manifest | None:
        """An object by its address."""
        return self._objects.get(Key(kind, namespace, name))

    def find(self, uid: str) -> Manifest | None:
        """An object by its uid."""
        key = self._by_uid.get(uid)
        return self._objects.get(key) if key else None

    def keys(self, kind: str) -> list[Key]:
        """The addresses of all objects of a kind."""
        known = self._owners.get(kind)
        return list(known) if known is not None else [key for key in self._objects if key.kind == kind]

    def owners(self, kind: str | None = None) -> Iterator[Manifest]:
        """All custom resources, or those of one kind."""
        for each in (kind,) if kind else sorted(OWNER_KINDS):
            for key in list(self._owners[each]):
                if found := self._objects.get(key):
                    yield found

    def children(self, owner: Manifest) -> Children:
        """What belongs to a custom resource, oldest first."""
        found = self._of(_uid(owner))
        namespace = owner["metadata"].get("namespace", "")
        warned = [child["metadata"]["name"] for kind in ("Job", "Deployment") for child in found[kind]]
        events = [event for name in warned for event in self._of(f"{namespace}/{name}")["Event"]]
        return Children(
            jobs=tuple(found["Job"]),
            pods=tuple(found["Pod"]),
            deployments=tuple(found["Deployment"]),
            services=tuple(found["Service"]),
            config_maps=tuple(found["ConfigMap"]),
            events=tuple(sorted(events, key=version)),
        )

    def owner_of(self, manifest: Manifest) -> Key | None:
        """The custom resource that an object belongs to."""
        if manifest["kind"] == "Event":
            return self._owner_of_event(manifest)
        return self._by_uid.get(_owner_mark(manifest) or "")

    def _owner_of_event(self, event: Manifest) -> Key | None:
        namespace, _, name = (_owner_mark(event) or "").partition("/")
        about = self.get("Job", namespace, name) or self.get("Deployment", namespace, name)
        return self.owner_of(about) if about else None

    def _of(self, mark: str) -> dict[str, list[Manifest]]:
        found: dict[str, list[Manifest]] = defaultdict(list)
        for key in self._children.get(mark, ()):
            found[key.kind].append(self._objects[key])
        return found

    def _forget_child(self, key: Key, mark: str | None) -> None:
        siblings = self._children.get(mark or "", {})
        siblings.pop(key, None)
        if not siblings:
            self._children.pop(mark or "", None)


def version(manifest: Manifest) -> int:
    """The resourceVersion, which grows with every write."""
    text = manifest["metadata"].get("resourceVersion", "0")
    return int(text) if text.isdigit() else 0


def _uid(manifest: Manifest) -> str:
    return str(manifest["metadata"].get("uid", ""))


def _owner_mark(manifest: Manifest) -> str | None:
    """By what a child is found: the uid of its owner; for a warning, the Job or Deployment that it is about."""
    if manifest["kind"] == "Event":
        about = manifest.get("involvedObject", {})
        name = about.get("name", "")
        owner = name.rpartition("-")[0] if about.get("kind") == "ReplicaSet" else name
        return f"{about.get('namespace', '')}/{owner}"
    labels = manifest["metadata"].get("labels", {})
    marked = next((labels[label] for label in _OWNER_LABELS if label in labels), None)
    owner = controller(manifest)
    return marked or (owner["uid"] if owner and owner["apiVersion"].startswith(f"{PREFIX}/") else None)


def _pruned(manifest: Manifest) -> Manifest:
    """Without what nobody looks at: most of an object's size."""
    meta = {key: value for key, value in manifest["metadata"].items() if key != "managedFields"}
    slim: dict[str, Any] = {**manifest, "metadata": meta}
    if manifest["kind"] == "Pod":
        slim["spec"] = {"nodeName": manifest.get("spec", {}).get("nodeName", "")}
    elif manifest["kind"] == "Job":
        slim["spec"] = {}
    return slim
