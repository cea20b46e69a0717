"""Recourses as a document of plain values, sealed, and back; as JSON text with one line a person."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocerf.data.documents import json_document, read_text
from rocerf.data.frames import Frames
from rocerf.data.schema import FeatureSchema
from rocerf.promises.held_out import HeldOut
from rocerf.recourse.change import Change
from rocerf.recourse.result import Recourses, Settings, Status, finite_or_none
from rocerf.storage.reading import told_as
from rocerf.storage.seals import SEAL, check_seal, sealed
from rocerf.storage.state import State
from rocerf.types import Array
from rocerf.words.said import from_table, to_table

FILE_FORMAT = "rocerf-recourses/3"


def state_of(recourses: Recourses, *, training_rows: bool) -> State:
    """The batch as plain values: texts are English, ``said`` has their keys and values."""
    head = _head(recourses)
    return State(FILE_FORMAT, {**head, "people": [_record(recourses, i, training_rows) for i in range(len(recourses))]})


def from_state(state: State) -> Recourses:
    """The inverse of :func:`state_of`."""
    with state.understood(FILE_FORMAT, "Recourses.state"):
        return _from_document(state.values)


def _head(recourses: Recourses) -> dict[str, Any]:
    """What is said of the whole batch, as JSON holds it."""
    settings, index = recourses.settings, recourses.index
    document: dict[str, Any] = {
        "settings": asdict(settings),
        "schema": recourses.schema.to_dict(),
        "frames": None if recourses.frames is None else recourses.frames.to_dict(),
        "index": None if index is None else index.tolist(),
        "frame_columns": recourses.frame_columns,
        "held_out": None if recourses.held_out is None else recourses.held_out.to_dict(),
        **({} if recourses.picked is None else {"picked": recourses.picked.to_dict()}),
        "said": to_table((settings.sentence, *settings.assumptions, *recourses.reasons)),
    }
    plain: dict[str, Any] = json.loads(json.dumps(document, allow_nan=False, default=str))
    return plain


def written(recourses: Recourses, *, training_rows: bool) -> str:
    """The batch as JSON text, with a checksum of its content."""
    state = state_of(recourses, training_rows=training_rows)
    plain = {"format": state.format, **state.values}
    records = plain.pop("people")
    for record, answer in zip(records, recourses, strict=True):  # for readers: they follow from person and point
        record["changes"] = [_change(change) for change in answer.changes]
    head = json.dumps({**plain, SEAL: sealed({**plain, "people": records})[SEAL]})
    # One line a person: short enough to ship, and still readable in a diff.
    people = ",\n  ".join(json.dumps(record, allow_nan=False) for record in records)
    return f'{head[:-1]},\n "people": [\n  {people}\n ]}}'


def _change(change: Change) -> dict[str, Any]:
    """One change as it is read in a file: which attribute, from and to what, in which unit."""
    told = {"feature": change.feature, "label": change.label, "from": change.before, "to": change.after}
    return told | ({"unit": change.unit} if change.unit else {})


def _record(recourses: Recourses, i: int, training_rows: bool) -> dict[str, Any]:
    def number(values: Array | None) -> float | None:
        return None if values is None else finite_or_none(values[i])

    record: dict[str, Any] = {
        "status": recourses.statuses[i].code,
        "reason": recourses.reasons[i],
        "cost": number(recourses.costs),
        "margin": number(recourses.margins),
        "score": number(recourses.scores),
        "certified": recourses.settings.proven and recourses.statuses[i] is Status.ANSWERED,
        "retrainings": 0 if recourses.retrainings is None else int(recourses.retrainings[i]),
        "person": [finite_or_none(value) for value in recourses.people[i]],
        "point": [finite_or_none(value) for value in recourses.matrix[i]],
        "gap": number(recourses.gaps),
    }
    if recourses.missing is not None and recourses.missing[i]:
        record["missing"] = list(recourses.missing[i])
    worst = None if recourses.worst_ids is None else recourses.worst_ids[i]
    if training_rows and worst is not None:
        record["worst_ids"] = worst.tolist()
    return record


def read(source: str | PathLike[str]) -> Recourses:
    """Recourses out of what :func:`written` gave: the text itself, or a path to it."""
    is_text = isinstance(source, str) and source.lstrip().startswith("{")
    advice = "check the path (tables such as .csv cannot be read back), or write them again with this version"
    expected = f"recourses written by Recourses.to_json ({FILE_FORMAT}), as text or as a path to it"
    with told_as(expected, "something else", advice):
        document = json_document(str(source) if is_text else read_text(Path(source)))
        if document["format"] != FILE_FORMAT:
            raise ValueError(f"its format is {document['format']!r}")
        check_seal(document)
        return _from_document(document)


def _from_document(document: Mapping[str, Any]) -> Recourses:
    people, index = document["people"], document["index"]
    said = document.get("said", {})  # files of earlier versions have the English texts alone
    schema = FeatureSchema.from_dict(document["schema"])
    shape = (len(people), len(schema.columns))
    if index is not None and len(index) != len(people):
        raise ValueError(f"{len(index)} index values for {len(people)} people")
    if not all(isinstance(name, str | int | float | None) for name in index or ()):
        raise ValueError("people with names that are no text and no number")
    if any(None in (*p["person"], *p["point"]) for p in people if p["status"] == Status.ANSWERED.code):
        raise ValueError("answers with a value missing")
    named = [np.array(p["worst_ids"]) if "worst_ids" in p else None for p in people]
    return Recourses(
        people=_array([p["person"] for p in people]).reshape(shape),
        matrix=_array([p["point"] for p in people]).reshape(shape),
        costs=_array([p["cost"] for p in people]),
        margins=_array([p["margin"] for p in people]),
        statuses=tuple(Status(p["status"]) for p in people),
        reasons=tuple(from_table(p["reason"], said) for p in people),
        schema=schema,
        settings=_settings(document["settings"], said),
        index=None if index is None else _names(index),
        worst_ids=tuple(named) if any(ids is not None for ids in named) else None,
        retrainings=np.array([p["retrainings"] for p in people], dtype=np.intp),
        scores=_array([p["score"] for p in people]),
        held_out=HeldOut.from_dict(document["held_out"]) if document.get("held_out") else None,
        frame_columns=None if document["frame_columns"] is None else tuple(document["frame_columns"]),
        gaps=_array([p["gap"] for p in people]),
        frames=None if document["frames"] is None else Frames.from_dict(document["frames"]),
        missing=tuple(tuple(p.get("missing", ())) for p in people),
        picked=HeldOut.from_dict(document["picked"]) if document.get("picked") else None,
    )


def _settings(given: Mapping[str, Any], said: Mapping[str, Any]) -> Settings:
    """The settings of a file, each of the kind that it must be."""
    sentence, *assumptions = (from_table(text, said) for text in (given["sentence"], *given["assumptions"]))
    lists = {"searches": tuple(given["searches"]), "assumptions": tuple(assumptions)}
    made = Settings(**{**given, "sentence": sentence, **lists})
    texts = [getattr(made, one.name) for one in fields(made) if one.type == "str"]
    if not all(isinstance(text, str) for text in (*texts, *made.searches, *made.assumptions)):
        raise TypeError("settings that should be texts and are not")
    numbers = [made.k, made.training_rows, made.seed, made.max_changes or 0]
    if not all(isinstance(number, int) for number in numbers) or not isinstance(made.delta, int | float):
        raise TypeError("settings that should be numbers and are not")
    return made


def _names(values: list[Any]) -> NDArray[Any]:
    """Names as they were: NumPy would make texts of numbers beside texts, and round large ones beside fractions."""
    if len({type(value) for value in values}) <= 1:
        return np.array(values)
    names = np.empty(len(values), dtype=object)
    names[:] = values
    return names


def _array(values: list[Any]) -> Array:
    return np.array(values, dtype=np.float64)  # JSON null becomes NaN
