"""Training rows in Parquet, a file or a folder of files: on the disk for a model fitted here, else in memory."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rocerf.data.training_set import TrainingSet
from rocerf.errors import FileFormatError

if TYPE_CHECKING:
    import pandas as pd

    from rocerf.cli.files import LabelledRows


#: Cells of a table from which it stays on the disk whatever the model is.
LARGE = 2**22


def is_parquet(path: Path) -> bool:
    """Whether a path is a Parquet file by its name, or a folder, which then holds such files."""
    return path.is_dir() or path.name.lower().endswith((".parquet", ".pq"))


def parquet_frame(path: Path) -> pd.DataFrame:
    """All rows of a file or a folder of files, in memory."""
    from rocerf.data.parquet import dataset_of, table_in

    if path.is_file():
        import pandas as pd

        return pd.read_parquet(path)
    frame: pd.DataFrame = table_in(dataset_of(path), path.name).to_pandas()
    return frame


class RowsInParquet:
    """Rows that nobody has read yet but for their labels; as :class:`~rocerf.cli.files.LabelledRows` otherwise."""

    def __init__(self, path: Path, label: str, favourable: Any, id_column: str | None) -> None:
        self.path, self.label, self.favourable, self.id_column = path, label, favourable, id_column

    @cached_property
    def _read(self) -> LabelledRows:
        from rocerf.cli.files import LabelledRows, read_features

        frame, labels = read_features(self.path, label=self.label, id_column=self.id_column)
        return LabelledRows(frame, labels.to_numpy(), self.favourable)

    @property
    def frame(self) -> pd.DataFrame:
        """The rows in memory, any columns, indexed by their ids."""
        return self._read.frame

    @property
    def labels(self) -> Any:
        """Their labels."""
        return self._read.labels

    def training_set(self) -> TrainingSet:
        """The rows as numbers, in memory."""
        return self._read.training_set()

    @property
    def large(self) -> bool:
        """Whether the table is too large to be held for a model that was fitted elsewhere."""
        from rocerf.data.parquet import dataset_of, reading

        dataset = dataset_of(self.path)
        with reading(self.path.name):
            return int(dataset.count_rows()) * len(dataset.schema.names) > LARGE

    def text_columns(self) -> list[str]:
        """Features that are texts, by the files' own types."""
        import pyarrow as pa

        texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_dictionary)
        return [name for name, kind in self._types().items() if any(is_text(kind) for is_text in texts)]

    def whole_columns(self) -> list[str]:
        """Features that are whole numbers, by the files' own types."""
        import pyarrow as pa

        return [name for name, kind in self._types().items() if pa.types.is_integer(kind)]

    def _types(self) -> dict[str, Any]:
        from rocerf.data.parquet import dataset_of, reading

        dataset = dataset_of(self.path)
        with reading(self.path.name):
            return {
                field.name: field.type for field in dataset.schema if field.name not in (self.label, self.id_column)
            }

    def kept_on_disk(self) -> TrainingSet:
        """The rows as numbers, on the disk."""
        return TrainingSet.from_parquet(self.path, label=self.label, id=self.id_column, favourable=self.favourable)


def labels_in(path: Path, label: str) -> list[Any]:
    """The labels in a Parquet file or folder, each once, and not the missing ones."""
    from rocerf.data.parquet import dataset_of, distinct, is_nan

    if not path.exists():
        raise FileFormatError(f"Expected a file at {path}, found none; check the path.")
    return [value for value in distinct(dataset_of(path), label) if value is not None and not is_nan(value)]
