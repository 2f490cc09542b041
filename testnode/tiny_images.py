"""Two images of one program: busybox, for pods that make folders and for tests, and pause, which holds a pod's network.

They are written by hand as one OCI archive, because no registry can be reached and both together are one file and
some links.
"""

import hashlib
import io
import json
import platform
import shutil
import subprocess
import tarfile
from pathlib import Path

from testnode.console import NodeError
from testnode.containerd import ctr
from testnode.settings import BUSYBOX_IMAGE, PAUSE_IMAGE, Settings
from testnode.shell import run

GO_NAMES = {"x86_64": "amd64", "aarch64": "arm64"}
"""The machine's name to the one that images use."""
FOREVER = ["/bin/busybox", "sleep", "inf"]
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar"


def load_tiny_images(settings: Settings) -> None:
    """Give both images to containerd."""
    archive = image_archive(Path(shutil.which("busybox") or "/bin/busybox"))
    done = subprocess.run(ctr(settings, "images", "import", "-"), input=archive, capture_output=True, check=False)
    if done.returncode != 0:
        raise NodeError(f"containerd refused the images {BUSYBOX_IMAGE} and {PAUSE_IMAGE}: {done.stderr.decode()}")


def image_archive(busybox: Path) -> bytes:
    """An OCI archive with the two images."""
    blobs: dict[str, bytes] = {}
    layer = _layer(busybox)
    manifests = [
        _image(blobs, layer, BUSYBOX_IMAGE, {"Cmd": ["/bin/sh"]}),
        _image(blobs, layer, PAUSE_IMAGE, {"Entrypoint": FOREVER}),
    ]
    index = {"schemaVersion": 2, "manifests": manifests}
    files = {"oci-layout": b'{"imageLayoutVersion": "1.0.0"}', "index.json": json.dumps(index).encode()}
    files |= {f"blobs/sha256/{digest}": blob for digest, blob in blobs.items()}
    return _tar([(_file(name, 0o644), data) for name, data in files.items()])


def _layer(busybox: Path) -> bytes:
    """/bin/busybox, a link for each of its programs, and a /tmp."""
    names = run([str(busybox), "--list"]).split()
    folders = [(_folder("bin", 0o755), b""), (_folder("tmp", 0o1777), b"")]
    links = [(_link(f"bin/{name}"), b"") for name in sorted(set(names) - {"busybox"})]
    return _tar([*folders, (_file("bin/busybox", 0o755), busybox.read_bytes()), *links])


def _image(blobs: dict[str, bytes], layer: bytes, name: str, run_config: dict[str, object]) -> dict[str, object]:
    config = {
        "architecture": GO_NAMES[platform.machine()],
        "os": "linux",
        "config": {"Env": ["PATH=/bin"], **run_config},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": _blob(blobs, json.dumps(config).encode(), CONFIG),
        "layers": [_blob(blobs, layer, LAYER)],
    }
    annotations = {"io.containerd.image.name": name}
    return {**_blob(blobs, json.dumps(manifest).encode(), MANIFEST), "annotations": annotations}


def _blob(blobs: dict[str, bytes], data: bytes, media_type: str) -> dict[str, object]:
    digest = hashlib.sha256(data).hexdigest()
    blobs[digest] = data
    return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(data)}


def _file(name: str, mode: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.mode = mode
    return info


def _folder(name: str, mode: int) -> tarfile.TarInfo:
    info = _file(name, mode)
    info.type = tarfile.DIRTYPE
    return info


def _link(name: str) -> tarfile.TarInfo:
    info = _file(name, 0o777)
    info.type, info.linkname = tarfile.SYMTYPE, "busybox"
    return info


def _tar(members: list[tuple[tarfile.TarInfo, bytes]]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for info, data in members:
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()
