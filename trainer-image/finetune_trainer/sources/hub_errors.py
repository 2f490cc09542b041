"""What a hub's refusal means: a reason out of the table, and a sentence that tells a typo from a closed door."""

from __future__ import annotations

from collections.abc import Iterator  # noqa: TC003
from contextlib import contextmanager
from dataclasses import dataclass

import httpx
from huggingface_hub import errors

from finetune_trainer.stage import StageError

_REFUSED = (401, 403)
_TOO_MANY = 429


@dataclass(frozen=True)
class Asked:
    """What was asked of which hub."""

    kind: str
    """model or dataset."""
    name: str
    revision: str
    endpoint: str
    with_token: bool = False

    @property
    def not_found(self) -> str:
        """The reason for what does not exist."""
        return "ModelNotFound" if self.kind == "model" else "DatasetNotFound"

    @property
    def closed(self) -> str:
        """The reason for what may not be read; for a dataset that is the same to its reader as not being there."""
        return "ModelGated" if self.kind == "model" else "DatasetNotFound"

    @property
    def page(self) -> str:
        """The repository's page for people."""
        return f"{self.endpoint}/{'' if self.kind == 'model' else 'datasets/'}{self.name}"

    @property
    def secret(self) -> str:
        """The field that names the token's Secret."""
        return f"{self.kind}.tokenSecretRef"


@contextmanager
def told(asked: Asked) -> Iterator[None]:
    """Turn the hub client's errors into reasons."""
    try:
        yield
    except (errors.HfHubHTTPError, errors.HFValidationError, errors.LocalEntryNotFoundError, errors.OfflineModeIsEnabled) as error:
        raise explain(error, asked) from error
    except httpx.HTTPError as error:
        raise StageError("HubUnreachable", _unreachable(error, asked)) from error
    except ValueError as error:
        raise StageError("HubUnreachable", f"{asked.endpoint} does not answer like a model hub ({error}). Is HF_ENDPOINT right?") from error


def explain(error: Exception, asked: Asked) -> StageError:
    """One error of the hub client."""
    what = f"{asked.kind} repository {asked.name}"
    status = error.response.status_code if isinstance(error, errors.HfHubHTTPError) else None
    if isinstance(error, errors.GatedRepoError):
        return StageError(asked.closed, _gated(asked))
    if status in _REFUSED and asked.with_token:
        return StageError(asked.closed, f"{asked.endpoint} refuses the token of {asked.secret} for {what} (HTTP {status}): it is wrong, expired or lacks the right to read.")
    if isinstance(error, errors.RepositoryNotFoundError):
        private = "" if asked.with_token else f", or it is private and needs a token in {asked.secret}"
        return StageError(asked.not_found, f"{asked.endpoint} has no {what}{private}. Check the spelling at {asked.page}.")
    if isinstance(error, errors.RevisionNotFoundError):
        return StageError(asked.not_found, f"The {what} has no revision '{asked.revision}'. Its branches and tags are at {asked.page}/tree/main.")
    if isinstance(error, errors.RemoteEntryNotFoundError):
        return StageError(asked.not_found, f"The {what} lacks a file that was asked for: {error.request.url.path}.")
    if isinstance(error, errors.HFValidationError):
        return StageError(asked.not_found, f"'{asked.name}' cannot be a repository's name: {error}.")
    if status == _TOO_MANY:
        return StageError("HubUnreachable", f"{asked.endpoint} asks to wait (HTTP 429): too many requests; a token in {asked.secret} raises the limit.")
    return StageError("HubUnreachable", _unreachable(error.__cause__ or error, asked) if status is None else f"{asked.endpoint} answers HTTP {status} for {what}. Is it a model hub, and is HF_ENDPOINT right?")


def _gated(asked: Asked) -> str:
    if asked.with_token:
        return f"The licence of {asked.name} is not accepted by the token's owner: accept it at {asked.page}."
    return f"{asked.name} is gated: accept its licence at {asked.page}, and name a token in {asked.secret}."


def _unreachable(error: BaseException, asked: Asked) -> str:
    text = str(error)
    unknown = any(sign in text for sign in ("Name or service", "name resolution", "nodename", "No address"))
    why = "the name does not resolve: no network, no DNS, or a typo in HF_ENDPOINT" if unknown else text.splitlines()[0] if text else type(error).__name__
    return f"{asked.endpoint} cannot be reached for {asked.kind} {asked.name}: {why}."
