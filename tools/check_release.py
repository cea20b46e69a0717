"""Builds wheel and sdist, checks them, and tries the wheel in fresh environments: one command before a release.

Usage: python tools/check_release.py [--python PATH ...] [--extras service,scale] [--keep FOLDER] [--oldest]

Without --python every interpreter of SUPPORTED that is found on the PATH or under ~/.pyenv is tried. Needs build,
hatchling and twine (`make release-check` installs them); installing needs a package index. --oldest only prints the
oldest core versions that pyproject.toml allows, as pip takes them.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent
SUPPORTED = ("3.11", "3.12", "3.13")
LARGEST = 3_000_000
#: Files other than Python that the wheel has to carry, and the only ones that it may: patterns of their names.
CARRIED = (
    "py.typed",
    "data/embedded/*.gz",
    "data/embedded/*.yaml",
    "data/embedded/splits.npz",
    "data/embedded/NOTICE.md",
    "letters/letter.schema.json",
    "reproduction/*.yaml",
    "service/pages/*.yaml",
    "service/pages/static/*",
    "service/pages/templates/*.html",
    "words/*.yaml",
)
#: Without these something fails only once it is used.
NEEDED = (
    "py.typed",
    "data/embedded/german.data.gz",
    "data/embedded/adult.data.gz",
    "data/embedded/adult.test.gz",
    "service/pages/static/style.css",
    "service/pages/static/htmx.min.js",
    "service/pages/templates/base.html",
    "ledger/migrations/versions/step_0001_ledger.py",
    "words/en.yaml",
    "words/de.yaml",
)
#: Beside what the wheel is made from, an sdist holds what the tests ask for.
UNPACKED = ("src", "tests", "tools", "benchmarks", "docs", "mkdocs.yml", "CITATION.cff", "constraints.txt", "Makefile")

TRIAL = """
import json, pathlib, re, subprocess, sys, tempfile, warnings
warnings.simplefilter("error")
block = re.search(r"```python\\n(.*?)```", pathlib.Path(sys.argv[1]).read_text("utf-8"), flags=re.DOTALL).group(1)
names = {}
exec(compile(block, "README.md", "exec"), names)
import numpy as np, rocerf
assert rocerf.__version__ == sys.argv[2], rocerf.__version__
assert (pathlib.Path(rocerf.__file__).parent / "py.typed").is_file()
assert len(rocerf.load_dataset("adult").train) > 30_000
with tempfile.TemporaryDirectory() as folder:
    explainer = rocerf.Rocerf(names["model"], k=4)
    before = explainer.explain(names["denied"][:3])
    explainer.save(folder + "/explainer")
    after = rocerf.Rocerf.load(folder + "/explainer").explain(names["denied"][:3])
    assert np.allclose(before.matrix, after.matrix)
    command = [sys.executable, "-W", "error", "-m", "rocerf.cli"]
    page = folder + "/demo.html"
    command += ["demo", "--trials", "2", "--people", "4", "--out", page]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    assert "<html" in pathlib.Path(page).read_text("utf-8")
