from __future__ import annotations

import pytest
from finetune_operator.core.redact import redact

SECRETS = [
    ("a token of the hub", "using hf_abcdEFGH12345678 now", "using *** now"),
    ("an authorization header", "Authorization: Bearer abc.def-123", "Authorization: Bearer ***"),
    ("lower case", "authorization: bearer abcdef123", "authorization: bearer ***"),
    ("basic authorization", "sent Basic dXNlcjpwYXNz", "sent Basic ***"),
    ("key=value", "api_key=verysecret&x=1", "api_key=***&x=1"),
    ("an environment variable", "HF_TOKEN=abc123", "HF_TOKEN=***"),
    ("JSON", '{"password": "hunter2", "user": "me"}', '{"password": "***", "user": "me"}'),
    ("Python", "{'secret': 'hunter2'}", "{'secret': '***'}"),
    ("an argument", "run --api-key hunter2 --port 1", "run --api-key *** --port 1"),
    ("an address", "GET https://me:hunter2@host/x", "GET https://***@host/x"),
    ("a signed address", "https://h/x?X-Amz-Signature=abc&y=1", "https://h/x?X-Amz-Signature=***&y=1"),
    ("a web token", "got eyJhbGciOi.eyJzdWIi.c2ln done", "got *** done"),
    ("a key of a cloud", "AKIAABCDEFGHIJKLMNOP", "***"),
]
HARMLESS = [
    "loss 0.571 at step 64/102",
    "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB",
    'File "/opt/finetune/lib/python3.12/site-packages/trl/trainer.py", line 12, in step',
    "the tokenizer has 49152 tokens",
    "https://huggingface.co/org/model/resolve/main/config.json",
]


@pytest.mark.parametrize(("text", "wanted"), [case[1:] for case in SECRETS], ids=[case[0] for case in SECRETS])
def test_secrets_are_hidden(text: str, wanted: str) -> None:
    assert redact(text) == wanted


@pytest.mark.parametrize("text", HARMLESS)
def test_the_rest_stays(text: str) -> None:
    assert redact(text) == text
