"""How kopf behaves: it watches, and that is all."""

from __future__ import annotations

import kopf

from finetune_operator.cluster.resources import WATCHED

SERVER_SECONDS, CLIENT_SECONDS, CONNECT_SECONDS = 300, 330, 10
CHUNK = 200
IDLE_SECONDS = 1.0
"""A task per object ends this soon after its last event: memory is worth more than its start."""


def settings() -> kopf.OperatorSettings:
    """Selectors on the server's side, time limits on every watch, and nothing that writes."""
    made = kopf.OperatorSettings()
    made.posting.enabled = False
    made.peering.standalone = True
    # Observing CRDs and namespaces needs rights that the operator does not want.
    made.scanning.disabled = True
    made.queueing.idle_timeout = IDLE_SECONDS
    made.networking.request_timeout = 30
    made.networking.connect_timeout = CONNECT_SECONDS
    made.watching.server_timeout = SERVER_SECONDS
    made.watching.client_timeout = CLIENT_SECONDS
    made.watching.connect_timeout = CONNECT_SECONDS
    made.watching.chunk_size = CHUNK
    for resource in WATCHED:
        where = (resource.group, resource.version, resource.plural)
        if resource.labels:
            made.watching.label_selectors[where] = resource.labels
        if resource.fields:
            made.watching.field_selectors[where] = resource.fields
    return made
