"""What ``import rocerf`` offers, what it costs, and the tree of errors."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

import rocerf
from rocerf import errors

HEAVY = ("numpy", "pandas", "scipy", "sklearn", "skops", "torch", "matplotlib", "typer", "rich")

EXPLAIN_GERMAN = """
import sys
{before}
import rocerf
data = rocerf.load_dataset("german")
model = rocerf.LogisticModel.fit(data.train, C=1.0)
denied = data.test.frame()[model.predict(data.test.frame()) == 0]
for options in ({{}}, {{"cost": "l1", "schema": data.schema}}, {{"solver": "penalty"}}):
    recourses = rocerf.Rocerf(model, k=4, promise="first_order", **options).explain(denied[:3] if options else denied)
    assert recourses.answered.any(), options
    assert (model.score(recourses.points[recourses.answered]) >= 0).all(), options
recourses.to_json(), recourses.to_frame()
print(len(denied), "torch" in sys.modules and sys.modules["torch"] is not None)
"""


def python(code: str) -> str:
    """Standard output of the code in a fresh interpreter, which must end well and say nothing else."""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


def names_for_type_checkers() -> dict[str, str]:
    """Name -> module of the imports under ``if TYPE_CHECKING`` in ``rocerf/__init__.py``."""
    tree = ast.parse(Path(inspect.getfile(rocerf)).read_text("utf-8"))
    block = next(n for n in tree.body if isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING")
    found = {}
    for statement in block.body:
        assert isinstance(statement, ast.ImportFrom)
        for alias in statement.names:
            assert alias.asname == alias.name, "only 'import X as X' is a re-export for type checkers"
            found[alias.name] = statement.module or ""
    return found


def test_all_the_lazy_table_and_the_names_for_type_checkers_agree() -> None:
    lazy = {**rocerf._HOMES, **dict.fromkeys(rocerf._ROOMS, "rocerf")}
    assert names_for_type_checkers() == lazy
    assert sorted(rocerf.__all__) == sorted(["__version__", *lazy])
    assert len(set(rocerf.__all__)) == len(rocerf.__all__)
    assert dir(rocerf) == sorted(rocerf.__all__)


@pytest.mark.parametrize("name", sorted(set(rocerf.__all__) - {"__version__"}))
def test_every_public_name_is_there_with_a_docstring(name: str) -> None:
    thing = getattr(rocerf, name)
    assert (thing.__doc__ or "").strip()
    if inspect.ismodule(thing):
        assert thing.__all__
        for member in thing.__all__:
            assert (getattr(thing, member).__doc__ or "").strip(), member
    else:
        assert thing is getattr(importlib.import_module(rocerf._HOMES[name]), name)
        assert thing.__module__ == rocerf._HOMES[name]


@pytest.mark.parametrize("name", sorted(set(rocerf._HOMES) - {"RocerfError"}))
def test_public_methods_have_docstrings(name: str) -> None:
    thing = getattr(rocerf, name)
    methods = inspect.getmembers(thing, lambda m: inspect.isroutine(m) or isinstance(m, property))
    own = [(n, m) for n, m in methods if not n.startswith("_") and n in vars(thing)]
    assert [n for n, m in own if not (m.__doc__ or "").strip()] == []


def test_the_version_is_a_version() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", rocerf.__version__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'rocerf' has no attribute 'Rocer'"):
        _ = rocerf.Rocer


def test_importing_rocerf_imports_nothing_heavy() -> None:
    code = f"import sys, rocerf; print([m for m in {HEAVY} if m in sys.modules])"
    assert python(code) == "[]"


def test_importing_the_command_line_imports_no_numbers() -> None:
    code = f"import sys, rocerf.cli.app; print([m for m in {HEAVY[:7]} if m in sys.modules])"
    assert python(code) == "[]"


def test_help_answers_within_a_second() -> None:
    """Of the processor: other work on the machine is not the command's doing."""
    times = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([sys.executable, "-m", "rocerf.cli", "--help"], capture_output=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        assert done.returncode == 0
    assert min(times) < 1.0


def test_explaining_works_where_torch_is_missing() -> None:
    assert python(EXPLAIN_GERMAN.format(before="sys.modules['torch'] = None")) == "45 False"


@pytest.mark.slow
def test_explaining_does_not_import_torch() -> None:
    assert python(EXPLAIN_GERMAN.format(before="")) == "45 False"


def drawn_tree() -> dict[str, str | None]:
    """Class -> parent, read from the tree in the docstring of ``rocerf.errors``."""
    lines = [line[4:] for line in (errors.__doc__ or "").split("The tree::")[1].splitlines() if line.strip()]
    parents: dict[str, str | None] = {}
    path: list[str] = []
    for line in lines:
        match = re.fullmatch(r"(?P<branch>[│├└─ ]*)(?P<name>\w+)(?: +(?P<words>\S.*))?", line)
        assert match is not None, line
        depth, odd = divmod(len(match["branch"]), 4)
        assert not odd, line
        assert depth <= len(path), line
        assert match["words"] or depth == 0, f"no words beside {match['name']}"
        assert match["name"] not in parents, line
        path[depth:] = [match["name"]]
        parents[match["name"]] = path[depth - 1] if depth else None
    return parents


def test_the_drawn_error_tree_is_the_real_one() -> None:
    classes = {
        name: cls for name, cls in vars(errors).items() if inspect.isclass(cls) and cls.__module__ == errors.__name__
    }
    real = {}
    for name, cls in classes.items():
        ours = [base.__name__ for base in cls.__bases__ if base.__name__ in classes]
        assert len(ours) == (name != "RocerfError"), name
        real[name] = ours[0] if ours else None
        assert issubclass(cls, Exception)
        assert cls.__doc__
    assert drawn_tree() == real


def test_a_missing_extra_names_its_install_command() -> None:
    error = errors.MissingExtraError("pyarrow", "scale", "reading Parquet files")
    expected = (
        "reading Parquet files needs the package 'pyarrow', which is not installed; "
        'install it with: pip install "rocerf[scale]"'
    )
    assert str(error) == expected
    assert isinstance(error, ImportError)
