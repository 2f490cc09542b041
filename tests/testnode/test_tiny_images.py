import hashlib
import io
import json
import tarfile
from pathlib import Path

import pytest

from testnode.tiny_images import image_archive

Files = dict[str, bytes]


@pytest.fixture
def files(tmp_path: Path) -> Files:
    busybox = tmp_path / "busybox"
    busybox.write_text("#!/bin/sh\nprintf 'busybox\\nmkdir\\nsh\\n'\n")
    busybox.chmod(0o755)
    with tarfile.open(fileobj=io.BytesIO(image_archive(busybox))) as tar:
        return {member.name: content.read() for member in tar if (content := tar.extractfile(member))}


def _manifests(files: Files) -> dict[str, str]:
    entries = json.loads(files["index.json"])["manifests"]
    return {entry["annotations"]["io.containerd.image.name"]: entry["digest"].partition(":")[2] for entry in entries}


def test_both_images_are_in_the_archive(files: Files) -> None:
    assert set(_manifests(files)) == {"localhost/finetune/busybox:1", "localhost/finetune/pause:1"}


def test_every_blob_has_the_name_of_its_content(files: Files) -> None:
    blobs = {name: data for name, data in files.items() if name.startswith("blobs/")}
    assert blobs
    assert all(name == f"blobs/sha256/{hashlib.sha256(data).hexdigest()}" for name, data in blobs.items())


def test_the_layer_holds_the_program_and_a_link_for_each_name(files: Files) -> None:
    manifest = json.loads(files[f"blobs/sha256/{_manifests(files)['localhost/finetune/busybox:1']}"])
    layer = files[f"blobs/sha256/{manifest['layers'][0]['digest'].partition(':')[2]}"]
    with tarfile.open(fileobj=io.BytesIO(layer)) as tar:
        names = {member.name: member.linkname for member in tar}
    assert names == {"bin": "", "tmp": "", "bin/busybox": "", "bin/mkdir": "busybox", "bin/sh": "busybox"}
