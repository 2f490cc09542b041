"""What the pods of a job may reach: two policies a job, one for prepare, one for the stages that are offline.

They are there before the Job whose pods they select.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from finetune_operator.core import names

if TYPE_CHECKING:
    from finetune_operator.api.v1alpha1.finetunejob import FineTuneJob
    from finetune_operator.core.job.stages import StageRow
    from finetune_operator.core.types import Manifest, Settings

NETWORK_LABEL = f"{names.PREFIX}/network"
_ALWAYS_CLOSED = {"0.0.0.0/0": ["127.0.0.0/8", "169.254.0.0/16"], "::/0": ["::1/128", "fe80::/10"]}
_PRIVATE = {"0.0.0.0/0": ["10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16"], "::/0": ["fc00::/7"]}
_DNS: dict[str, Any] = {"ports": [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]}


def network(row: StageRow) -> str:
    """The value of the label by which the policies select pods."""
    return "online" if row.online else "offline"


def policy(job: FineTuneJob, row: StageRow, settings: Settings) -> Manifest:
    """The policy for the pods of this stage."""
    kind = network(row)
    labels = names.labels(job.metadata, "network", job_uid=job.metadata.uid)
    name = names.child(job.metadata.name, kind, job.metadata.uid)
    egress = _internet(settings) if row.online else _progress(settings)
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": names.metadata(job.metadata, "FineTuneJob", name, labels),
        "spec": {
            "podSelector": {
                "matchLabels": {f"{names.PREFIX}/job-uid": job.metadata.uid, NETWORK_LABEL: kind},
            },
            "policyTypes": ["Ingress", "Egress"],
            "egress": [_DNS, egress],
        },
    }


def _internet(settings: Settings) -> dict[str, Any]:
    """Everywhere but loopback and link-local; private ranges only if allowed, or if the hub is a mirror of ours."""
    private = settings.allow_private_addresses or settings.hub_endpoint is not None
    return {
        "to": [
            {"ipBlock": {"cidr": cidr, "except": closed + ([] if private else _PRIVATE[cidr])}}
            for cidr, closed in _ALWAYS_CLOSED.items()
        ]
    }


def _progress(settings: Settings) -> dict[str, Any]:
    """The operator's own pods, where the progress endpoint listens."""
    return {
        "to": [
            {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": settings.operator_namespace}},
                "podSelector": {"matchLabels": {"app.kubernetes.io/name": "finetune-operator"}},
            }
        ]
    }