print("tried: ten lines, both tables, save and load, demo; rocerf", rocerf.__version__, "on", sys.version.split()[0])
"""


def run(*command: str | Path, cwd: Path | None = None) -> str:
    """Standard output of a command that has to end well."""
    done = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"failed: {' '.join(map(str, command))}\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout


def built(folder: Path) -> tuple[Path, Path]:
    """The wheel and the sdist, the wheel made from the sdist, with the tools installed and no network."""
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT)
    return next(folder.glob("*.whl")), next(folder.glob("*.tar.gz"))


def wheel_problems(wheel: Path) -> list[str]:
    """What is missing in the wheel, or has no business there."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/")]
    info = [name for name in names if re.match(r"rocerf-[^/]+\.dist-info/", name)]
    ours = {name.removeprefix("rocerf/") for name in names if name.startswith("rocerf/")}
    elsewhere = sorted(set(names) - set(info) - {f"rocerf/{name}" for name in ours})
    sources = {
        path.relative_to(ROOT / "src/rocerf").as_posix()
        for path in (ROOT / "src/rocerf").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    strange = [
        name
        for name in sorted(ours)
        if not name.endswith(".py") and not any(PurePosixPath(name).match(p) for p in CARRIED)
    ]
    problems = [f"beside the package: {name}" for name in elsewhere]
    problems += [f"not meant to be there: {name}" for name in strange]
    problems += [f"missing: {name}" for name in (*NEEDED, *sorted(sources)) if name not in ours]
    problems += [f"not in the sources: {name}" for name in sorted(ours - sources)]
    return problems + too_large(wheel)


def sdist_problems(sdist: Path) -> list[str]:
    """What the sdist lacks, or holds though it is left out on purpose."""
    with tarfile.open(sdist) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    tops = {name.partition("/")[0] for name in names}
    problems = [f"missing: {name}" for name in UNPACKED if name not in tops]
    return (
        problems
        + [f"left out on purpose: {name}" for name in names if name.endswith((".png", ".ipynb"))]
        + too_large(sdist)
    )


def too_large(file: Path) -> list[str]:
    """One line if a file is above the limit."""
    size = file.stat().st_size
    return [f"{size:,} bytes, at most {LARGEST:,} are meant"] if size > LARGEST else []


def interpreters(given: list[str]) -> list[Path]:
    """The ones given, or whatever is found of those supported."""
    if given:
        return [Path(path) for path in given]
    found = [shutil.which(f"python{version}") for version in SUPPORTED]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for position, version in enumerate(SUPPORTED):
        candidates = sorted(pyenv.glob(f"{version}.*/bin/python"))
        if candidates:
            found[position] = str(candidates[-1])
    missing = [version for version, path in zip(SUPPORTED, found, strict=True) if path is None]
    if missing:
        print("not found, not tried:", ", ".join(missing))
    return [Path(path) for path in found if path is not None]


def tried(python: Path, wheel: Path, extras: str, folder: Path) -> str:
    """What the trial said in a fresh environment of this interpreter."""
    home = folder / f"env-{python.parent.parent.name}"
    run(python, "-m", "venv", home)
    inside = home / "bin" / "python"
    asked = f"{wheel}[{extras}]" if extras else str(wheel)
    run(inside, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "-c", ROOT / "constraints.txt", asked)
    run(inside, "-m", "pip", "--disable-pip-version-check", "check")
    version = wheel.name.split("-")[1]
    said = run(inside, "-c", TRIAL, ROOT / "README.md", version, cwd=folder).strip().splitlines()[-1:]
    if extras:
        said += run(inside, ROOT / "tools/try_extras.py", *extras.split(","), cwd=folder).strip().splitlines()
    return "\n  ".join(line for line in said if line.startswith(("tried", "extra")))


def oldest() -> list[str]:
    """The core's dependencies, each at its lower bound."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return [line.replace(">=", "==") for line in project["dependencies"]]


def main() -> int:
    """Everything, in order; the first failure ends it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--python", action="append", default=[], help="an interpreter to try; may be repeated")
    parser.add_argument("--extras", default="", help="extras to install with it, separated by commas")
    parser.add_argument("--keep", type=Path, help="put wheel and sdist here")
    parser.add_argument("--oldest", action="store_true", help="print the oldest core versions allowed, and end")
    chosen = parser.parse_args()
    if chosen.oldest:
        print(*oldest())
        return 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel, sdist = built(folder)
        print(run(sys.executable, "-m", "twine", "--no-color", "check", "--strict", wheel, sdist).strip())
        problems = [f"{wheel.name}: {line}" for line in wheel_problems(wheel)]
        problems += [f"{sdist.name}: {line}" for line in sdist_problems(sdist)]
        if problems:
            raise SystemExit("\n".join(problems))
        for file in (wheel, sdist):
            print(f"{file.name}: {file.stat().st_size:,} bytes")
        for python in interpreters(chosen.python):
            print(tried(python, wheel, chosen.extras, folder), flush=True)
        if chosen.keep is not None:
            chosen.keep.mkdir(parents=True, exist_ok=True)
            for file in (wheel, sdist):
                shutil.copy(file, chosen.keep)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
