"""Small GGUF files and a stand-in for the folder of llama.cpp."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest

MakeGguf = Callable[..., Path]


def _text(text: str) -> bytes:
    return struct.pack("<Q", len(text)) + text.encode()


def _number(key: str, value: int) -> bytes:
    return _text(key) + struct.pack("<II", 4, value)


def _numbers(key: str, values: list[int]) -> bytes:
    return _text(key) + struct.pack(f"<IIQ{len(values)}I", 9, 4, len(values), *values)


def _words(key: str, count: int) -> bytes:
    return _text(key) + struct.pack("<IIQ", 9, 8, count) + _text("w") * count


def gguf_bytes(architecture: str = "llama", heads: list[int] | None = None, words: int = 1500) -> bytes:
    """A header with one Q8_0 tensor of 4 x 64 values, and its data."""
    keys = [
        _text("general.architecture") + struct.pack("<I", 8) + _text(architecture),
        _number(f"{architecture}.context_length", 2048),
        _number(f"{architecture}.block_count", 2),
        _number(f"{architecture}.embedding_length", 64),
        _number(f"{architecture}.attention.head_count", 4),
        _numbers(f"{architecture}.attention.head_count_kv", heads)
        if heads
        else _number(f"{architecture}.attention.head_count_kv", 2),
        _words("tokenizer.ggml.tokens", words),
    ]
    tensor = _text("token_embd.weight") + struct.pack("<IQQIQ", 2, 64, 4, 8, 0)
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, len(keys)) + b"".join(keys) + tensor
    return head + b"\0" * (-len(head) % 32) + b"\1" * (4 * 2 * 34)


@pytest.fixture
def make_gguf(tmp_path: Path) -> MakeGguf:
    """Write one."""

    def make(name: str = "model.gguf", **settings: object) -> Path:
        path = tmp_path / name
        path.write_bytes(gguf_bytes(**settings))  # type: ignore[arg-type]
        return path

    return make


@pytest.fixture
def llama_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the code asks of llama.cpp's folder outside of a conversion: its architectures and its version."""
    folder = tmp_path / "llama.cpp"
    constants = folder / "gguf-py" / "gguf" / "constants.py"
    constants.parent.mkdir(parents=True)
    constants.write_text("MODEL_ARCH_NAMES = {1: 'llama', 2: 'qwen35'}\n")
    server = folder / "bin" / "llama-server"
    server.parent.mkdir()
    server.write_text("#!/bin/sh\necho 'version: 0.5.0-dev (build 0, commit 0c1e57098)' >&2\n")
    server.chmod(0o755)
    monkeypatch.setenv("FINETUNE_LLAMA_CPP", str(folder))
    return folder
