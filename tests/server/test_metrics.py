"""Counting right answers."""

from __future__ import annotations

import pytest
from finetune_server.evaluate.metrics import Answer, is_exact, score
from finetune_trainer.contract.results import Scores

EXACT: dict[str, tuple[str, str, bool]] = {
    "the same text": ("Paris", "Paris", True),
    "spaces around do not count": ("Paris", "  Paris\n", True),
    "another text": ("Paris", "Lyon", False),
    "more than was asked": ("Paris", "Paris is it", False),
    "the same object, written otherwise": ('{"a": 1, "b": [2]}', '{"b":[2],\n"a":1}', True),
    "1 and 1.0 are one number": ('{"a": 1}', '{"a": 1.0}', True),
    "1 and true are not": ('{"a": 1}', '{"a": true}', False),
    "1 and '1' are not": ('{"a": 1}', '{"a": "1"}', False),
    "null and a missing field are not": ('{"a": null, "b": 1}', '{"b": 1}', False),
    "a list has an order": ('{"a": [1, 2]}', '{"a": [2, 1]}', False),
    "an empty list is not an empty object": ('{"a": []}', '{"a": {}}', False),
    "an empty object is not an empty list": ("{}", "[]", False),
    "text around the object": ('{"a": 1}', 'Sure: {"a": 1}', False),
    "cut in the middle": ('{"a": 1}', '{"a": ', False),
    "a plain number is text": ("42", " 42", True),
    "a plain number is not rounded": ("42", "42.0", False),
}


@pytest.mark.parametrize("sentence", EXACT)
def test_exact(sentence: str) -> None:
    expected, answer, right = EXACT[sentence]
    assert is_exact(expected, answer) is right


TWO = '{"a": 1, "b": 2}'
F1: dict[str, tuple[list[str], list[str], float]] = {
    "all fields": ([TWO], [TWO], 1.0),
    "one of two is wrong": ([TWO], ['{"a": 1, "b": 3}'], 0.5),
    "one of two is missing": ([TWO], ['{"a": 1}'], 2 / 3),
    "one too many": (['{"a": 1}'], [TWO], 2 / 3),
    "no JSON at all": ([TWO], ["no idea"], 0.0),
    "all rows together": ([TWO, '{"a": 1}'], [TWO, '{"a": 2}'], 2 / 3),
    "deep fields": (['{"a": {"b": [1, 2]}}'], ['{"a": {"b": [1, 3]}}'], 0.5),
}


@pytest.mark.parametrize("sentence", F1)
def test_field_f1(sentence: str) -> None:
    expected, answers, f1 = F1[sentence]
    scores = score(expected, [Answer(text, stopped=True) for text in answers], 1)
    assert scores.field_f1 == pytest.approx(f1)


def test_rates_and_speed() -> None:
    answers = [Answer('{"a": 1}', stopped=True, tokens=10), Answer("{", stopped=False, tokens=30)]
    assert score(['{"a": 1}', '{"a": 1}'], answers, 4) == Scores(
        rows=2, exact_match=0.5, valid_json=0.5, field_f1=2 / 3, stop_rate=0.5, tokens_per_second=10
    )


def test_text_answers_have_no_json_scores() -> None:
    scores = score(["yes"], [Answer("yes", stopped=True)], 1)
    assert (scores.exact_match, scores.valid_json, scores.field_f1) == (1, None, None)


def test_no_rows() -> None:
    assert score([], [], 0) == Scores()
