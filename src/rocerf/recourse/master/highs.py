"""The one call of HiGHS, for linear and mixed-integer programs.

HiGHS's own interface instead of SciPy's: it lets the tolerances of whole numbers be set, and keeps silent (the HiGHS
inside SciPy prints lines to the standard output, where our commands write their results). OR-Tools (optbinning stands
on it) brings a HiGHS of its own under the same name, and of two such libraries only the first can be loaded in one
process: the import of the second fails. So where OR-Tools is installed, whether it was imported or will be, the HiGHS
inside SciPy, which shares its name with nobody, is called by the same interface.
"""

from __future__ import annotations

import importlib
import importlib.util
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from rocerf.types import Array, Mask

#: Seconds after which HiGHS is asked for the best it has.
TIME_LIMIT = 60.0

_OPTIONS = {
    "output_flag": False,
    "threads": 1,
    "random_seed": 0,
    "time_limit": TIME_LIMIT,
    # Tighter than the guard by which points clear their promise.
    "primal_feasibility_tolerance": 1e-9,
    "mip_feasibility_tolerance": 1e-9,
    "mip_rel_gap": 1e-7,
    "mip_abs_gap": 1e-9,
}


@cache
def _library() -> tuple[Any, Any]:
    """HiGHS's own module, and the class of its solvers."""
    if importlib.util.find_spec("ortools") is not None:
        with suppress(ImportError):  # SciPy keeps it where it likes
            inside = importlib.import_module("scipy.optimize._highspy._core")
            return inside, inside._Highs
    own = importlib.import_module("highspy")
    return own, own.Highs


@dataclass(frozen=True, eq=False)
class Answer:
    """The best values of the variables, if any; their objective and a lower bound of it; whether there can be none."""

    values: Array | None
    value: float = np.nan
    bound: float = np.nan
    infeasible: bool = False


def minimised(
    objective: Array,
    bounds: tuple[Array, Array],
    rows: Any,
    limits: tuple[Array, Array],
    whole: Mask | None = None,
    **options: Any,
) -> Answer:
    """``min objective z`` with z and ``rows z`` (a sparse matrix in CSR form) inside bounds and limits, both least and
    most; the entries ``whole`` (z) are whole numbers. ``options`` are HiGHS's own.

    >>> from scipy.sparse import csr_array
    >>> twice = csr_array([[2.0]]), (np.array([5.0]), np.array([np.inf]))  # 2 z >= 5
    >>> minimised(np.ones(1), (np.zeros(1), np.array([9.0])), *twice, np.array([True])).values.tolist()
    [3.0]
    """
    mixed = whole is not None and bool(whole.any())
    highspy, solvers = _library()
    program = highspy.HighsLp()
    program.num_row_, program.num_col_ = rows.shape
    program.col_cost_, (program.col_lower_, program.col_upper_) = objective, bounds
    program.row_lower_, program.row_upper_ = limits
    if whole is not None and mixed:
        kinds = highspy.HighsVarType
        program.integrality_ = [kinds.kInteger if w else kinds.kContinuous for w in whole]
    matrix = program.a_matrix_
    matrix.format_ = highspy.MatrixFormat.kRowwise
    matrix.start_, matrix.index_, matrix.value_ = rows.indptr, rows.indices, rows.data
    solver = solvers()
    for name, value in (_OPTIONS | options).items():
        solver.setOptionValue(name, value)
    solver.passModel(program)
    solver.run()
    status, info = solver.getModelStatus(), solver.getInfo()
    if info.primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
        return Answer(None, infeasible=status == highspy.HighsModelStatus.kInfeasible)
    value = float(info.objective_function_value)
    bound = min(float(info.mip_dual_bound), value) if mixed else value
    return Answer(np.array(solver.getSolution().col_value), value, bound)
