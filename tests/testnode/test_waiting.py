from pathlib import Path

import pytest

from testnode.console import NodeError
from testnode.waiting import unanswered, wait_until


def test_waiting_ends_as_soon_as_nothing_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("testnode.waiting.PERIOD", 0.0)
    answers = iter(["this", "that", None])
    wait_until(lambda: next(answers), 10, tmp_path / "log")
    assert next(answers, "asked three times") == "asked three times"


def test_after_the_deadline_the_missing_condition_and_the_log_are_shown(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_text("first\n" + "line\n" * 19 + "why it failed\n")
    with pytest.raises(NodeError) as error:
        wait_until(lambda: "the node is not Ready", 0, log)
    assert "after 0 s still: the node is not Ready" in str(error.value)
    assert "why it failed" in str(error.value)
    assert "first" not in str(error.value)


def test_a_log_that_was_never_written_is_said_to_be(tmp_path: Path) -> None:
    with pytest.raises(NodeError, match="was never written"):
        wait_until(lambda: "anything", 0, tmp_path / "nothing.log")


def test_an_address_where_nobody_listens_is_not_healthy() -> None:
    assert "refused" in (unanswered("http://127.0.0.1:1/healthz") or "")
