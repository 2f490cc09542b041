"""From rows to conversations: five forms, and the names that people give to things."""

from __future__ import annotations

import json
from typing import Any

import pytest
from finetune_trainer.contract.runspec import DatasetSpec
from finetune_trainer.data import Message, Report, check

ANSWER = Message("assistant", "North.")
TURNS = [{"role": "user", "content": "Wind?"}, {"role": "assistant", "content": "North."}]


def read(*rows: dict[str, Any], **settings: Any) -> Report:
    spec = DatasetSpec(source="configMap://rows/data.jsonl", **settings)
    return check("\n".join(json.dumps(row) for row in rows).encode(), "rows.jsonl", spec)


FORMS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "messages": ({"messages": TURNS}, {}),
    "messages under the name of conversations": ({"conversations": TURNS}, {}),
    "sharegpt": ({"conversations": [{"from": "human", "value": "Wind?"}, {"from": "gpt", "value": "North."}]}, {}),
    "alpaca": ({"instruction": "Wind?", "input": "", "output": "North."}, {}),
    "prompt and completion": ({"prompt": "Wind?", "completion": "North."}, {}),
    "prompt and completion as messages": ({"prompt": TURNS[:1], "completion": TURNS[1:]}, {}),
    "another column": ({"dialogue": TURNS}, {"columns": {"messages": "dialogue"}}),
    "other keys in a turn": (
        {"messages": [{"who": "user", "says": "Wind?"}, {"who": "assistant", "says": "North."}]},
        {"columns": {"role": "who", "content": "says"}},
    ),
    "other roles": (
        {"messages": [{"role": "Captain", "content": "Wind?"}, {"role": "mate", "content": "North."}]},
        {"roles": {"captain": "user", "mate": "assistant"}},
    ),
    "roles in capitals": (
        {"messages": [{"role": "User", "content": "Wind?"}, {"role": "GPT", "content": "North."}]},
        {},
    ),
    "a table of questions": (
        {"question": "Wind?", "reply": "North."},
        {"columns": {"prompt": "question", "completion": "reply"}},
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_every_form_becomes_the_same_conversation(name: str) -> None:
    row, settings = FORMS[name]
    report = read(row, **settings)
    assert report.failure() is None
    assert report.conversations[0].messages == (Message("user", "Wind?"), ANSWER)


def test_the_input_of_an_instruction_follows_it() -> None:
    report = read({"instruction": "Translate.", "input": "Wind", "output": "vent"})
    assert report.conversations[0].messages[0].content == "Translate.\n\nWind"


def test_plain_text_stays_text() -> None:
    report = read({"text": "The wind blows."})
    assert (report.format, report.conversations[0].text, report.conversations[0].messages) == (
        "text",
        "The wind blows.",
        (),
    )


def test_a_system_prompt_goes_before_conversations_that_have_none() -> None:
    own = {"role": "system", "content": "Be brief."}
    report = read({"messages": TURNS}, {"messages": [own, *TURNS]}, system_prompt="Be kind.")
    assert [row.messages[0].content for row in report.conversations] == ["Be kind.", "Be brief."]


def test_a_system_column_becomes_a_message() -> None:
    report = read({"system": "Be brief.", "instruction": "Wind?", "output": "North."})
    assert report.conversations[0].messages[0] == Message("system", "Be brief.")


def test_a_function_call_of_sharegpt_becomes_a_tool_call() -> None:
    call = {"from": "function_call", "value": '{"name": "wind", "arguments": {"at": 3}}'}
    turns = [
        {"from": "human", "value": "Wind?"},
        call,
        {"from": "observation", "value": "N"},
        {"from": "gpt", "value": "North."},
    ]
    messages = read({"conversations": turns}).conversations[0].messages
    assert messages[1].tool_calls[0]["function"] == {"name": "wind", "arguments": {"at": 3}}
    assert [message.role for message in messages] == ["user", "assistant", "tool", "assistant"]


def test_tools_may_be_a_list_or_text() -> None:
    tools = [{"type": "function", "function": {"name": "wind"}}]
    report = read({"messages": TURNS, "tools": tools}, {"messages": TURNS, "tools": json.dumps(tools)})
    assert [list(row.tools) for row in report.conversations] == [tools, tools]


DROPS: dict[str, tuple[dict[str, Any], str]] = {
    "no turns": ({"messages": []}, "empty"),
    "a blank answer": ({"messages": [TURNS[0], {"role": "assistant", "content": " "}]}, "empty"),
    "a blank question": ({"instruction": "", "output": "North."}, "empty"),
    "blank text": ({"text": "\n"}, "empty"),
    "nothing but a question": ({"messages": TURNS[:1]}, "noAnswer"),
}


@pytest.mark.parametrize("name", DROPS)
def test_drops_and_counts(name: str) -> None:
    row, reason = DROPS[name]
    report = read(row)
    assert dict(report.dropped) == {reason: 1}
    assert report.dropped_lines == {reason: [1]}


def test_nothing_left_is_empty() -> None:
    failure = read({"messages": []}, {"messages": []}).failure()
    assert failure == ("DatasetEmpty", "rows.jsonl: 0 usable rows of 2 (2 empty).")


SAYS: dict[str, tuple[dict[str, Any], str]] = {
    "text instead of value": (
        {"conversations": [{"from": "human", "text": "Wind?"}, {"from": "gpt", "value": "N"}]},
        "conversations[0]: 'value' missing (keys here: from, text). Did you mean the key 'text'?",
    ),
    "a typo in a key": (
        {"conversations": [{"from": "human", "vlaue": "Wind?"}]},
        "Did you mean the key 'vlaue'?",
    ),
    "no role": ({"messages": [{"content": "Wind?"}]}, "messages[0]: 'role' missing"),
    "null without a call": (
        {"messages": [TURNS[0], {"role": "assistant", "content": None}]},
        "messages[1]: empty answer",
    ),
    "a question that is null": (
        {"messages": [{"role": "user", "content": None}]},
        "messages[0]: the user's content is null",
    ),
    "a picture": (
        {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
        "messages[0][0]: text-only training, and this is a part of type 'image_url'",
    ),
    "a number as content": (
        {"messages": [{"role": "user", "content": 7}]},
        "messages[0]: the content must be text, this is a number",
    ),
    "a turn that is text": ({"messages": ["Wind?"]}, "messages[0]: a turn must be an object, this is text"),
    "turns that are text": ({"messages": "Wind?"}, "line 1, messages: must be a list of turns, this is text"),
    "arguments that are no JSON": (
        {"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{"}}]}]},
        "messages[0].tool_calls[0]: the arguments of the tool call are not JSON",
    ),
    "a column by a common name": (
        {"dialog": TURNS},
        "Did you mean the key 'dialog'? Rename it, or set dataset.columns: {messages: dialog}",
    ),
    "no column that is known": (
        {"a": 1, "b": 2},
        "no known format (keys here: a, b). A row has messages, conversations,",
    ),
}


