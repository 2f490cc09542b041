"""What a GGUF file says about itself: its metadata and where its tensors lie. Reads the header alone.

The format, little-endian: ``GGUF``, version, number of tensors, number of keys; the keys with their values; the
tensors' names, dimensions, types and offsets; then, aligned, the tensors.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

from finetune_server.contract import GgufFacts

if TYPE_CHECKING:
    from pathlib import Path

MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_ALIGNMENT = 32
_STRING, _ARRAY = 8, 9
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_KEPT_ITEMS = 1024
"""Longer arrays (vocabularies) are counted, not kept."""
_MOST = 2**24
"""More keys, tensors, items or bytes of text than this are a damaged header."""

_TYPES = {
    0: ("F32", 1, 4), 1: ("F16", 1, 2), 30: ("BF16", 1, 2),
    2: ("Q4_0", 32, 18), 3: ("Q4_1", 32, 20), 6: ("Q5_0", 32, 22), 7: ("Q5_1", 32, 24), 8: ("Q8_0", 32, 34),
    10: ("Q2_K", 256, 84), 11: ("Q3_K", 256, 110), 12: ("Q4_K", 256, 144),
    13: ("Q5_K", 256, 176), 14: ("Q6_K", 256, 210),
    24: ("I8", 1, 1), 25: ("I16", 1, 2), 26: ("I32", 1, 4),
}  # fmt: skip
"""Number → name, values in a block, bytes of a block. What our quantizations are made of."""


class NotGguf(ValueError):  # noqa: N818 - reads better where it is caught
    """The file is not a whole GGUF file; the message says why."""


@dataclass(frozen=True)
class GgufTensor:
    """One tensor; ``offset`` counts from the start of the file."""

    name: str
    type: str
    values: int
    offset: int
    bytes: int


@dataclass(frozen=True)
class Gguf:
    """The header of a file."""

    size: int
    metadata: dict[str, Any]
    tensors: tuple[GgufTensor, ...]

    @property
    def bits_per_weight(self) -> float:
        """Over all tensors."""
        return 8 * sum(tensor.bytes for tensor in self.tensors) / max(1, sum(tensor.values for tensor in self.tensors))

    def facts(self) -> GgufFacts:
        """What planning needs to know."""
        heads = self._own("attention.head_count") or 1
        hidden = self._own("embedding_length") or 0
        key_value_heads = self._own("attention.head_count_kv") or heads
        tokens = self.metadata.get("tokenizer.ggml.tokens", 0)
        return GgufFacts(
            bytes=self.size,
            architecture=self.metadata.get("general.architecture", ""),
            context_length=self._own("context_length") or 0,
            layers=self._own("block_count") or 0,
            key_value_heads=key_value_heads,
            head_dim=self._own("attention.key_length") or hidden // heads,
            hidden_size=hidden,
            vocab_size=len(tokens) if isinstance(tokens, list) else tokens,
        )

    def _own(self, key: str) -> int | None:
        """A number of this architecture; the largest where every layer has its own."""
        value = self.metadata.get(f"{self.metadata.get('general.architecture')}.{key}")
        return max(value, default=None) if isinstance(value, list) else value


def read_gguf(path: Path) -> Gguf:
    """Read the header and see that every tensor lies inside of the file."""
    size = path.stat().st_size
    with path.open("rb") as file:
        try:
            metadata, tensors = _header(file)
        except (struct.error, UnicodeDecodeError, OverflowError) as error:
            raise NotGguf(f"{path} is cut or damaged in its header ({size} bytes).") from error
        except NotGguf as error:
            raise NotGguf(f"{path}: {error}") from error
    end = max((tensor.offset + tensor.bytes for tensor in tensors), default=0)
    if end > size:
        raise NotGguf(f"{path} is cut: it has {size} bytes, and its tensors end at {end}.")
    return Gguf(size, metadata, tensors)


def _header(file: BinaryIO) -> tuple[dict[str, Any], tuple[GgufTensor, ...]]:
    magic = file.read(4)
    if magic != MAGIC:
        raise NotGguf(f"not a GGUF file: it begins with {magic!r}.")
    version = _number(file, "I")
    if version not in _VERSIONS:
        raise NotGguf(f"GGUF version {version} is not known.")
    tensor_count, key_count = _count(file), _count(file)
    metadata = {_text(file): _value(file, _number(file, "I")) for _ in range(key_count)}
    entries = [_entry(file) for _ in range(tensor_count)]
    alignment = metadata.get("general.alignment", _ALIGNMENT)
    start = math.ceil(file.tell() / alignment) * alignment
    return metadata, tuple(_tensor(*entry, start=start) for entry in entries)


def _entry(file: BinaryIO) -> tuple[str, list[int], int, int]:
    name = _text(file)
    dimensions = [_number(file, "Q") for _ in range(_number(file, "I"))]
    return name, dimensions, _number(file, "I"), _number(file, "Q")


def _tensor(name: str, dimensions: list[int], kind: int, offset: int, *, start: int) -> GgufTensor:
    if kind not in _TYPES:
        raise NotGguf(f"tensor {name} has the type {kind}, which is not one of ours.")
    type_name, block, block_bytes = _TYPES[kind]
    values = math.prod(dimensions)
    return GgufTensor(name, type_name, values, start + offset, values // block * block_bytes)


def _value(file: BinaryIO, kind: int) -> Any:
    """A value; a long array becomes the number of its items."""
    if kind == _STRING:
        return _text(file)
    if kind != _ARRAY:
        return _number(file, _scalar(kind))
    item_kind, count = _number(file, "I"), _count(file)
    items = [_value(file, item_kind) for _ in range(count)]
    return items if count <= _KEPT_ITEMS else count


def _scalar(kind: int) -> str:
    if kind not in _SCALARS:
        raise NotGguf(f"a value has the unknown type {kind}: the header is damaged.")
    return _SCALARS[kind]


def _text(file: BinaryIO) -> str:
    return file.read(_count(file)).decode()


def _count(file: BinaryIO) -> int:
    count: int = _number(file, "Q")
    if count > _MOST:
        raise NotGguf(f"a count of {count} in the header is impossible: the header is damaged.")
    return count


def _number(file: BinaryIO, code: str) -> Any:
    return struct.unpack("<" + code, file.read(struct.calcsize("<" + code)))[0]
