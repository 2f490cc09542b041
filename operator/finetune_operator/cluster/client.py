"""The calls to the API server, in and out as JSON. Nothing else in the program talks to it but kopf's watches."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from finetune_operator import metrics
from finetune_operator.cluster.resources import BY_KIND, EVENT, TOKEN_REVIEW

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from finetune_operator.cluster.connection import Connection
    from finetune_operator.cluster.resources import Key, Resource
    from finetune_operator.core.types import Manifest, ObjectRef

FIELD_MANAGER = "finetune-operator"
PAGE = "100"
NOT_FOUND, CONFLICT, FORBIDDEN = 404, 409, 403
_ERROR = 400
_JSON = "application/json"
_MERGE = "application/merge-patch+json"
_APPLY = "application/apply-patch+yaml"
_METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


class ApiError(Exception):
    """The API server refused; str() says what was tried and what it answered."""

    def __init__(self, status: int, what: str, message: str) -> None:
        """Keep the status for those who can handle some of them."""
        super().__init__(f"{what}: {message} (HTTP {status})")
        self.status = status
        self.message = message


class Client:
    """A small client for JSON objects."""

    def __init__(self, connection: Connection) -> None:
        """Take the connection."""
        self._connection = connection

    async def get(self, key: Key) -> Manifest | None:
        """An object, or None."""
        resource = BY_KIND[key.kind]
        try:
            return await self._call("GET", resource, resource.path(key.namespace or None, key.name))
        except ApiError as error:
            if error.status == NOT_FOUND:
                return None
            raise

    async def pages(
        self, resource: Resource, namespace: str | None, params: dict[str, str], *, metadata: bool = False
    ) -> AsyncIterator[list[Manifest]]:
        """All objects that the parameters select, a page at a time; of metadata alone if that is enough."""
        token = ""
        while True:
            query = params | {"limit": PAGE} | ({"continue": token} if token else {})
            answer = await self._call(
                "GET", resource, resource.path(namespace), params=query, accept=_METADATA if metadata else _JSON
            )
            # An empty list of metadata is null.
            items = answer.get("items") or []
            yield [{**item, "apiVersion": resource.api_version, "kind": resource.kind} for item in items]
            token = answer.get("metadata", {}).get("continue", "")
            if not token:
                return

    async def create(self, manifest: Manifest) -> Manifest:
        """Create an object; ApiError with CONFLICT if it exists."""
        resource = BY_KIND[manifest["kind"]]
        path = resource.path(manifest["metadata"].get("namespace"))
        return await self._call("POST", resource, path, body=manifest, params={"fieldManager": FIELD_MANAGER})

    async def apply(self, manifest: Manifest) -> Manifest:
        """Server-side apply, with force: what we say about our own children counts."""
        resource, meta = BY_KIND[manifest["kind"]], manifest["metadata"]
        path = resource.path(meta.get("namespace"), meta["name"])
        params = {"fieldManager": FIELD_MANAGER, "force": "true"}
        return await self._call("PATCH", resource, path, body=manifest, params=params, content_type=_APPLY)

    async def delete(self, ref: ObjectRef) -> None:
        """Delete an object and, in the background, what it owns; success if it is gone already."""
        resource = BY_KIND[ref.kind]
        try:
            await self._call(
                "DELETE",
                resource,
                resource.path(ref.namespace, ref.name),
                body={"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"},
            )
        except ApiError as error:
            if error.status != NOT_FOUND:
                raise

    async def patch_status(self, key: Key, patch: Manifest, resource_version: str) -> Manifest:
        """Merge into the status of exactly the object that was looked at; CONFLICT if it has changed since."""
        resource = BY_KIND[key.kind]
        body = {"metadata": {"resourceVersion": resource_version}, "status": patch}
        path = resource.path(key.namespace, key.name, "status")
        params = {"fieldManager": FIELD_MANAGER}
        return await self._call("PATCH", resource, path, body=body, params=params, content_type=_MERGE)

    async def create_event(self, event: Manifest) -> None:
        """Tell about an object; that it was told before is no error."""
        try:
            await self._call("POST", EVENT, EVENT.path(event["metadata"]["namespace"]), body=event)
        except ApiError as error:
            if error.status != CONFLICT:
                raise

    async def review_token(self, token: str, audience: str) -> Manifest:
        """Ask who a token belongs to: the status of a TokenReview."""
        body = {
            "apiVersion": TOKEN_REVIEW.api_version,
            "kind": TOKEN_REVIEW.kind,
            "spec": {"token": token, "audiences": [audience]},
        }
        answer = await self._call("POST", TOKEN_REVIEW, TOKEN_REVIEW.path(), body=body)
        status: Manifest = answer.get("status", {})
        return status

    async def logs(self, pod: Key, container: str, lines: int, *, previous: bool = False) -> str:
        """The last lines of a container."""
        resource = BY_KIND["Pod"]
        params = {"container": container, "tailLines": str(lines)} | ({"previous": "true"} if previous else {})
        return await self._text("GET", resource, resource.path(pod.namespace, pod.name, "log"), params=params)

    async def _call(self, method: str, resource: Resource, path: str, **options: Any) -> Manifest:
        answer: Manifest = json.loads(await self._text(method, resource, path, **options))
        return answer

    async def _text(self, method: str, resource: Resource, path: str, **options: Any) -> str:
        """One call; options: params, body, and the types of both (content_type, accept)."""
        types = {"Accept": options.get("accept", _JSON), "Content-Type": options.get("content_type", _JSON)}
        body = options.get("body")
        async with self._connection.session.request(
            method,
            f"{self._connection.server}{path}",
            params=options.get("params"),
            data=json.dumps(body, separators=(",", ":")).encode() if body is not None else None,
            headers=self._connection.headers() | types,
        ) as answer:
            text = await answer.text()
            metrics.API_CALLS.labels(method, resource.kind, str(answer.status)).inc()
            if answer.status >= _ERROR:
                raise ApiError(answer.status, f"{method} {path}", _message(text))
            return text


def _message(text: str) -> str:
    """The sentence in a Status object, or the text itself."""
    try:
        return str(json.loads(text)["message"])
    except (ValueError, KeyError, TypeError):
        return text[:300]
