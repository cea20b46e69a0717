"""YAML and JSON from elsewhere: what would hang, overflow or silently lose a line is refused with a sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from rocerf import FeatureSchema, Letter, Recourses
from rocerf.data.documents import json_document, read_text, yaml_document
from rocerf.data.schema import Feature
from rocerf.errors import FileFormatError, RocerfError
from rocerf.reproduction.settings import ExperimentSettings

HEAD = "format: rocerf-schema/1\n"


def laughs(levels: int) -> str:
    """A text of aliases that stands for 9 ** levels values; its last name is the largest list."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, levels)]
    return "\n".join(lines) + "\n"


BAD_YAML = {
    "aliases": (HEAD + laughs(5) + "features: [*a4]\n", "the alias *a0 in line 3"),
    "an alias of itself": (HEAD + "features: &f [*f]\n", "the alias *f in line 2"),
    "brackets": (HEAD + "features: " + "[" * 3000, "too deep"),
    "dashes": (HEAD + "features:\n" + "- " * 3000, "too deep"),
    "a name twice": (HEAD + "features:\n- {name: a, lower: 1, lower: 2}\n", "'lower' is given twice"),
    "too many digits": (HEAD + "features:\n- {name: a, lower: " + "9" * 5000 + "}\n", "digits"),
    "a number beyond all": (HEAD + "features:\n- {name: a, lower: 0x" + "f" * 400 + "}\n", "whole number beyond"),
    "no such day": (HEAD + "features:\n- {name: a, lower: 2026-13-45}\n", "month"),
    "no boolean": (HEAD + "features:\n- {name: a, lower: !!bool x}\n", "cannot be read"),
    "code": (HEAD + "features:\n- {name: !!python/object/apply:os.getcwd []}\n", "constructor"),
}


@pytest.mark.parametrize("kind", BAD_YAML)
def test_yaml_that_leads_astray_is_refused(kind: str, tmp_path: Path) -> None:
    text, words = BAD_YAML[kind]
    with pytest.raises(FileFormatError, match="a schema in YAML") as refused:
        FeatureSchema.from_yaml(text)
    assert words in str(refused.value)
    assert len(str(refused.value)) < 1000
    path = tmp_path / "settings.yaml"
    path.write_text(text, "utf-8")
    with pytest.raises(FileFormatError, match=r"settings in YAML"):
        ExperimentSettings.read(path)


def test_what_we_write_is_read(tmp_path: Path) -> None:
    same = ("rent", "own")
    schema = FeatureSchema(
        tuple(Feature(name, kind="categorical", categories=same, changes={"rent": ("own",)}) for name in ("a", "b"))
    )
    text = schema.to_yaml()
    assert "&" not in text  # equal lists are written out, not as aliases
    assert FeatureSchema.from_yaml(text) == schema
    assert yaml_document(text) == yaml.safe_load(text)
    settings = ExperimentSettings.preset_named("quick")
    (tmp_path / "settings.yaml").write_bytes(b"\xef\xbb\xbf" + settings.to_yaml().encode())
    assert ExperimentSettings.read(tmp_path / "settings.yaml") == settings
    deep = "a: " + "[" * 40 + "]" * 40 + "\n"
    assert yaml_document(deep) == yaml.safe_load(deep)


@pytest.mark.parametrize(
    "text",
    ['{"format":' + "[" * 100_000, '{"format": "rocerf-recourses/2", "format": 1}', '{"format": ' + "9" * 5000 + "}"],
    ids=["deep", "twice", "digits"],
)
def test_json_that_leads_astray_is_refused(text: str) -> None:
    for read in (Recourses.from_json, Letter.from_json):
        with pytest.raises(FileFormatError, match="got something else"):
            read(text)
    with pytest.raises(ValueError, match=r"too deep|twice|digits"):
        json_document(text)


def test_json_is_otherwise_json(tmp_path: Path) -> None:
    document = {"a": [1, -2.5e300, None, True, "\ud800", {"b": {}}], "c": 10**300}
    assert json_document(json.dumps(document)) == document
    with pytest.raises(ValueError, match="whole number beyond"):
        json_document(json.dumps({"c": 10**400}))
    (tmp_path / "marked.json").write_bytes(b"\xef\xbb\xbf{}")
    assert json_document(read_text(tmp_path / "marked.json")) == {}


def test_a_schema_of_wrong_values_is_refused_in_our_words() -> None:
    for features in ({"name": "a", "lower": 10**400}, {"name": "a", "changes": [[1]]}, {"name": "a", "kind": ["x"]}):
        with pytest.raises(RocerfError, match="Expected"):
            FeatureSchema.from_dict({"format": "rocerf-schema/1", "features": [features]})
