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
    def what(self) -> str:
        """What it is called in a sentence."""
        return f"{self.kind} repository {self.name}"

    @property
    def secret(self) -> str:
        """The field that names the token's Secret."""
        return f"{self.kind}.tokenSecretRef"


@contextmanager
def told(asked: Asked) -> Iterator[None]:
    """Turn the hub client's errors into reasons."""
    try:
        yield
    except errors.HfHubHTTPError as error:
        raise _answered(error, asked) from error
    except errors.HFValidationError as error:
        raise StageError(asked.not_found, f"'{asked.name}' cannot be a repository's name: {error}.") from error
    except (errors.LocalEntryNotFoundError, errors.OfflineModeIsEnabled, httpx.HTTPError) as error:
        raise StageError("HubUnreachable", _unreachable(error.__cause__ or error, asked)) from error
    except ValueError as error:
        message = f"{asked.endpoint} does not answer like a model hub ({error}). Is HF_ENDPOINT right?"
        raise StageError("HubUnreachable", message) from error
    except OSError as error:
        if error.errno is not None:  # the disk's troubles have a number, the client's own do not
            raise
        raise StageError("HubUnreachable", f"A download of {asked.name} was incomplete: {error}") from error


def _answered(error: errors.HfHubHTTPError, asked: Asked) -> StageError:
    """A refusal by the hub itself."""
    status = error.response.status_code
    if isinstance(error, errors.GatedRepoError):
        return StageError(asked.closed, _gated(asked))
    if status in _REFUSED and asked.with_token:
        why = "it is wrong, expired or lacks the right to read"
        message = f"{asked.endpoint} refuses the token of {asked.secret} for {asked.what} (HTTP {status}): {why}."
        return StageError(asked.closed, message)
    if isinstance(
        error, errors.RepositoryNotFoundError | errors.RevisionNotFoundError | errors.RemoteEntryNotFoundError
    ):
        return StageError(asked.not_found, _absent(error, asked))
    if status == _TOO_MANY:
        more = f"a token in {asked.secret} raises the limit"
        return StageError("HubUnreachable", f"{asked.endpoint} asks to wait (HTTP 429, too many requests); {more}.")
    message = f"{asked.endpoint} answers HTTP {status} for {asked.what}. Is it a model hub, and is HF_ENDPOINT right?"
    return StageError("HubUnreachable", message)


def _absent(error: errors.HfHubHTTPError, asked: Asked) -> str:
    if isinstance(error, errors.RevisionNotFoundError):
        return f"The {asked.what} has no revision '{asked.revision}'; {asked.page}/tree/main lists what there is."
    if isinstance(error, errors.RemoteEntryNotFoundError):
        return f"The {asked.what} lacks a file that it lists: {error.request.url.path}."
    private = "" if asked.with_token else f", or it is private and needs a token in {asked.secret}"
    return f"{asked.endpoint} has no {asked.what}{private}. Check the spelling at {asked.page}."


def _gated(asked: Asked) -> str:
    if asked.with_token:
        return f"The licence of {asked.name} is not accepted by the token's owner: accept it at {asked.page}."
    return f"{asked.name} is gated: accept its licence at {asked.page}, and name a token in {asked.secret}."


def _unreachable(error: BaseException, asked: Asked) -> str:
    text = str(error).strip()
    if any(sign in text for sign in ("Name or service", "name resolution", "No address associated")):
        why = "the name does not resolve: no network, no DNS, or a typo in HF_ENDPOINT"
    else:
        why = text.splitlines()[0] if text else type(error).__name__
    return f"{asked.endpoint} cannot be reached for the {asked.what}: {why}."
