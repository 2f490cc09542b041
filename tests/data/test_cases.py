"""Faults that people met in public, one file each: what is read of it, or what is said about it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from finetune_trainer.contract.runspec import DatasetSpec
from finetune_trainer.data import Report, check

CASES = Path(__file__).parent / "cases"
SPEC = DatasetSpec(source="configMap://rows/data.jsonl")


def read(name: str) -> Report:
    return check(CASES / name, name, SPEC)


@dataclass(frozen=True)
class Good:
    format: str
    rows: int
    notes: dict[str, int]


GOOD = {
    "a00_good.jsonl": Good("sharegpt", 2, {}),
    "a01_bom.jsonl": Good("sharegpt", 2, {}),
    "a01_crlf.jsonl": Good("sharegpt", 2, {}),
    "a03_array.jsonl": Good("sharegpt", 2, {}),
    "a03_wrapped.json": Good("sharegpt", 2, {}),
    "a05_roles_openai_in_sharegpt.jsonl": Good("sharegpt", 1, {}),
    "a06_ends_on_user.jsonl": Good("messages", 1, {"trimmedTurns": 1}),
    "a06_two_assistant.jsonl": Good("messages", 1, {"mergedTurns": 1}),
    "a07_null_content_tool.jsonl": Good("messages", 1, {}),
    "a08_mixed_content.jsonl": Good("messages", 2, {}),
    "a10_mixed_type_extra_column.jsonl": Good("sharegpt", 8, {}),
    "a11_long_prompt_short_answer.jsonl": Good("sharegpt", 1, {}),
    "a14_tiny.jsonl": Good("sharegpt", 2, {}),
}


@pytest.mark.parametrize("name", GOOD)
def test_reads(name: str) -> None:
    report = read(name)
    assert report.failure() is None
    assert Good(report.format, len(report.conversations), dict(report.notes)) == GOOD[name]


BAD = {
    "a02_latin1.jsonl": ("DatasetInvalid", "file is not UTF-8 (byte 0xE9 at offset 50). Re-save the file as UTF-8."),
    "a03_trailing_comma.jsonl": (
        "DatasetInvalid",
        "line 1: text after the object (','): is this a comma-separated list? Write JSON Lines",
    ),
    "a04_missing_value.jsonl": ("DatasetInvalid", "line 2, conversations[1]: 'value' missing"),
    "a05_roles_typo.jsonl": (
        "DatasetInvalid",
        "line 1, conversations[0]: unknown role 'humman'. Did you mean 'human'? Known roles: system,",
    ),
    "a09_empty.jsonl": ("DatasetEmpty", "0 usable rows of 0."),
}


@pytest.mark.parametrize("name", BAD)
def test_says_what_is_wrong(name: str) -> None:
    failure = read(name).failure()
    assert failure
    reason, sentence = BAD[name]
    assert failure.reason == reason
    assert failure.message.startswith(name)
    assert sentence in failure.message


def test_every_case_has_its_row() -> None:
    assert {path.name for path in CASES.iterdir()} == GOOD.keys() | BAD.keys()


@pytest.mark.parametrize(
    "name", ["a01_bom.jsonl", "a01_crlf.jsonl", "a03_array.jsonl", "a03_wrapped.json", "a14_tiny.jsonl"]
)
def test_the_form_of_the_file_changes_nothing(name: str) -> None:
    assert read(name).digest() == read("a00_good.jsonl").digest()


def test_a_call_of_a_tool_keeps_its_arguments_and_no_none() -> None:
    messages = read("a07_null_content_tool.jsonl").conversations[0].messages
    assert messages[1].content == ""
    assert messages[1].for_template()["tool_calls"][0]["function"]["arguments"] == {"buoy": 3}
    assert messages[1].for_chat()["tool_calls"][0]["function"]["arguments"] == '{"buoy": 3}'
    assert messages[2].extra == {"tool_call_id": "c1"}


def test_neighbours_are_joined_by_a_blank_line() -> None:
    answer = read("a06_two_assistant.jsonl").conversations[0].messages[-1]
    assert answer.content == "Checking.\n\nRain at 15:00."


def test_parts_of_a_content_become_text() -> None:
    first, second = read("a08_mixed_content.jsonl").conversations
    assert first.messages[0] == second.messages[0]
