"""`finetune chat` finds the server's key where the server itself does."""

from __future__ import annotations

from typing import Any

import pytest
import typer
from finetune_operator.cli.chat import Endpoint

KEYS = {("chat-api-key", "api-key"): "made", ("mine", "token"): "default", ("mine", "k"): "said"}
CASES: dict[str, tuple[dict[str, Any] | None, str | None]] = {
    "nothing is said": (None, "made"),
    "everybody may ask": ({"type": "None"}, None),
    "a Secret of the user's": ({"apiKeySecretRef": {"name": "mine"}}, "default"),
    "a Secret and its key": ({"apiKeySecretRef": {"name": "mine", "key": "k"}}, "said"),
}


class FakeCluster:
    """One InferenceService that is ready."""

    namespace = "team"

    def __init__(self, auth: dict[str, Any] | None) -> None:
        self.spec = {"model": {"fromFineTuneJob": "chat"}} | ({"auth": auth} if auth else {})

    def get(self, _plural: str, _name: str) -> dict[str, Any]:
        return {"spec": self.spec}

    def service_selector(self, name: str) -> str:
        return f"app={name}"

    def ready_pod(self, _selector: str) -> str:
        return "chat-0"

    def secret(self, name: str, key: str) -> str | None:
        return KEYS.get((name, key))


@pytest.mark.parametrize(("auth", "key"), CASES.values(), ids=CASES)
def test_the_key(auth: dict[str, Any] | None, key: str | None) -> None:
    assert Endpoint(FakeCluster(auth), "chat")._key == key  # type: ignore[arg-type]


def test_a_key_that_is_missing_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit):
        Endpoint(FakeCluster({"apiKeySecretRef": {"name": "gone"}}), "chat")  # type: ignore[arg-type]
    assert "Secret team/gone has no key token" in capsys.readouterr().err
