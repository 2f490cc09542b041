#!/usr/bin/env bash
# Makes .venv out of uv.lock: uv of the pinned version, a Python of 3.11 to 3.13 that is here already, nothing else.
# usage: hack/setup.sh [group ...]   groups: dev (always), ml (torch, transformers and what trains: several gigabytes)
set -euo pipefail
cd "$(dirname "$0")/.."

UV_VERSION=0.13.9
CACHE=${FINETUNE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/finetune-operator}
UV=$CACHE/tools/uv-$UV_VERSION/bin/uv

find_python() {
  for name in python3.12 python3.11 python3.13 python3; do
    if command -v "$name" >/dev/null && "$name" -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null; then
      command -v "$name"
      return
    fi
  done
  echo "setup: no Python of 3.11 to 3.13 with venv found; install one (Debian: apt-get install python3 python3-venv)" >&2
  exit 1
}

PYTHON=$(find_python)
if [ ! -x "$UV" ]; then
  echo "setup: installing uv $UV_VERSION"
  "$PYTHON" -m venv "$CACHE/tools/uv-$UV_VERSION"
  "$CACHE/tools/uv-$UV_VERSION/bin/pip" install --quiet --disable-pip-version-check "uv==$UV_VERSION"
fi

# Where the Makefile's PATH finds it: the images' requirements are made with the same uv.
mkdir -p "$CACHE/bin"
ln -sf "$UV" "$CACHE/bin/uv"

groups=(--group dev)
for group in "$@"; do groups+=(--group "$group"); done
start=$SECONDS
echo "setup: installing the packages of uv.lock into .venv (the first time several gigabytes, minutes)"
UV_PYTHON_DOWNLOADS=never UV_LINK_MODE=${UV_LINK_MODE:-hardlink} "$UV" sync --frozen --quiet --python "$PYTHON" --no-default-groups "${groups[@]}"
echo "setup: .venv is ready ($((SECONDS - start)) s)"
