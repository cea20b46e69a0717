"""A project: a folder with ``settings.yaml``, whose lines stand for options that are not typed.

``rocerf --project loans explain`` takes from ``loans/settings.yaml`` what the command was not given. A line holds for
every command that has such an option; a section named after a command holds for that one. Paths are those of the
folder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from typer.models import ArgumentInfo

from rocerf.errors import FileFormatError, OptionError

SETTINGS = "settings.yaml"


def defaults_of(folder: Path, commands: Mapping[str, Callable[..., Any]]) -> dict[str, dict[str, Any]]:
    """For each command, a function, what its options are by default, by the names of its parameters."""
    from rocerf.cli.files import read_mapping

    if not (folder / SETTINGS).is_file():
        raise FileFormatError(
            f"Expected a project with {SETTINGS} at {folder}, found none; rocerf init writes one from your rows."
        )
    given = read_mapping(folder / SETTINGS, "settings of a project")
    options = {name: _parameters(command) for name, command in commands.items()}
    shared = {name: value for name, value in given.items() if name not in commands}
    known = {option for own in options.values() for option in own}
    for name in shared:
        if name not in known:
            raise OptionError(
                f"Expected options or names of commands in {SETTINGS}, got {name!r}; options are written without the "
                "dashes, such as 'label: granted'."
            )
    return {name: _of_command(name, own, shared, given.get(name), folder) for name, own in options.items()}


def _of_command(
    command: str, options: Mapping[str, _Parameter], shared: Mapping[str, Any], own: Any, folder: Path
) -> dict[str, Any]:
    if not isinstance(own, Mapping | None):
        raise OptionError(f"Expected lines 'option: value' under {command!r} in {SETTINGS}, got {own!r}; correct it.")
    for name in own or {}:
        if name not in options:
            raise OptionError(f"Expected options of rocerf {command} in {SETTINGS}, got {name!r}; see its --help.")
    given = {name: value for name, value in shared.items() if name in options} | dict(own or {})
    return {options[name].name: _value(options[name], value, folder) for name, value in given.items()}


@dataclass(frozen=True)
class _Parameter:
    """A parameter of a command that is typed as an option."""

    name: str
    is_path: bool
    is_flag: bool
    is_list: bool


def _parameters(command: Callable[..., Any]) -> dict[str, _Parameter]:
    """The options of a command by what is typed, without dashes."""
    found = {}
    for name, hint in get_type_hints(command, include_extras=True).items():
        kind, *extras = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        # The first name that an option is given stands where a default would without Annotated.
        named = [text for extra in extras for text in (extra.default, *(extra.param_decls or ()))]
        typed = [text for text in named if isinstance(text, str) and text.startswith("--")]
        if not any(isinstance(extra, ArgumentInfo) for extra in extras) and name != "return":
            kinds = (kind, *get_args(kind))
            is_list = any(get_origin(one) is list for one in kinds)
            option = (typed[0][2:].partition("/")[0] if typed else name).replace("_", "-")
            found[option] = _Parameter(name, Path in kinds or list[Path] in kinds, bool in kinds, is_list)
    return found


def _value(option: _Parameter, value: Any, folder: Path) -> Any:
    """A value as it would have been typed; paths are those of the folder."""
    if option.is_list or isinstance(value, list):
        one = replace(option, is_list=False)
        return [_value(one, each, folder) for each in (value if isinstance(value, list) else [value])]
    if option.is_flag:
        return value
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return str(folder / text) if option.is_path else text
