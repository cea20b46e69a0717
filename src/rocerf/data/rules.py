"""Rules in words: linear relations between features, and conditions on a person's own values."""

from __future__ import annotations

import ast
import contextlib
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocerf.data.columns import in_words
from rocerf.errors import SchemaError
from rocerf.types import Array

_COMPARED = re.compile(r"(<=|>=|==|!=|<|>|=)")
_QUOTED = re.compile(r"`([^`]*)`")

_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
    "==": operator.eq,
    "!=": operator.ne,
}


@dataclass(frozen=True)
class Condition:
    """``column operator value`` about a person's own values, such as "age >= 60" or "housing == own".

    >>> Condition.parsed("`months employed` < 6")
    Condition(column='months employed', operator='<', value=6.0)
    """

    column: str
    operator: str
    value: Any

    @classmethod
    def parsed(cls, text: Any) -> Condition:
        """From its words; names with spaces or signs may stand in backticks."""
        parts, quoted = _sides(str(text), "\0{}\0")
        if not isinstance(text, str) or len(parts) != 3 or not parts[0].strip() or not parts[2].strip():
            raise SchemaError(
                f"Expected a condition such as 'age >= 60' or 'housing == own', got {text!r}; write a feature, one of "
                "<, <=, >, >=, ==, != and a value, names with signs in backticks."
            )
        left, right = (re.sub(r"\0(\d+)\0", lambda m: quoted[int(m[1])], part).strip() for part in (parts[0], parts[2]))
        value: Any = right.strip("'\"")
        with contextlib.suppress(ValueError):
            value = float(value) if np.isfinite(float(value)) else value
        return cls(left, "==" if parts[1] == "=" else parts[1], value)

    def holds(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        """Where it holds, for the feature's values (P,)."""
        given: Any = values
        if self.operator in ("==", "!=") and not isinstance(self.value, float):
            given = np.array([in_words(value) for value in values], dtype=object)
        elif values.dtype == object:
            given = np.array([_number(value) for value in values])
        return np.asarray(_OPERATORS[self.operator](given, self.value), dtype=bool)

    def refuse_strange_values(self, words: str, name: str, categories: Sequence[Any]) -> None:
        """Refuse what can never hold: a text compared with numbers, or a category that is not one of these."""
        order = self.operator not in ("==", "!=")
        if not categories or order:
            numbers = all(not np.isnan(_number(value)) for value in categories if value is not None)
            if not isinstance(self.value, float) or not numbers:
                raise SchemaError(
                    f"Expected a condition between numbers in {words!r} of {name!r}, got {self.value!r} for "
                    f"{self.column!r}{' (categories)' if categories else ''}; correct it, or name a category after == "
                    "or !=."
                )
            return
        same = Condition(self.column, "==", self.value).holds(np.array([*categories, None], dtype=object)[:-1])
        if not same.any():
            known = ", ".join(map(in_words, categories))
            raise SchemaError(
                f"Expected a category of {self.column!r} ({known}) in the condition {words!r} of {name!r}, got "
                f"{self.value!r}; correct the spelling."
            )


def _sides(text: str, mark: str) -> tuple[list[str], list[str]]:
    """What stands before, in and after a comparison, names in backticks as marks with their number; these names."""
    number = count()
    return _COMPARED.split(_QUOTED.sub(lambda _: mark.format(next(number)), text)), _QUOTED.findall(text)


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return np.nan


@dataclass(frozen=True)
class Relation:
    """``sum of coefficients * column <= upper`` between columns of schema space, with the words it was given in.

    A category is the 0/1 column ``feature=category``.

    >>> Relation.parsed("employed <= 12 * age - 192")[0].coefficients
    {'employed': 1.0, 'age': -12.0}
    """

    coefficients: Mapping[str, float]
    upper: float
    words: str = ""

    @classmethod
    def parsed(cls, text: Any) -> tuple[Relation, ...]:
        """From its words: sums of columns times numbers on both sides of <=, >= or ==, which makes two."""
        parts, quoted = _sides(str(text), "quoted_{}_")
        if isinstance(text, str) and len(parts) == 3 and parts[1] in ("<", ">", "!="):
            wanted = "say what may be" if parts[1] == "!=" else f"write {parts[1]}="
            raise SchemaError(f"Expected <=, >= or == in the relation {text!r}, got {parts[1]!r}; {wanted}.")
        if not isinstance(text, str) or len(parts) != 3 or parts[1] not in ("<=", ">=", "==", "="):
            raise SchemaError(
                f"Expected a relation such as 'months_employed <= 12 * age', got {text!r}; write sums of columns times "
                "numbers on both sides of <=, >= or ==, names with signs in backticks."
            )
        left, right = (_linear(part, quoted, text) for part in (parts[0], parts[2]))
        constant = right.pop("", 0.0) - left.pop("", 0.0)
        difference = {n: gap for n in {**left, **right} if (gap := left.get(n, 0.0) - right.get(n, 0.0))}
        if not difference:
            raise SchemaError(f"Expected a relation between columns, got {text!r}, which names none that matters.")
        lower_side = cls({name: -value for name, value in difference.items()}, -constant, text)
        upper_side = cls(difference, constant, text)
        return {"<=": (upper_side,), ">=": (lower_side,)}.get(parts[1], (upper_side, lower_side))

    def row(self, columns: Sequence[str]) -> Array:
        """Coefficients over these columns, shape (d,)."""
        row = np.zeros(len(columns))
        if not np.isfinite([self.upper, *self.coefficients.values()]).all():
            raise SchemaError(f"Expected finite numbers in the relation {self.words or dict(self.coefficients)!r}.")
        for name, value in self.coefficients.items():
            if name not in columns:
                raise SchemaError(
                    f"Expected columns of the schema in the relation {self.words!r}, got {name!r}; "
                    f"{_meant(name, self.words, columns)}."
                )
            row[columns.index(name)] = value
        return row


def _meant(name: str, words: str, columns: Sequence[str]) -> str:
    """What a name that no column has may have been meant for."""
    signs = [column for column in columns if not column.isidentifier() and column in words]
    if signs:
        return f"put names with signs in backticks: `{max(signs, key=len)}`"
    categories = [column for column in columns if column.startswith(f"{name}=")]
    if categories:
        return f"{name!r} has categories, each of which is a column of 0 and 1: `{categories[0]}`"
    near = get_close_matches(name, columns, 1)
    known = f"known: {', '.join(columns[:20])}" + (f" and {len(columns) - 20} more" if len(columns) > 20 else "")
    return f"perhaps {near[0]!r} is meant; {known}" if near else known


def _linear(text: str, quoted: Sequence[str], whole: str) -> dict[str, float]:
    """A sum as coefficients by name, the constant under ""."""
    try:
        return _of(ast.parse(text.strip(), mode="eval").body, quoted)
    except (SyntaxError, TypeError, KeyError) as error:
        raise SchemaError(
            f"Expected sums of columns times numbers in the relation {whole!r}, got {text.strip()!r}; put names with "
            "signs in backticks and leave out products of columns."
        ) from error


def _of(node: ast.expr, quoted: Sequence[str]) -> dict[str, float]:
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return {"": float(value)}
        case ast.Name(id=name):
            found = re.fullmatch(r"quoted_(\d+)_", name)
            return {quoted[int(found[1])] if found else name: 1.0}
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return {name: -value for name, value in _of(operand, quoted).items()}
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right):
            sign = 1.0 if isinstance(op, ast.Add) else -1.0
            one, other = _of(left, quoted), _of(right, quoted)
            return {name: one.get(name, 0.0) + sign * other.get(name, 0.0) for name in {**one, **other}}
        case ast.BinOp(left=left, op=ast.Mult() | ast.Div() as op, right=right):
            one, other = _of(left, quoted), _of(right, quoted)
            if isinstance(op, ast.Mult) and set(one) == {""}:
                one, other = other, one
            if set(other) != {""} or (isinstance(op, ast.Div) and other[""] == 0):
                raise TypeError("a product of columns")
            factor = other[""] if isinstance(op, ast.Mult) else 1.0 / other[""]
            return {name: factor * value for name, value in one.items()}
    raise TypeError("not a sum of columns times numbers")
