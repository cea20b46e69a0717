"""What commands read and write: training rows, people, points and ids; recourses, attacks and letters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rocerf.audit.recheck import check_same_model
from rocerf.cli.parquet_files import RowsInParquet, is_parquet, labels_in
from rocerf.cli.tables import check_output, read_table, write_frame
from rocerf.data.documents import json_document, read_text, yaml_document
from rocerf.data.training_set import TrainingSet
from rocerf.deletion.attacks import Attack, Attacks
from rocerf.errors import ColumnError, DataError, FileFormatError, IdError, LabelError
from rocerf.letters.files import letter_file_names
from rocerf.letters.letter import Letter
from rocerf.models.model import Refittable
from rocerf.recourse.result import Recourses
from rocerf.storage.reading import told_as
from rocerf.storage.whole_file import write_files, write_text
from rocerf.types import Array

if TYPE_CHECKING:
    import pandas as pd

    from rocerf.data.schema import FeatureSchema


#: Share of the models retrained without some rows that must accept a point which survives; of a single one, that one.
SURVIVE = 0.95


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Training rows as they stand in a file, any columns, indexed by their ids; labels and the favourable one."""

    frame: pd.DataFrame
    labels: NDArray[Any]
    favourable: Any

    def training_set(self) -> TrainingSet:
        """The rows as numbers; columns of text are refused."""
        return TrainingSet(self.frame, self.labels, favourable=self.favourable)

    def kept_on_disk(self) -> TrainingSet:
        """The same, on the disk where they are in files that can be read in parts."""
        return self.training_set()

    def text_columns(self) -> list[str]:
        """Features whose values are texts, one and all; digits among them are texts, too."""
        from pandas.api.types import is_numeric_dtype

        return [
            str(name)
            for name, column in self.frame.items()
            if not is_numeric_dtype(column.dtype) and all(isinstance(cell, str) for cell in column.dropna())
        ]


def read_training_set(path: Path, *, label: str, favourable: str, id_column: str | None = None) -> TrainingSet:
    """Training rows from a file: all columns but the label and the ids are features, and numbers."""
    return read_labelled_rows(path, label=label, favourable=favourable, id_column=id_column).training_set()


def read_features(path: Path, *, label: str, id_column: str | None = None) -> tuple[pd.DataFrame, pd.Series[Any]]:
    """The features of training rows in a file, indexed by their ids, and the labels."""
    frame = _with_ids(read_table(path, id_column), id_column, path)
    if label not in frame.columns:
        raise ColumnError(
            f"Expected a label column {label!r} in {path.name}, got only {_shown(frame.columns)}; name it with --label."
        )
    if frame.empty:
        raise DataError(f"Expected training rows in {path.name}, got a header only; check the file.")
    return frame.drop(columns=label), frame[label]


def read_labelled_rows(
    path: Path, *, label: str, favourable: str, id_column: str | None = None
) -> LabelledRows | RowsInParquet:
    """Training rows from a file with their labels.

    ``favourable`` is text, as typed on a command line; it is matched to the label it spells.
    """
    if is_parquet(path):
        return RowsInParquet(path, label, typed_as(labels_in(path, label), favourable, label), id_column)
    frame, labels = read_features(path, label=label, id_column=id_column)
    return LabelledRows(frame, labels.to_numpy(), typed_as(labels.dropna().unique().tolist(), favourable, label))


def typed_as(labels: Iterable[Any], favourable: str, column: str) -> Any:
    """The label that is typed so."""
    spelled = {spelling(value): value for value in labels}
    if favourable not in spelled:
        raise LabelError(
            f"Expected the favourable label to be one of {_shown(spelled)} in column {column!r}, got {favourable!r}; "
            "name it with --favourable."
        )
    return spelled[favourable]


def read_people(
    path: Path, *, id_column: str | None = None, like: LabelledRows | RowsInParquet | None = None
) -> pd.DataFrame:
    """People from a file; columns the model does not know are left aside.

    What is a text among the training rows, ``like``, is one here, whatever few values stand in a CSV: 20 may be a code.
    """
    texts = None if like is None else like.text_columns()
    frame = _with_ids(read_table(path, id_column, texts), id_column, path)
    repeated = frame.index[frame.index.duplicated()]
    if len(repeated):
        raise IdError(
            f"Expected each person of {path.name} once, got {repeated[0]!r} again in column {id_column!r}; answers "
            "are known by it, so give everybody an id of their own."
        )
    # Nobody asking is no mistake, but columns without a value have no type either.
    return frame if len(frame) else frame.astype("float64")


