"""Names of children: short, valid, and never the same for two parents."""

from __future__ import annotations

import re

from finetune_operator.core import names
from hypothesis import given
from hypothesis import strategies as st

NAME = st.from_regex(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True)
SUFFIX = st.sampled_from(["run", "prepare-1", "evaluate-128", "server", "offline"])


@given(NAME, SUFFIX, st.uuids().map(str))
def test_a_child_has_a_valid_short_name(name: str, suffix: str, uid: str) -> None:
    child = names.child(name, suffix, uid)
    assert len(child) <= 52
    assert re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", child)


@given(st.sets(st.tuples(NAME, SUFFIX, st.integers(0, 3).map(str)), min_size=2, max_size=30))
def test_different_parents_have_different_children(parents: set[tuple[str, str, str]]) -> None:
    assert len({names.child(*parent) for parent in parents}) == len(parents)


def test_two_names_of_63_characters_that_differ_in_the_last_letter() -> None:
    long = "a" * 62
    assert names.child(long + "x", "run", "1") != names.child(long + "y", "run", "2")


@given(NAME)
def test_the_suffix_stays_readable(name: str) -> None:
    assert "-train-12-" in names.child(name, "train-12", "uid")


def test_parts_of_a_digest_do_not_run_together() -> None:
    assert names.digest("a", "bc") != names.digest("ab", "c")
