from pathlib import Path

import pytest

from testnode import toolchain
from testnode.console import NodeError


def test_the_version_of_kubernetes_comes_from_the_module() -> None:
    assert toolchain.linker_flags("require (\n\tk8s.io/kubernetes v1.34.4\n)") == (
        "-s -w -X k8s.io/component-base/version.gitVersion=v1.34.4"
        " -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=34"
        " -X helm.sh/helm/v3/pkg/chartutil.k8sVersionMajor=1 -X helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor=34"
    )


def test_the_module_of_the_repository_has_a_version() -> None:
    assert "gitVersion=v1." in toolchain.linker_flags((toolchain.GO_MODULE / "go.mod").read_text())


def test_a_module_without_kubernetes_is_an_error() -> None:
    with pytest.raises(NodeError, match="does not require k8s"):
        toolchain.linker_flags("module x")


@pytest.mark.parametrize(
    ("change", "want_builds"),
    [
        pytest.param({}, 1, id="nothing changed"),
        pytest.param({"main.go": "package other"}, 2, id="a source changed"),
        pytest.param({"new.go": "package main"}, 2, id="a source was added"),
    ],
)
def test_a_build_is_repeated_when_its_sources_change(
    change: dict[str, str],
    want_builds: int,
    tmp_path: Path,
) -> None:
    (tmp_path / "main.go").write_text("package main")
    before = toolchain.build_key("go1.26", tmp_path)
    for name, text in change.items():
        (tmp_path / name).write_text(text)
    assert len({before, toolchain.build_key("go1.26", tmp_path)}) == want_builds


def test_a_build_is_repeated_with_another_compiler(tmp_path: Path) -> None:
    assert toolchain.build_key("go1.26", tmp_path) != toolchain.build_key("go1.27", tmp_path)


def test_missing_programs_are_named_by_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda program: None if program in {"etcd", "ip"} else f"/bin/{program}")
    assert toolchain.missing_packages() == ["etcd-server", "iproute2"]