def write_recourses(recourses: Recourses, path: Path, *, training_rows: bool = False) -> None:
    """Answers to ``.csv``, ``.parquet`` (never with ids of training rows) or ``.json``, private if they are in it."""
    check_output(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix.lower() == ".json":
        write_text(path, recourses.to_json(training_rows=training_rows), private=training_rows)
    else:
        frame = recourses.to_frame()
        frame.insert(0, "recourse_person" if "person" in frame else "person", frame.index)
        write_frame(frame, path)


@dataclass(frozen=True, eq=False)
class GivenPoints:
    """Points to be attacked: answers of ``rocerf explain``, which know their schema, or a table."""

    source: Recourses | pd.DataFrame

    @property
    def schema(self) -> FeatureSchema | None:
        """What the points' columns mean, if the file says so."""
        return self.source.schema if isinstance(self.source, Recourses) else None

    def of(self, model: Refittable) -> tuple[Array, list[Any]]:
        """The points (P, d) of this model with their names; unanswered people and incomplete rows are left out."""
        if isinstance(self.source, Recourses):
            check_same_model(model, self.source)
            matrix, names = self.source.matrix, list(self.source.names)
        else:
            matrix, names = model.matrix(self.source), self.source.index.tolist()
        complete = np.asarray(np.isfinite(matrix).all(axis=1))
        return matrix[complete], [name for name, kept in zip(names, complete, strict=True) if kept]


def read_points(
    path: Path, *, id_column: str | None = None, like: LabelledRows | RowsInParquet | None = None
) -> GivenPoints:
    """Points from a table, or from answers written by ``rocerf explain`` as JSON."""
    if path.name.lower().endswith(".json") and not _lists_rows(path):
        return GivenPoints(Recourses.from_json(path))
    return GivenPoints(read_people(path, id_column=id_column, like=like))


def _lists_rows(path: Path) -> bool:
    """Whether a JSON file is a list of rows; answers of ours are one object."""
    return path.is_file() and path.read_bytes()[:64].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")


def read_ids(path: Path, train: TrainingSet) -> list[Any]:
    """Ids of training rows, one a line or a table of one column, as the training set spells them."""
    if not path.exists() or path.is_dir():
        raise FileFormatError(f"Expected a file with one row id a line at {path}, found none; check the path.")
    spelled = {spelling(row_id): row_id for row_id in train.ids.tolist()}
    try:
        given = _listed_ids(path)
        lines = [text if text in spelled else text.strip() for text in given if text.strip()]
    except UnicodeDecodeError as error:
        raise FileFormatError(
            f"Expected row ids as text in UTF-8 in {path.name}, got other bytes ({error.reason}); save it as UTF-8."
        ) from error
    unknown = [line for line in lines if line not in spelled]
    if unknown:
        raise IdError(
            f"Expected one id of a training row a line in {path.name}, without a header, got {len(unknown)} lines that "
            f"are none, the first {unknown[0]!r}; ids look like {spelling(train.ids.tolist()[0])!r}."
        )
    return [spelled[line] for line in lines]


def _listed_ids(path: Path) -> list[str]:
    """The lines of a text; of Parquet and JSON the cells of their only column, or the list itself."""
    if not is_parquet(path) and not path.name.lower().endswith((".json", ".jsonl")):
        return read_text(path).split("\n")
    if path.name.lower().endswith(".json"):
        with told_as("a list of row ids in JSON", "something else", "write a list"):
            listed = json_document(read_text(path))
        if isinstance(listed, list) and not any(isinstance(one, dict | list) for one in listed):
            return [spelling(one) for one in listed]
    frame = read_table(path)
    if frame.shape[1] != 1:
        raise FileFormatError(
            f"Expected one column of row ids in {path.name}, got {frame.shape[1]}; keep the ids alone."
        )
    return [spelling(one) for one in frame.iloc[:, 0].tolist()]


def attack_records(
    attacks: Attacks, before: Array, names: list[Any], *, training_rows: bool = False
) -> list[dict[str, Any]]:
    """One record for each attacked point; ids of training rows only where asked for.

    Where retraining has no single outcome, scores are means, and how many models accept the point is told beside them.
    """
    records = []
    holds = survivors(attacks)
    for name, score, held, attack in zip(names, before, holds, attacks, strict=True):
        record: dict[str, Any] = {
            "person": name,
            "score_before": float(score),
            "score_after": float(attack.score) if np.isfinite(attack.score) else None,
            "survives": bool(held),
            **(_counted(attack) if attacks.accepted is not None else {}),
            "deletions": len(attack.deleted_ids),
            "found_by": attack.found_by,
            "retrainings": attack.retrainings,
        }
        if training_rows:
            record["deleted_ids"] = attack.deleted_ids.tolist()
        records.append(record)
    return records


def survivors(attacks: Attacks) -> NDArray[np.bool_]:
    """Points that the worst deletion found leaves accepted, (P,): by :data:`SURVIVE` of the models retrained."""
    return np.asarray(attacks.shares >= SURVIVE)


def _counted(attack: Attack) -> dict[str, Any]:
    return {
        "spread_after": attack.spread,
        "models": attack.models,
        "accepting": round(attack.share * attack.models),
        "share": attack.share,
    }


def read_mapping(path: Path, what: str) -> dict[Any, Any]:
    """A YAML (or JSON) file that maps names to values, such as prices."""
    if not path.is_file():
        raise FileFormatError(f"Expected a file with {what} at {path}, found none; check the path.")
    try:
        document = yaml_document(read_text(path))
    except ValueError as error:
        said = " ".join(str(error).split())
        raise FileFormatError(f"Expected {what} in YAML, got something else ({said}); correct {path.name}.") from error
    if not isinstance(document, dict):
        raise FileFormatError(
            f"Expected {what} as lines 'name: value' in {path.name}, got {type(document).__name__}; correct the file."
        )
    return document


def write_letters(letters: Sequence[Letter], folder: Path, kind: str) -> list[Path]:
    """Each letter to a file of its own, named after the person; ``kind`` is text, html or json.

    Each file is the old one or the new one, whole, and none is touched before all are on the disk.
    """
    folder.mkdir(parents=True, exist_ok=True)
    taken = [path.name for path in folder.iterdir()]
    names = letter_file_names([letter.person for letter in letters], LETTERS[kind], taken)
    texts = ((folder / name, letter_as(letter, kind)) for name, letter in zip(names, letters, strict=True))
    try:
        write_files(texts)
    except OSError as error:
        raise FileFormatError(
            f"Expected to write {len(letters)} letters in {folder}, got {error.strerror or error} at "
            f"{Path(str(error.filename)).name}; letters of an earlier run may still stand there: make room or choose "
            "another folder, and write all again."
        ) from error
    return [folder / name for name in names]


#: Forms of letters, and how their files end.
LETTERS = {"text": "txt", "html": "html", "json": "json"}


def letter_as(letter: Letter, kind: str) -> str:
    """A letter in one of its forms, ending in a new line."""
    text = {"text": letter.to_text, "html": letter.to_html, "json": letter.to_json}[kind]()
    return text if text.endswith("\n") else f"{text}\n"


def spelled_as(names: Iterable[Any], typed: Sequence[str]) -> list[int]:
    """Places of the people whose names are typed so."""
    places: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        places.setdefault(spelling(name), []).append(place)
    for text in typed:
        if text not in places:
            raise IdError(f"Expected people of the answers, got {text!r}; known: {_shown(places)}.")
        if len(places[text]) > 1:
            raise IdError(f"Expected one person called {text!r}, got {len(places[text])}; give them ids of their own.")
    return [places[text][0] for text in dict.fromkeys(typed)]


def _with_ids(frame: pd.DataFrame, id_column: str | None, path: Path) -> pd.DataFrame:
    if id_column is None:
        return frame
    if id_column not in frame.columns:
        raise ColumnError(
            f"Expected an id column {id_column!r} in {path.name}, got only {_shown(frame.columns)}; name one of these."
        )
    missing = int(frame[id_column].isna().sum())
    if missing:
        raise IdError(f"Expected an id in every row of {path.name}, got {missing} without; fill column {id_column!r}.")
    return frame.set_index(id_column)


def _shown(names: Iterable[Any]) -> str:
    texts = [str(name) for name in names]
    return ", ".join(texts[:8]) + (", ..." if len(texts) > 8 else "")


def spelling(value: Any) -> str:
    """How a person would type a label: 1, not 1.0 or np.int64(1)."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
