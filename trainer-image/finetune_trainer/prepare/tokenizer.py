"""The base's tokenizer: its files, how it renders a conversation, and what ends a turn."""

from __future__ import annotations

import fnmatch
import json
import shutil
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from jinja2 import TemplateError

from finetune_trainer.data.faults import Fault
from finetune_trainer.stage import StageError

if TYPE_CHECKING:
    from pathlib import Path

    from transformers import PreTrainedTokenizerBase

    from finetune_trainer.contract.runspec import ModelSpec
    from finetune_trainer.data import Conversation

FILES = (
    "tokenizer*.json", "special_tokens_map.json", "added_tokens.json", "vocab.*", "merges.txt", "*.model", "*.tiktoken",
    "chat_template*", "config.json", "generation_config.json", "*.py",
)  # fmt: skip
"""What a tokenizer is loaded from; config.json, because it may name the class."""
Encoded = tuple[list[int], list[tuple[int, int]]]


def copy_files(base: Path, target: Path, template: str | None) -> None:
    """Copy the base's files byte for byte; only a chat template of the user's own replaces the base's."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for path in base.iterdir():
        if path.is_file() and any(fnmatch.fnmatch(path.name, pattern) for pattern in FILES):
            shutil.copyfile(path, target / path.name)
    if template is not None:
        _replace_template(target, template)


def _replace_template(target: Path, template: str) -> None:
    """Transformers prefers the file of its own, llama.cpp's converter the entry in tokenizer_config.json: set both."""
    (target / "chat_template.json").unlink(missing_ok=True)
    (target / "chat_template.jinja").write_text(template, encoding="utf-8")
    path = target / "tokenizer_config.json"
    config = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    path.write_text(json.dumps({**config, "chat_template": template}, ensure_ascii=False, indent=2), encoding="utf-8")


@dataclass(frozen=True)
class Tokenizer:
    """A tokenizer with offsets."""

    inner: PreTrainedTokenizerBase
    folder: Path

    @classmethod
    def load(cls, folder: Path, model: ModelSpec) -> Tokenizer:
        """Load it, offline, from the folder that train will load it from."""
        from transformers import AutoTokenizer  # noqa: PLC0415 - takes seconds: bad rows must be told before

        try:
            inner = AutoTokenizer.from_pretrained(str(folder), trust_remote_code=model.trust_remote_code)
        except (OSError, ValueError, KeyError, ImportError) as error:
            raise StageError(
                "ModelUnsupported", f"The tokenizer of {model.source} cannot be loaded: {_first_line(error)}"
            ) from error
        if not inner.is_fast:
            raise StageError("ModelUnsupported", f"The tokenizer of {model.source} has no fast form (tokenizer.json).")
        return cls(inner, folder)

    def render(self, messages: list[dict[str, Any]], row: Conversation, *, ask: bool) -> str:
        """The text of a conversation; with ``ask``, up to the place where the model is to answer."""
        tools = list(row.tools) or None
        try:
            return str(self.inner.apply_chat_template(messages, tools=tools, tokenize=False, add_generation_prompt=ask))
        except (TemplateError, TypeError, KeyError, IndexError) as error:
            raise Fault(
                f"the chat template refuses this conversation: {_first_line(error)}", hint=_TEMPLATE_HINT, line=row.line
            ) from error

    def encode(self, text: str) -> Encoded:
        """Ids, and where in the text each of them stands."""
        found = self.inner(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        return found["input_ids"], found["offset_mapping"]

    def encode_plain(self, text: str) -> list[int]:
        """Ids of plain text, with what the tokenizer itself puts around it, and an end."""
        ids: list[int] = self.inner(text, verbose=False)["input_ids"]
        end = self.inner.eos_token_id
        return ids if end is None or ids[-1:] == [end] else [*ids, end]

    @cached_property
    def special(self) -> frozenset[int]:
        """Ids that no ordinary text becomes."""
        added = {index for index, token in self.inner.added_tokens_decoder.items() if token.special}
        return frozenset(added | set(self.inner.all_special_ids))

    @cached_property
    def stops(self) -> frozenset[int]:
        """Ids at which generation stops."""
        named = {self.inner.eos_token_id}
        for name in ("generation_config.json", "config.json"):
            path = self.folder / name
            found = json.loads(path.read_text(encoding="utf-8")).get("eos_token_id") if path.exists() else None
            if found is not None:
                named |= set(found) if isinstance(found, list) else {found}
                break
        return frozenset(named - {None})

    def name(self, index: int) -> str:
        """A token as text."""
        return str(self.inner.convert_ids_to_tokens(index))


_TEMPLATE_HINT = "Change the order of the turns, or set model.chatTemplate."


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
