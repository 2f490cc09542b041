"""Make an installed torch small: only for the CPU image of the tests, which stands for NVIDIA's.

Run as a program, ``python slim.py <site-packages>``, where binutils and gcc are. PyPI's torch brings four gigabytes of
CUDA libraries. Without a GPU none of their code ever runs, but the loader wants their symbols: each library is replaced
by a stub with the same symbols and versions, in which every function ends the process at once.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

LARGE = 20_000_000
STRONG = "TBDR"
"""What nm calls functions and data that exist once."""
TYPE = "_ZTI"
"""Symbols of C++'s run-time type descriptions begin so. Python bindings look at them."""
UNUSED = ("triton", "triton-*", "nvidia/**/include", "torch/include", "torch/test", "torch/share", "bin", "share")
"""Triton needs a GPU; headers and test programs nobody asks for."""
EMPTY = """
.weak _ZTVN10__cxxabiv117__class_type_infoE
.bss
.balign 64
nothing: .zero 512
.data
.balign 64
type: .quad _ZTVN10__cxxabiv117__class_type_infoE+16, 1f
1: .asciz "5empty"
.balign 64
.quad 0, type
class: .rept 64
.quad method
.endr
.text
method: ret
"""
"""What the stubs of C++ hand out: an empty object, and a class whose methods do nothing."""


class Symbol(NamedTuple):
    """A symbol that a library offers, as nm shows it."""

    kind: str
    name: str
    version: str


def main(site: Path) -> None:
    """Slim the packages in ``site``."""
    for pattern in UNUSED:
        for path in list(site.glob(pattern)):
            shutil.rmtree(path)
    libraries = [*site.glob("nvidia/**/*.so*"), *site.glob("torch/lib/libtorch_cuda*.so")]
    for library in libraries:
        if not library.is_symlink() and library.stat().st_size >= LARGE:
            replace(library)


def replace(library: Path) -> None:
    """Put a stub in the library's place."""
    symbols = exported(library)
    with tempfile.TemporaryDirectory() as folder:
        source, versions, stub = (Path(folder) / name for name in ("stub.s", "versions", "stub.so"))
        source.write_text(assembler(symbols))
        versions.write_text(version_script(symbols))
        script = [f"-Wl,--version-script={versions}"] if versions.stat().st_size else []
        linker = [f"-Wl,-soname,{soname(library)}", "-Wl,-rpath,$ORIGIN,--disable-new-dtags,--no-as-needed", *script]
        subprocess.run(
            ["gcc", "-shared", "-nostdlib", "-s", "-o", stub, *linker, source, *neighbours(library)], check=True
        )
        library.unlink()  # never written in place: it may be a hard link into a package cache
        shutil.copyfile(stub, library)


def exported(library: Path) -> list[Symbol]:
    """What only this library has. C++'s weak functions are left out: whoever uses one brings it along."""
    elsewhere = {symbol.name for other in neighbours(library) for symbol in defined(other)}
    return [symbol for symbol in defined(library) if symbol.kind in STRONG or needed(symbol, elsewhere)]


def needed(symbol: Symbol, elsewhere: set[str]) -> bool:
    """Must a weak symbol be there?"""
    kinds = "VW" if not symbol.name.startswith("_Z") else "V"
    return symbol.kind in kinds and symbol.name not in elsewhere


def defined(library: Path) -> list[Symbol]:
    """Everything that a library offers to others."""
    listing = output("nm", "-D", "--defined-only", "--with-symbol-versions", str(library))
    fields = [line.split()[-2:] for line in listing.splitlines()]
    return [Symbol(kind, *symbol.replace("@@", "@").partition("@")[::2]) for kind, symbol in fields]


def neighbours(library: Path) -> list[Path]:
    """The libraries beside this one which it loads: they come by it, so its stub has to load them too."""
    loaded = re.findall(r"NEEDED\s+(\S+)", output("objdump", "-p", str(library)))
    return [library.parent / name for name in loaded if (library.parent / name).exists()]


def assembler(symbols: list[Symbol]) -> str:
    """A program with each symbol once."""
    code = {symbol.name: f' .text\n"{symbol.name}": {code_of(symbol)}\n' for symbol in symbols if symbol.kind in "TW"}
    data = {symbol.name: f' .data\n .balign 8\n"{symbol.name}": {content(symbol.name)}\n' for symbol in symbols}
    return EMPTY + "".join(f' .globl "{name}"\n{body}' for name, body in (data | code).items())


def code_of(symbol: Symbol) -> str:
    """C++ of torch registers itself while it is imported, and gets an empty object; all else ends the process."""
    if not symbol.name.startswith("_Z"):
        return "ud2"
    table = "lea class(%rip), %rax; mov %rax, (%rdi); " if re.search("C[12]E", symbol.name) else ""
    return f"{table}lea nothing(%rip), %rax; ret"


def content(name: str) -> str:
    """A C++ type's description points to the description's own class and to a name; everything else is zeros."""
    if name.startswith(TYPE):
        return f'.quad _ZTVN10__cxxabiv117__class_type_infoE+16, 1f\n1: .asciz "{name.removeprefix(TYPE)}"'
    return ".zero 512"


def version_script(symbols: list[Symbol]) -> str:
    """The linker's list of which symbol has which version."""
    versions = defaultdict(set)
    for symbol in symbols:
        if symbol.version:
            versions[symbol.version].add(f'"{symbol.name}";')
    return "".join(f"{version} {{ global: {' '.join(sorted(names))} }};\n" for version, names in versions.items())


def soname(library: Path) -> str:
    """The name under which others ask for the library."""
    found = re.search(r"SONAME\s+(\S+)", output("objdump", "-p", str(library)))
    return found.group(1) if found else library.name


def output(*program: str) -> str:
    """What a program prints."""
    return subprocess.run(program, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    main(Path(sys.argv[1]))
