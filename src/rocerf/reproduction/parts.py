"""Parts of one run put together: made in several sittings or on several machines, by the same code and settings.

A part is the folder of a run, or one file packed from it (:func:`pack`) that holds the settings and the record of every
job: all that tables and report are made from, without the arrays, of which retrained networks are large. Parts of other
code, other settings or other data are refused; where and with what each job was made is in its record.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rocerf.data.documents import yaml_document
from rocerf.errors import FileFormatError, OptionError
from rocerf.reproduction.code_hash import code_hash
from rocerf.reproduction.jobs import JobFolder, Plan
from rocerf.reproduction.settings import ExperimentSettings
from rocerf.storage.whole_file import write_bytes, write_files

#: Settings in which parts may differ: what is crossed (the whole has it all), and where networks live.
CROSSED = ("datasets", "models", "settings", "methods")
WHERE = ("device",)

#: Moment that a packed file gives its entries: packing the same records twice gives the same bytes.
EPOCH = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class Part:
    """The settings and records of one part; ``folder`` is where its arrays are, if anywhere."""

    path: Path
    settings: ExperimentSettings
    records: dict[str, dict[str, Any]] = field(repr=False)
    folder: JobFolder | None = None


def pack(folder: Path, file: Path) -> Path:
    """Write the settings and the records of a run's jobs into one zip file."""
    jobs = JobFolder(folder / "jobs")
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in (folder / "settings.yaml", *map(jobs.record_path, jobs.names())):
            entry = zipfile.ZipInfo(path.relative_to(folder).as_posix(), EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            packed.writestr(entry, path.read_bytes())
    file.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(file, content.getvalue())
    return file


def read_part(path: Path) -> Part:
    """A part from the folder of a run, or from a packed file."""
    if path.is_dir():
        if not (path / "settings.yaml").is_file():
            raise FileFormatError(f"Expected the folder of a run, got {path} without settings.yaml; name another.")
        jobs = JobFolder(path / "jobs")
        records = {name: jobs.record(name) for name in jobs.names()}
        return Part(path, ExperimentSettings.read(path / "settings.yaml"), _checked(path, records), jobs)
    try:
        with zipfile.ZipFile(path) as packed:
            texts = {name: packed.read(name).decode("utf-8") for name in packed.namelist()}
            records = {name[5:-5]: json.loads(texts[name]) for name in texts if re.fullmatch(r"jobs/[^/]+\.json", name)}
            settings = ExperimentSettings.from_dict(yaml_document(texts["settings.yaml"]))
    except (OSError, ValueError, KeyError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        said = " ".join(str(error).split())
        raise FileFormatError(
            f"Expected the folder of a run or a file packed from one, got {path} ({said}); name another."
        ) from None
    return Part(path, settings, _checked(path, records))


def _checked(path: Path, records: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The finished jobs among the records; each must be about the job that its file is named after."""
    for name, record in records.items():
        whose = (record.get("job"), *record.get("files", ())) if isinstance(record, dict) else ()
        if not whose or whose[0] != name or any(re.fullmatch(r"[\w.+-]+", str(file)) is None for file in whose):
            raise FileFormatError(
                f"Expected the record of a job in {name}.json of {path}, got something else; remove it."
            )
    return {name: record for name, record in records.items() if record.get("status") == "done"}


def joined_settings(parts: Sequence[Part]) -> ExperimentSettings:
    """The settings of the whole: what is crossed in any part; everything else must be the same in all."""
    first = parts[0].settings
    for part in parts[1:]:
        ours, theirs = first.to_dict(), part.settings.to_dict()
        for name in ours:
            if name not in (*CROSSED, *WHERE) and ours[name] != theirs[name]:
                raise OptionError(
                    f"Expected parts of the same settings, got {name} {ours[name]!r} in {parts[0].path} and "
                    f"{theirs[name]!r} in {part.path}; run one of them again."
                )
    crossed = {name: [value for part in parts for value in getattr(part.settings, name)] for name in CROSSED}
    return first.changed(**crossed)


def refuse_other_code(parts: Sequence[Part], plan: Plan) -> None:
    """Refuse parts in which jobs of the plan were computed by other code than the one at hand."""
    ours = code_hash()
    for part in parts:
        hashes = {name: str(record.get("made", {}).get("code_sha256")) for name, record in part.records.items()}
        strange = [name for name in hashes if name in plan.jobs and hashes[name] != ours]
        if strange:
            theirs = sorted({hashes[name][:12] for name in strange})
            raise OptionError(
                f"Expected jobs made by the code at hand ({ours[:12]}), got {len(strange)} of {part.path} made by "
                f"other code ({', '.join(theirs)}); check that commit out, or run them again."
            )


def take_over(parts: Sequence[Part], plan: Plan, target: JobFolder) -> None:
    """Put the files of the plan's jobs into the target; where several parts have a job, the first one counts."""
    taken: dict[str, Part] = {}
    for part in parts:
        known = {name: record for name, record in part.records.items() if name in plan.jobs}
        strange = [name for name, record in known.items() if record.get("hash") != plan.hashes[name]]
        if strange:
            raise OptionError(
                f"Expected jobs with the inputs and data at hand, got {len(strange)} others in {part.path}, the first "
                f"{strange[0]}; look whether its data files are the same as here."
            )
        for name in known:
            taken.setdefault(name, part)
    target.path.mkdir(parents=True, exist_ok=True)
    for name, part in taken.items():
        if part.folder is None or part.folder.path.resolve() != target.path.resolve():
            write_files((target.path / file, content) for file, content in _files(part, name))


def _files(part: Part, name: str) -> Iterator[tuple[str, bytes | str]]:
    """The files of one job, the record last."""
    if part.folder is not None and part.folder.is_whole(name):
        for file in part.records[name]["files"]:
            yield file, (part.folder.path / file).read_bytes()
    yield f"{name}.json", json.dumps(part.records[name], indent=1, allow_nan=False)
