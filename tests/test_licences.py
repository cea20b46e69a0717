"""Every dependency has a known licence, copyleft is what docs/licences.md says, the bill of materials is whole."""

from __future__ import annotations

import importlib
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest

import rocerf

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def tool() -> Any:
    return importlib.import_module("tools.licences")


@pytest.fixture(scope="module")
def packages(tool: Any) -> Any:
    return tool.dependencies()


def test_every_licence_is_known_and_copyleft_is_what_we_say(tool: Any, packages: Any) -> None:
    for package in packages:
        for term in tool.terms(package.licence) - tool.PERMISSIVE:
            assert package.name in tool.COPYLEFT.get(term, ()), f"{package.name}: {package.licence}"
    page = tool.PAGE.read_text("utf-8").partition("## What users install")[0]
    for name in set().union(*tool.COPYLEFT.values()):
        assert f"`{name}`" in page


def test_the_core_is_permissive(tool: Any, packages: Any) -> None:
    core = [package for package in packages if "core" in package.parts]
    assert {"numpy", "highspy", "scikit-learn", "joblib"} <= {package.name for package in core}
    assert all(tool.terms(package.licence) <= tool.PERMISSIVE for package in core)


def test_the_page_lists_what_is_installed(tool: Any, packages: Any) -> None:
    listed = {line.split(" | ")[0].removeprefix("| "): line for line in tool.PAGE.read_text("utf-8").splitlines()}
    for package in packages:
        line = listed.get(package.name, "")
        assert f"| {package.licence} |" in line, f"{package.name} ({package.licence}): run tools/licences.py"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ("License-Expression: MIT AND PSF-2.0", "MIT AND PSF-2.0"),
        ("License: BSD 3-Clause License", "BSD-3-Clause"),
        ("License: Copyright (c) somebody\nClassifier: License :: OSI Approved :: MIT License", "MIT"),
        ("License: GPL-3.0", "unknown: GPL-3.0"),
        ("Summary: nothing said", "unknown: "),
    ],
)
def test_fields_are_read(tool: Any, tmp_path: Path, fields: str, expected: str) -> None:
    folder = tmp_path / "thing-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.4\nName: thing\nVersion: 1.0\n{fields}\n")
    from importlib.metadata import PathDistribution

    assert tool.licence_of(PathDistribution(folder)) == expected


def test_the_bill_of_materials_is_whole(tool: Any, packages: Any) -> None:
    document = tool.sbom(packages, rocerf.__version__)
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    components = {component["bom-ref"]: component for component in document["components"]}
    own = document["metadata"]["component"]["bom-ref"]
    assert own == f"pkg:pypi/rocerf@{rocerf.__version__}"
    assert "pytest" not in {component["name"] for component in components.values()}
    for component in components.values():
        assert distribution(component["name"]).version == component["version"]
        assert component["licenses"][0]["expression"]
    needed = {entry["ref"]: entry["dependsOn"] for entry in document["dependencies"]}
    assert needed.keys() == {own, *components}
    reached, waiting = set(), [own]
    while waiting:  # nothing hangs loose: everything listed is needed by something
        for ref in needed[waiting.pop()]:
            if ref not in reached:
                reached.add(ref)
                waiting.append(ref)
    assert reached == set(components)
