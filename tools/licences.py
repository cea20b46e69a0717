"""Writes docs/licences.md and out/sbom.json (CycloneDX) from what is installed: every dependency and its licence.

Usage: python tools/licences.py, in the environment of `make test` (all extras). What a dependency needs on other
systems only (the CUDA libraries of torch, say) is not installed there and not listed.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "licences.md"
MARKED = re.compile(r"(<!-- licences -->\n)(.*?)(<!-- end -->)", flags=re.DOTALL)

#: How packages that give no SPDX expression name their licence: the first words of the field, or the classifier.
SPELLED = {
    "3-clause bsd license": "BSD-3-Clause",
    "apache 2.0": "Apache-2.0",
    "apache licence 2.0": "Apache-2.0",
    "apache license, version 2.0": "Apache-2.0",
    "apache software license": "Apache-2.0",
    "bsd": "BSD-3-Clause",
    "bsd 2-clause license": "BSD-2-Clause",
    "bsd 3-clause license": "BSD-3-Clause",
    "bsd license": "BSD-3-Clause",
    "isc license": "ISC",
    "isc license (iscl)": "ISC",
    "mit license": "MIT",
    "mozilla public license 2.0 (mpl 2.0)": "MPL-2.0",
    "python software foundation license": "PSF-2.0",
}
#: Packages whose fields do not say: read in the licence file that they ship.
READ = {"skops": "MIT"}
PERMISSIVE = frozenset({"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC0-1.0", "ISC", "MIT"}) | {
    *("MIT-0", "MIT-CMU", "PSF-2.0", "Zlib", "LLVM-exception")
}
#: Licences that ask something of whoever passes the package on changed, each with the packages that we take under it.
COPYLEFT = {
    "LGPL-3.0-only": frozenset({"psycopg", "psycopg-binary"}),
    "MPL-2.0": frozenset({"certifi", "tqdm", "pathspec", "hypothesis"}),
}


@dataclass(frozen=True)
class Dependency:
    """An installed package, its licence, what it needs, and for which parts of rocerf it is there."""

    name: str
    version: str
    licence: str
    needs: tuple[str, ...]
    parts: tuple[str, ...]


def declared() -> dict[str, list[str]]:
    """Requirements of the core and of every extra, as pyproject.toml has them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return {"core": project["dependencies"], **project["optional-dependencies"]}


def licence_of(package: Distribution) -> str:
    """An SPDX expression from the package's own fields, or what it says where that is none."""
    fields: Any = package.metadata
    name = canonicalize_name(fields["Name"])
    if name in READ:
        return READ[name]
    if fields.get("License-Expression"):
        return str(fields["License-Expression"])
    first: list[str] = (fields.get("License") or "").strip().splitlines()[:1]
    kinds: list[str] = [
        c.rpartition("::")[2].strip() for c in fields.get_all("Classifier") or [] if c.startswith("License")
    ]
    for said in (*first, *kinds):
        spelled = SPELLED.get(said.lower(), said)
        if terms(spelled) <= PERMISSIVE | COPYLEFT.keys():
            return spelled
    return "unknown: " + " / ".join((*first, *kinds))


def terms(expression: str) -> set[str]:
    """The licences of an SPDX expression."""
    return set(re.split(r"\s+(?:AND|OR|WITH)\s+|[()\s]+", expression)) - {""}


def _needed(package: Distribution, extras: Iterable[str]) -> list[Requirement]:
    """What an installed package asks for here, with the extras asked of it."""
    wanted = [Requirement(text) for text in package.requires or []]
    return [r for r in wanted if r.marker is None or any(r.marker.evaluate({"extra": e}) for e in ("", *extras))]


def dependencies() -> list[Dependency]:
    """Everything that the core and the extras bring with them, by name; what is not installed is left out."""
    found: dict[str, tuple[Distribution, set[str], set[str]]] = {}
    for part, texts in declared().items():
        waiting, seen = [Requirement(text) for text in texts], set()
        while waiting:
            asked = waiting.pop()
            name, extras = canonicalize_name(asked.name), frozenset(asked.extras)
            if name == "rocerf" or (name, extras) in seen:
                continue
            seen.add((name, extras))
            try:
                package = distribution(name)
            except PackageNotFoundError:
                continue
            _, needs, parts = found.setdefault(name, (package, set(), set()))
            more = _needed(package, extras)
            needs.update(canonicalize_name(r.name) for r in more)
            parts.add(part)
            waiting += more
    return [
        Dependency(
            name, package.version, licence_of(package), tuple(sorted(needs & found.keys())), tuple(sorted(parts))
        )
        for name, (package, needs, parts) in sorted(found.items())
    ]


def table(packages: list[Dependency]) -> str:
    """The page's two tables: what users install, and developers' tools."""
    head = "| package | licence | for |\n|---|---|---|\n"
    shipped = [p for p in packages if set(p.parts) != {"dev"}]
    rows = "".join(f"| {p.name} | {p.licence} | {_parts(p)} |\n" for p in shipped)
    tools = "".join(f"| {p.name} | {p.licence} |\n" for p in packages if p not in shipped)
    return f"{head}{rows}\n## Tools for developers\n\n| package | licence |\n|---|---|\n{tools}"


def _parts(package: Dependency) -> str:
    return "core" if "core" in package.parts else ", ".join(f"`{part}`" for part in package.parts if part != "dev")


def sbom(packages: list[Dependency], version: str) -> dict[str, Any]:
    """A CycloneDX 1.6 document: the packages users install, their licences, and who needs whom."""
    shipped = [p for p in packages if set(p.parts) != {"dev"}]
    refs = {p.name: f"pkg:pypi/{p.name}@{p.version}" for p in shipped}
    own = f"pkg:pypi/rocerf@{version}"
    direct = {
        canonicalize_name(Requirement(t).name) for name, texts in declared().items() if name != "dev" for t in texts
    }
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": _component("rocerf", version, "MIT", own)},
        "components": [_component(p.name, p.version, p.licence, refs[p.name]) for p in shipped],
        "dependencies": [
            {"ref": own, "dependsOn": sorted(refs[name] for name in direct & refs.keys())},
            *({"ref": refs[p.name], "dependsOn": [refs[n] for n in p.needs if n in refs]} for p in shipped),
        ],
    }


def _component(name: str, version: str, licence: str, ref: str) -> dict[str, Any]:
    return {
        "type": "library",
        "name": name,
        "version": version,
        "bom-ref": ref,
        "purl": ref,
        "licenses": [{"expression": licence}],
    }


def main() -> int:
    """Write both."""
    from rocerf import __version__

    packages = dependencies()
    unknown = [f"{p.name}: {p.licence}" for p in packages if not terms(p.licence) <= PERMISSIVE | COPYLEFT.keys()]
    if unknown:
        raise SystemExit("licences not known: " + "; ".join(unknown))
    page = PAGE.read_text("utf-8")
    PAGE.write_text(MARKED.sub(lambda found: f"{found[1]}{table(packages)}{found[3]}", page), "utf-8")
    target = ROOT / "out" / "sbom.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(sbom(packages, __version__), indent=1), "utf-8")
    print("written:", PAGE, target)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
