"""What an object names in its namespace: the I/O side looks these up, prerequisites.py checks them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from finetune_operator.api.v1alpha1.finetunejob import FineTuneJobSpec
from finetune_operator.api.v1alpha1.inferenceservice import InferenceServiceSpec
from finetune_operator.core import sources

if TYPE_CHECKING:
    from collections.abc import Mapping

    from finetune_operator.api.v1alpha1.common import SecretKeyRef
    from finetune_operator.core.sources import Source

CACHE_CLAIM = "finetune-cache"
MODELS_CLAIM = "finetune-models"
API_KEY = "api-key"


@dataclass(frozen=True)
class References:
    """Names of objects in the same namespace, with the key that is needed (None: the object is enough)."""

    secrets: tuple[tuple[str, str], ...] = ()
    config_maps: tuple[tuple[str, str], ...] = ()
    claims: tuple[str, ...] = ()
    job: str | None = None
    """The FineTuneJob that an InferenceService waits for."""
    service: str | None = None
    """The InferenceService that spec.serve names."""


def of_job(name: str, spec: FineTuneJobSpec) -> References:
    """What a FineTuneJob names."""
    tokens = (spec.model.token_secret_ref, spec.dataset.token_secret_ref)
    found = source_mounts(spec)
    return References(
        secrets=tuple(_key(token) for token in tokens if token),
        config_maps=tuple((source.name, source.path) for source in found.values() if source.config_map),
        claims=(cache_claim(spec), models_claim(spec), *(source.name for source in found.values() if source.claim)),
        service=service_name(name, spec),
    )


def of_service(name: str, spec: InferenceServiceSpec) -> References:
    """What an InferenceService names."""
    secret = api_key_secret(name, spec)
    return References(
        secrets=(secret,) if secret else (),
        claims=(spec.storage_claim or MODELS_CLAIM,),
        job=spec.model.from_fine_tune_job,
    )


def of(manifest: Mapping[str, Any]) -> References:
    """What an object of either kind names; raises pydantic.ValidationError for an invalid one."""
    name, spec = manifest["metadata"]["name"], manifest.get("spec", {})
    if manifest["kind"] == "FineTuneJob":
        return of_job(name, FineTuneJobSpec.model_validate(spec))
    return of_service(name, InferenceServiceSpec.model_validate(spec))


def source_mounts(spec: FineTuneJobSpec) -> dict[str, Source]:
    """Folder below /sources → the pvc:// or configMap:// source that is mounted there."""
    validation = spec.dataset.validation.source if spec.dataset.validation else None
    addresses = {"model": spec.model.source, "dataset": spec.dataset.source, "validation": validation}
    found = {folder: sources.parse(address) for folder, address in addresses.items() if address}
    return {folder: source for folder, source in found.items() if source.claim or source.config_map}


def cache_claim(spec: FineTuneJobSpec) -> str:
    """The claim for downloads."""
    return (spec.storage and spec.storage.cache_claim) or CACHE_CLAIM


def models_claim(spec: FineTuneJobSpec) -> str:
    """The claim for runs and versions."""
    return (spec.storage and spec.storage.models_claim) or MODELS_CLAIM


def service_name(name: str, spec: FineTuneJobSpec) -> str | None:
    """The InferenceService that serves the result, if one is asked for."""
    return (spec.serve.name or name) if spec.serve else None


def api_key_secret(name: str, spec: InferenceServiceSpec) -> tuple[str, str] | None:
    """Name and key of the Secret with the API key; None if everybody may ask."""
    auth = spec.auth
    if auth and auth.type == "None":
        return None
    if auth and auth.api_key_secret_ref:
        return _key(auth.api_key_secret_ref)
    return own_api_key_secret(name), API_KEY


def own_api_key_secret(name: str) -> str:
    """The Secret that we make for a service whose user names none."""
    return f"{name}-api-key"


def _key(reference: SecretKeyRef) -> tuple[str, str]:
    return reference.name, reference.key
