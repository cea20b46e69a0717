"""An example for every body of the OpenAPI description, put together from those of its fields.

Fields have their examples beside them; what is here only joins them, so that no body has to be written out twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

#: What stands for values whose fields say nothing of their own.
PLAIN: Mapping[str, Any] = {"integer": 1, "number": 0.5, "boolean": False, "string": "", "null": None}
FORMATS: Mapping[str, str] = {"date": "2026-12-18", "date-time": "2026-11-18T09:30:00Z"}


def example_of(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> Any:
    """An example that fits a schema: its own, else one of its parts.

    >>> example_of({"type": "object", "properties": {"k": {"type": "integer", "examples": [4]}}}, {})
    {'k': 4}
    """
    if "$ref" in schema:
        return example_of(schemas[schema["$ref"].rpartition("/")[2]], schemas)
    own = [
        *schema.get("examples", ()),
        *(schema[name] for name in ("default", "const") if schema.get(name) is not None),
    ]
    own += schema.get("enum", [])
    if own:
        return own[0]
    if "anyOf" in schema:
        return example_of(schema["anyOf"][0], schemas)
    kind = schema.get("type", "null")
    if kind == "object":
        return {name: example_of(part, schemas) for name, part in schema.get("properties", {}).items()}
    if kind == "array":
        return [example_of(schema["items"], schemas)]
    return FORMATS.get(schema.get("format", ""), PLAIN[kind])


def bodies(described: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Every body in JSON that is sent or answered, problems too."""
    for methods in described["paths"].values():
        for operation in methods.values():
            parts = [operation.get("requestBody", {}), *operation["responses"].values()]
            for part in parts:
                yield from (body for kind, body in part.get("content", {}).items() if kind.endswith("json"))


def with_examples(described: dict[str, Any]) -> dict[str, Any]:
    """The description, with an example for every body."""
    for body in bodies(described):
        body["example"] = example_of(body["schema"], described["components"]["schemas"])
    return described
