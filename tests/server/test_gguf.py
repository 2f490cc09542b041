"""Reading GGUF headers, whole and damaged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from finetune_server.contract import GgufFacts
from finetune_server.gguf import NotGguf, read_gguf

MakeGguf = Callable[..., Path]


def test_facts(make_gguf: MakeGguf) -> None:
    path = make_gguf()
    assert read_gguf(path).facts() == GgufFacts(
        bytes=path.stat().st_size, architecture="llama", context_length=2048, layers=2, key_value_heads=2, head_dim=16,
        hidden_size=64, vocab_size=1500,
    )  # fmt: skip


@pytest.mark.parametrize("words", [3, 1024, 1025])
def test_short_and_long_vocabularies_are_counted(make_gguf: MakeGguf, words: int) -> None:
    assert read_gguf(make_gguf(words=words)).facts().vocab_size == words


def test_the_largest_counts_where_layers_differ(make_gguf: MakeGguf) -> None:
    assert read_gguf(make_gguf(heads=[0, 4])).facts().key_value_heads == 4


def test_bits_per_weight_are_those_of_the_tensors(make_gguf: MakeGguf) -> None:
    assert read_gguf(make_gguf()).bits_per_weight == 8.5


CUT = bytes.fromhex("4747554603000000 0a00000000000000 0500000000000000 00000000000000")
DAMAGE: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "cut in the tensors": (lambda content: content[:-1], "is cut: it has"),
    "cut in the header": (lambda content: content[:200], "cut or damaged in its header"),
    "cut after the magic": (lambda _content: CUT, "cut or damaged"),
    "empty": (lambda _content: b"", "not a GGUF file"),
    "a web page": (lambda _content: b"<!DOCTYPE html>", "begins with b'<!DO'"),
    "another version": (lambda content: content[:4] + b"\x09\0\0\0" + content[8:], "version 9 is not known"),
    "impossible count": (lambda content: content[:8] + b"\xff" * 8 + content[16:], "impossible"),
}  # fmt: skip


@pytest.mark.parametrize("sentence", DAMAGE)
def test_damage_is_named(make_gguf: MakeGguf, sentence: str) -> None:
    damage, message = DAMAGE[sentence]
    path = make_gguf()
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(NotGguf, match=message) as caught:
        read_gguf(path)
    assert str(path) in str(caught.value)
