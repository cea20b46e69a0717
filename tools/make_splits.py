"""Makes the files in src/rocerf/data/embedded: UCI's tables as gzip, and splits.npz.

Run once, by hand, where the source files are at hand::

    PYTHONPATH=src python tools/make_splits.py DATA_FOLDER

DATA_FOLDER holds ``uci/`` (german.data, adult.data.gz, adult.test.gz), ``openxai/`` (the
published train and test files) and ``propublica/`` (the COMPAS table). The result is the same
bytes every time: gzip without a time stamp, and numpy writes npz with a constant one.

splits.npz holds, as 16-bit numbers in the order of the published files,

- ``german_*``, ``adult_*``: row numbers in UCI's files (Adult: adult.data, then adult.test);
- ``compas_*``: positions in the sorted final table, because no row of it may be passed on.

Adult and COMPAS have rows that are equal in every column. Which of two equal rows went to train
cannot be known; the n-th one met in the published files is taken to be the n-th in the source.
"""

from __future__ import annotations

import argparse
import gzip
from collections import defaultdict, deque
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd

EMBEDDED = Path(__file__).resolve().parents[1] / "src" / "rocerf" / "data" / "embedded"


def published(data: Path, name: str) -> list[pd.DataFrame]:
    """The published train and test file of a data set."""
    ending = ".csv.gz" if name == "adult" else ".csv"
    return [pd.read_csv(data / "openxai" / f"{name}-{part}{ending}") for part in ("train", "test")]


def match(source: pd.DataFrame, parts: Iterable[pd.DataFrame]) -> list[np.ndarray]:
    """For each row of the parts the index of an equal row of the source, each used exactly once."""
    waiting: dict[tuple[int, ...], deque[int]] = defaultdict(deque)
    for index, row in zip(source.index.tolist(), source.to_numpy().tolist(), strict=True):
        waiting[tuple(row)].append(index)
    matched = []
    for part in parts:
        if list(part.columns) != list(source.columns):
            raise SystemExit("the columns built from the source are not the published ones")
        matched.append(np.array([waiting[tuple(row)].popleft() for row in part.to_numpy().tolist()], dtype=np.uint16))
    if any(waiting.values()):
        raise SystemExit("some source rows are in neither published file")
    return matched


def write_gzip(content: bytes, target: Path) -> None:
    """Write gzip that depends on the content only."""
    target.write_bytes(gzip.compress(content, compresslevel=9, mtime=0))


def main() -> None:
    """Read the data folder, write the embedded files, print the digest of the COMPAS table."""
    parser = argparse.ArgumentParser(description="Make the embedded data files.")
    parser.add_argument("data", type=Path, help="folder with uci/, openxai/ and propublica/")
    parser.add_argument("--out", type=Path, default=EMBEDDED, help="where to write (default: the package)")
    options = parser.parse_args()
    data: Path = options.data
    out: Path = options.out
    out.mkdir(parents=True, exist_ok=True)

    write_gzip((data / "uci" / "german.data").read_bytes(), out / "german.data.gz")
    for name in ("adult.data.gz", "adult.test.gz"):
        write_gzip(gzip.decompress((data / "uci" / name).read_bytes()), out / name)

    # Imported only now: these modules read the UCI files just written into the package.
    from rocerf.data import adult, compas, german

    splits: dict[str, np.ndarray] = {}
    # The published German labels are not those of their rows, so only the features are matched.
    features = german.uci_table().drop(columns=german.LABEL)
    parts = [part.drop(columns=german.LABEL) for part in published(data, "german")]
    splits["german_train"], splits["german_test"] = match(features, parts)
    splits["adult_train"], splits["adult_test"] = match(adult.uci_table(), published(data, "adult"))
    table = compas.read_table(data / "propublica" / "compas-scores-two-years.noid.csv.gz")
    ordered = table.iloc[compas.sorted_order(table.to_numpy())].reset_index(drop=True)
    splits["compas_train"], splits["compas_test"] = match(ordered, published(data, "compas"))
    np.savez_compressed(out / "splits.npz", **splits)  # type: ignore[arg-type]
    print("sorted COMPAS table:", compas.table_digest(table.to_numpy()))


if __name__ == "__main__":
    main()
