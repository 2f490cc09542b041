"""Takes secrets out of log lines before they reach a status, an Event or our own log."""

from __future__ import annotations

import re

HIDDEN = "***"
_NAMES = r"[\w.-]*(?:api[_-]?key|token|secret|password|passwd|pwd|credential|authorization)[\w.-]*"
_PATTERNS = (
    # Tokens that tell by themselves what they are.
    (re.compile(r"\b(?:hf|ghp|gho|ghs|sk|glpat|xox[abp])[_-][A-Za-z0-9_-]{8,}"), HIDDEN),
    (re.compile(r"\bgithub_pat_\w+"), HIDDEN),
    (re.compile(r"\bAKIA[0-9A-Z]{16}\b"), HIDDEN),
    (re.compile(r"\beyJ[\w-]+\.[\w-]+\.[\w-]*"), HIDDEN),
    # Authorization: Bearer …
    (re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{6,}"), rf"\1 {HIDDEN}"),
    # https://user:password@host
    (re.compile(r"(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"), HIDDEN),
    # X-Amz-Signature=…, Signature=… in signed addresses
    (re.compile(r"(?i)([?&][\w-]*(?:signature|credential|security-token|sig)=)[^&\s\"']+"), rf"\1{HIDDEN}"),
    # password = "…", "api_key": "…", --token …
    (re.compile(rf"(?i)({_NAMES}[\"']?\s*[=:]\s*[\"']?)(?!(?:bearer|basic)\b)[^\s\"',;&}}]+"), rf"\1{HIDDEN}"),
    (re.compile(rf"(?i)(--{_NAMES})(\s+)(\S+)"), rf"\1\2{HIDDEN}"),
)


def redact(text: str) -> str:
    """The text without anything that looks like a secret."""
    for pattern, replacement in _PATTERNS:
        text = pattern.sub(replacement, text)
    return text
