"""Which code computes a job: the modules it can run, found in their sources, and one hash of them.

From a module we follow every import of ours, those inside functions too, and every text that names a module of ours or
begins the names of a room's (``f"rocerf.data.{name}"``), because modules are also imported by name. Imports for type
checkers are not followed: they never run. Modules that only show results (:data:`SHOWING`) are left out, so that
another wording of the report throws no finished work away. Where we cannot know, more is taken rather than less: data
files beside the modules count too, and so do the packages that are imported on the way to a module.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import rocerf

#: Modules that show what was computed and compute nothing; what lies below them is left out too.
SHOWING = (
    "rocerf.cli",
    "rocerf.html",
    "rocerf.letters",
    "rocerf.evaluation.demo",
    "rocerf.evaluation.plots",
    "rocerf.evaluation.report",
    "rocerf.reproduction.report",
    "rocerf.reproduction.figures",
    "rocerf.reproduction.words",
)

#: Packages whose own imports are not followed, though their files count: they gather modules for others to import.
GATHERING = ("rocerf", "rocerf.reproduction")

#: Kinds of data files that count where they lie in a folder of the modules or below it.
DATA_FILES = ("*.yaml", "*.gz", "*.npz", "*.csv", "*.json")

#: Folders whose data files are sentences and the paper's own numbers: shown, never computed with.
SHOWN = ("words", "reproduction")

ROOT = Path(rocerf.__file__).parent


@cache
def code_hash(module: str = "rocerf.reproduction.experiment", root: Path = ROOT) -> str:
    """One SHA-256 of the modules that ``module`` can run and of their data files; ``root`` is the package's folder.

    Line ends are taken as one kind: a checkout elsewhere may have changed them.
    """
    digest = hashlib.sha256()
    for path in files_run(module, root):
        content = path.read_bytes()
        if path.suffix in (".py", ".yaml"):
            content = content.replace(b"\r\n", b"\n")
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + hashlib.sha256(content).digest())
    return digest.hexdigest()


def files_run(module: str, root: Path = ROOT) -> list[Path]:
    """The source files that ``module`` can run, and data files beside them, in order."""
    sources = [_source(name, root) for name in modules_run(module, root)]
    found = {path for path in sources if path is not None}
    folders = {path.parent for path in found} - {root, *(root / name for name in SHOWN)}
    data = {path for folder in folders for kind in DATA_FILES for path in folder.rglob(kind)}
    return sorted({*found, *(path for path in data if path.is_file())})


def modules_run(module: str, root: Path = ROOT) -> set[str]:
    """Names of the modules that ``module`` can run, itself and the packages they are in included."""
    found: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        path = None if name in found or _only_shows(name) else _source(name, root)
        if path is not None:
            found.add(name)
            waiting += _packages_of(name)
            if name not in GATHERING:
                waiting += _named_in(ast.parse(path.read_bytes()), name, path.name == "__init__.py", root)
    return found


def _only_shows(name: str) -> bool:
    return any(name == shown or name.startswith(f"{shown}.") for shown in SHOWING)


def _source(name: str, root: Path) -> Path | None:
    """The file of a module of ours; None for other names."""
    first, *rest = name.split(".")
    if first != "rocerf" or not all(part.isidentifier() for part in rest):
        return None
    place = root.joinpath(*rest)
    candidates = [place / "__init__.py", *([place.with_name(f"{place.name}.py")] if rest else [])]
    return next((path for path in candidates if path.is_file()), None)


def _packages_of(name: str) -> Iterator[str]:
    """The packages that are imported on the way to a module."""
    parts = name.split(".")
    return (".".join(parts[:count]) for count in range(1, len(parts)))


def _named_in(tree: ast.AST, name: str, is_package: bool, root: Path) -> Iterator[str]:
    """Modules of ours that a source names: imported at the top or in a function, or as a text."""
    package = name if is_package else name.rpartition(".")[0]
    for node in _that_run(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = _origin(node, package)
            # A name may be a module, or something that the package itself has: both are looked at.
            yield from (origin, *(f"{origin}.{alias.name}" for alias in node.names))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("rocerf."):
            yield node.value
            if node.value.endswith("."):  # the beginning of names that are made when it runs
                folder = root.joinpath(*node.value.split(".")[1:-1])
                yield from (f"{node.value}{path.stem}" for path in sorted(folder.glob("*.py")))


def _origin(node: ast.ImportFrom, package: str) -> str:
    """The module that is imported from, where it may be named by dots."""
    if not node.level:
        return node.module or ""
    parts = package.split(".")
    return ".".join([*parts[: len(parts) - node.level + 1], *([node.module] if node.module else [])])


def _that_run(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those under ``if TYPE_CHECKING``."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            waiting += node.orelse
        else:
            waiting += ast.iter_child_nodes(node)