@pytest.mark.parametrize("name", SAYS)
def test_says_what_is_wrong_with_a_row(name: str) -> None:
    row, sentence = SAYS[name]
    failure = read(row).failure()
    assert failure
    assert failure.reason == "DatasetInvalid"
    assert sentence in failure.message


def test_mixed_formats_are_counted() -> None:
    failure = read(*[{"messages": TURNS}] * 3, {"instruction": "Wind?", "output": "North."}).failure()
    assert failure
    assert "rows of different formats: 3 messages (line 1 first), 1 alpaca (line 4 first)" in failure.message


def test_a_format_that_is_said_is_kept_to() -> None:
    failure = read({"messages": TURNS}, format="alpaca").failure()
    assert failure
    assert "line 1: 'instruction' missing (keys here: messages)" in failure.message


SETTINGS: dict[str, tuple[dict[str, Any], str]] = {
    "a role that does not exist": (
        {"roles": {"captain": "chief"}},
        "dataset.roles: 'captain' is mapped to 'chief'. Map it to one of:",
    ),
    "a column that is none of ours": (
        {"columns": {"dialogue": "messages"}},
        "dataset.columns: 'dialogue' is none of our names. The keys are: messages,",
    ),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_says_what_is_wrong_with_the_settings(name: str) -> None:
    settings, sentence = SETTINGS[name]
    failure = read({"messages": TURNS}, **settings).failure()
    assert failure
    assert sentence in failure.message


def test_an_order_of_roles_is_the_template_s_matter() -> None:
    late = [*TURNS, {"role": "system", "content": "Be brief."}, *TURNS]
    assert read({"messages": late}).failure() is None
    assert read({"messages": TURNS[::-1]}).notes == {"trimmedTurns": 1}
