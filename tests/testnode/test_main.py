from pathlib import Path

import pytest

from testnode.__main__ import main, parser


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FINETUNE_CACHE", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("command", ["up", "down", "status", "env"])
def test_commands_without_arguments(command: str) -> None:
    assert parser().parse_args([command]).command == command


def test_env_prints_what_a_shell_needs(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["env"]) == 0
    assert capsys.readouterr().out == f'export KUBECONFIG={cache}/node/kubeconfig\nexport PATH="{cache}/bin:$PATH"\n'


def test_the_status_of_a_node_that_is_down(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status"]) == 1
    assert "the node is down" in capsys.readouterr().out


def test_an_error_is_one_sentence_and_not_a_traceback(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["load", str(cache / "nothing"), "localhost/x:1"]) == 1
    assert capsys.readouterr().err.startswith(f"error: {cache / 'nothing'} does not exist")
