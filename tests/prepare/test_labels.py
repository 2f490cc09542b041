"""What is learned of a conversation, under templates of several kinds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from finetune_trainer.contract.runspec import ModelSpec
from finetune_trainer.data import Conversation, Message
from finetune_trainer.data.faults import Fault
from finetune_trainer.prepare.labels import IGNORED, Labeller
from finetune_trainer.prepare.tokenizer import Tokenizer
from finetune_trainer.stage import StageError
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import tiny_model

if TYPE_CHECKING:
    from pathlib import Path

END = "<|im_end|>"
TURN = "<|im_start|>{{ m.role }}\n{{ m.content }}"
ASK = "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
STRICT = (
    "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('roles must alternate') }}{% endif %}" + TURN + END + "\n{% endfor %}" + ASK
)
THINKING = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% if m.role == 'assistant' and loop.last %}<think></think>{% endif %}{{ m.content }}"
    + END
    + "\n{% endfor %}"
    + ASK
)
FORGETFUL = "{% for m in messages %}" + TURN + END + "\n{% endfor %}{% if add_generation_prompt %}Answer: {% endif %}"
NONE = "{% for m in messages %}" + TURN + "{{ m.get('name') }}" + END + "\n{% endfor %}" + ASK
ENDLESS = (
    "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)
OTHER_END = "{% for m in messages %}" + TURN + "<|endoftext|>\n{% endfor %}" + ASK

USER, ANSWER = Message("user", "Wind?"), Message("assistant", "North.")
TWICE = Conversation(7, (USER, ANSWER, Message("user", "And now?"), Message("assistant", "West.")))


def labeller(folder: Path, template: str, *, responses_only: bool = True) -> Labeller:
    tiny_model.write(folder, template=template)
    return Labeller(Tokenizer.load(folder, ModelSpec(source="pvc://bases/tiny")), responses_only)


def learned(by: Labeller, row: Conversation) -> list[str]:
    """The stretches of text that are learned."""
    done = by.label(row)
    assert len(done.labels) == len(done.input_ids)
    pieces: list[list[int]] = [[]]
    for label in done.labels:
        if label != IGNORED:
            pieces[-1].append(label)
        elif pieces[-1]:
            pieces.append([])
    return [str(by.tokenizer.inner.decode(piece)) for piece in pieces if piece]


TABLE = {
    "ChatML": (tiny_model.CHATML, ["North.<|im_end|>", "West.<|im_end|>"]),
    "strict alternation": (STRICT, ["North.<|im_end|>", "West.<|im_end|>"]),
    "reasoning of the last answer only": (THINKING, ["<think></think>West.<|im_end|>"]),
}


@pytest.mark.parametrize("name", TABLE)
def test_answers_and_their_ends_are_learned(tmp_path: Path, name: str) -> None:
    template, expected = TABLE[name]
    assert learned(labeller(tmp_path, template), TWICE) == expected


def test_answers_that_are_not_learned_are_counted(tmp_path: Path) -> None:
    assert labeller(tmp_path, THINKING).label(TWICE).unlearned_turns == 1


def test_everything_is_learned_if_asked_for(tmp_path: Path) -> None:
    assert len(learned(labeller(tmp_path, tiny_model.CHATML, responses_only=False), TWICE)) == 1


@pytest.mark.parametrize("answer", ["\nNorth.", " North. ", "é", "🌊 wave", "<|im_end", "a\n\nb", "{}"])
def test_every_byte_of_an_answer_is_learned(tmp_path: Path, answer: str) -> None:
    row = Conversation(1, (USER, Message("assistant", answer)))
    assert learned(labeller(tmp_path, tiny_model.CHATML), row) == [answer + END]


@pytest.fixture(scope="module")
def chatml(tmp_path_factory: pytest.TempPathFactory) -> Labeller:
    return labeller(tmp_path_factory.mktemp("base"), tiny_model.CHATML)


TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(lambda text: "<|" not in text)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=4))
def test_exactly_the_answers_are_learned(chatml: Labeller, turns: list[tuple[str, str]]) -> None:
    messages = [Message(role, text) for turn in turns for role, text in zip(("user", "assistant"), turn, strict=True)]
    row = Conversation(1, tuple(messages))
    assert learned(chatml, row) == [answer + END for _, answer in turns]


def test_an_answer_of_a_tool_call_is_learned(tmp_path: Path) -> None:
    template = tiny_model.CHATML.replace(
        "{{ m.content }}", "{{ m.content }}{{ m.tool_calls | tojson if m.tool_calls }}"
    )
    call = {"type": "function", "function": {"name": "wind", "arguments": {}}}
    row = Conversation(1, (USER, Message("assistant", "", (call,)), Message("tool", "N"), ANSWER))
    first, second = learned(labeller(tmp_path, template), row)
    assert first.startswith('[{"type": "function"')
    assert second == "North.<|im_end|>"


REFUSED = {
    "no special end": (ENDLESS, "EndOfTurnMismatch", "puts no special token after an answer"),
    "an end at which nothing stops": (
        OTHER_END,
        "EndOfTurnMismatch",
        "ends an answer with <|endoftext|>, and generation stops at <|im_end|>: the model would never stop.",
    ),
    "another beginning": (
        FORGETFUL,
        "EndOfTurnMismatch",
        "Line 7: the chat template renders a conversation in another way",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_says_what_is_wrong_with_a_template(tmp_path: Path, name: str) -> None:
    template, reason, sentence = REFUSED[name]
    with pytest.raises(StageError) as told:
        labeller(tmp_path, template).label(TWICE)
    assert told.value.reason.name == reason
    assert sentence in told.value.message


FAULTS = {
    "an order that the template refuses": (
        STRICT,
        Conversation(3, (Message("system", "Be brief."), USER, ANSWER)),
        "the chat template refuses this conversation: roles must alternate",
    ),
    "the word None": (NONE, Conversation(3, (USER, ANSWER)), "prints the word None"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_says_what_is_wrong_with_a_row(tmp_path: Path, name: str) -> None:
    template, row, sentence = FAULTS[name]
    with pytest.raises(Fault) as told:
        labeller(tmp_path, template).label(row)
    assert sentence in told.value.message
    assert told.value.line == 3


def test_the_word_none_may_be_said(tmp_path: Path) -> None:
    row = Conversation(1, (USER, Message("assistant", "None.")))
    assert learned(labeller(tmp_path, tiny_model.CHATML), row) == ["None.<|im_end|>"]
