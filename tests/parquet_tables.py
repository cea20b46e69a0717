"""Training sets written as Parquet, for tests that read them again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from rocerf import TrainingSet


def table_of(train: TrainingSet) -> pd.DataFrame:
    """The rows with their labels in the column ``good`` and their ids in ``who``."""
    return train.frame().assign(good=train.y.astype(int), who=train.ids).reset_index(drop=True)


def written(table: pd.DataFrame, folder: Path, parts: int) -> Path:
    """The table as so many files in a folder, in its order, some of them in several row groups."""
    folder.mkdir()
    for number, rows in enumerate(np.array_split(np.arange(len(table)), parts)):
        groups = {"row_group_size": 100} if number % 3 == 0 else {}
        table.iloc[rows].to_parquet(folder / f"part-{number:03d}.parquet", index=False, **groups)
    return folder
