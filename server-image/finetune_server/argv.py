"""The command line of llama-server. Pure; the image build checks every flag against the binary (check_flags.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from finetune_server.contract import ServeSpec

CTX_CHECKPOINTS = 4
"""Saved states per slot, of models that cannot go back in their state; the build's default is 32."""

_OWNED = {
    "the version": "-m --model -mu --model-url -hf -hfr --hf-repo -hff --hf-file --models-dir --models-preset",
    "the service's name": "-a --alias",
    "the Service and the probes": "--host --port --reuse-port --api-prefix --ssl-key-file --ssl-cert-file",
    "auth": "--api-key --api-key-file",
    "contextLength": "-c --ctx-size",
    "parallel": "-np --parallel -kvu --kv-unified",
    "kvCacheType": "-ctk --cache-type-k -ctv --cache-type-v",
    "reasoning": "-rea --reasoning",
    "the memory plan": "-cram --cache-ram -ctxcp --ctx-checkpoints --swa-checkpoints -lm --load-mode -fit --fit",
    "drain and metrics": "--metrics --no-slots",
    "safety, since requests could run programs or read files": (
        "--tools --tools-runtime -ag --agent --mcp-servers-config --mcp-servers-json --ui-mcp-proxy --webui-mcp-proxy "
        "--media-path --path --slot-save-path --log-prompts-dir"
    ),
}
"""Who decides → the flags."""
_OWNER = {flag: owner for owner, flags in _OWNED.items() for flag in flags.split()}


def server_argv(spec: ServeSpec) -> list[str]:
    """The arguments for llama-server; the user's own come last."""
    return [*_own(spec), *spec.extra_args]


def forbidden_args(extra: Iterable[str]) -> dict[str, str]:
    """Extra arguments that would take something out of our hands → whose they are."""
    names = {arg: _canonical(arg) for arg in extra}
    return {arg: _OWNER[name] for arg, name in names.items() if name in _OWNER}


def _canonical(arg: str) -> str:
    """As llama-server reads it: ``--api_key`` is ``--api-key``."""
    name = arg.split("=", 1)[0]
    return name.replace("_", "-") if name.startswith("--") else name


def _own(spec: ServeSpec) -> Iterator[str]:
    yield from ("--model", spec.model_path, "--alias", spec.alias)
    yield from ("--host", spec.host, "--port", str(spec.port))
    yield from ("--ctx-size", str(spec.total_context), "--parallel", str(spec.parallel))
    yield from ("--cache-type-k", spec.kv_cache_type, "--cache-type-v", spec.kv_cache_type)
    yield from ("--cache-ram", str(spec.prompt_cache_mib), "--ctx-checkpoints", str(CTX_CHECKPOINTS))
    yield from ("--reasoning", spec.reasoning, "--metrics", "--no-ui", "--offline")
    yield from _hardware(spec)
    if spec.api_key_file is not None:
        yield from ("--api-key-file", spec.api_key_file)


def _hardware(spec: ServeSpec) -> Iterator[str]:
    """Nothing here is left to llama.cpp's own guess: what was planned is what runs."""
    yield from ("--fit", "off")
    if spec.acceleration == "cuda":
        yield from ("--n-gpu-layers", "all", "--flash-attn", "on")
    else:
        yield from ("--n-gpu-layers", "0", "--flash-attn", "auto")
    if spec.unified_memory:
        yield from ("--load-mode", "none")
    if spec.threads is not None:
        yield from ("--threads", str(spec.threads))


EMITTED_FLAGS = frozenset(
    [
        "--model",
        "--alias",
        "--host",
        "--port",
        "--ctx-size",
        "--parallel",
        "--cache-type-k",
        "--cache-type-v",
        "--cache-ram",
        "--ctx-checkpoints",
        "--reasoning",
        "--metrics",
        "--no-ui",
        "--offline",
        "--fit",
        "--n-gpu-layers",
        "--flash-attn",
        "--load-mode",
        "--threads",
        "--api-key-file",
    ]
)
"""Every flag that server_argv can emit."""
