from pathlib import Path

import pytest

from testnode.settings import LISTENERS, Settings, cache_folder


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        pytest.param({"HOME": "/h"}, "/h/.cache/finetune-operator", id="the usual place"),
        pytest.param({"HOME": "/h", "XDG_CACHE_HOME": "/x"}, "/x/finetune-operator", id="the desktop's cache folder"),
        pytest.param({"XDG_CACHE_HOME": "/x", "FINETUNE_CACHE": "/f"}, "/f", id="the user's own choice comes first"),
        pytest.param({"HOME": "/h", "FINETUNE_CACHE": ""}, "/h/.cache/finetune-operator", id="empty is not set"),
    ],
)
def test_cache_folder(environment: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "XDG_CACHE_HOME", "FINETUNE_CACHE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert cache_folder() == Path(expected)


def test_what_down_keeps_is_not_inside_what_it_removes() -> None:
    settings = Settings(Path("/cache"))
    assert not any(kept.is_relative_to(settings.node) for kept in (settings.bin, settings.store))


def test_the_socket_path_is_short_enough_for_the_kernel() -> None:
    assert len(str(Settings(Path("/cache")).socket) + ".ttrpc") < 107


def test_nothing_listens_to_the_outside() -> None:
    assert {address for address, _ in LISTENERS} == {"127.0.0.1", "10.42.0.1"}
