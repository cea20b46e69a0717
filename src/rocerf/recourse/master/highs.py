"""The one call of HiGHS for mixed-integer programs.

HiGHS's own interface instead of SciPy's: it lets the tolerances of whole numbers be set, and keeps silent (the HiGHS
inside SciPy prints lines to the standard output, where our commands write their results).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import highspy
import numpy as np
from numpy.typing import NDArray

from rocerf.types import Array

#: Seconds after which HiGHS is asked for the best it has.
TIME_LIMIT = 60.0

#: A row of a program: coefficients by variable, least and greatest value.
Row = tuple[Mapping[int, float], float, float]

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


@dataclass(frozen=True, eq=False)
class Answer:
    """The best values of the variables, if any; their objective and a lower bound of it; whether there can be none."""

    values: Array | None
    value: float = np.nan
    bound: float = np.nan
    infeasible: bool = False


def minimised(
    objective: Array,
    lower: Array,
    upper: Array,
    rows: Sequence[Row],
    whole: NDArray[np.bool_] | None = None,
    *,
    presolve: bool = True,
) -> Answer:
    """``min objective z`` under rows and bounds, the entries ``whole`` (z) whole numbers.

    Without ``presolve`` HiGHS solves the program as it stands.

    >>> row = ({0: 2.0}, 5.0, np.inf)  # 2 z >= 5
    >>> minimised(np.array([1.0]), np.array([0.0]), np.array([9.0]), [row], np.array([True])).values.tolist()
    [3.0]
    """
    program = highspy.HighsLp()
    program.num_col_, program.num_row_ = len(objective), len(rows)
    program.col_cost_, program.col_lower_, program.col_upper_ = objective, lower, upper
    program.row_lower_ = np.array([least for _, least, _ in rows])
    program.row_upper_ = np.array([most for _, _, most in rows])
    if whole is not None and whole.any():
        kinds = highspy.HighsVarType
        program.integrality_ = [kinds.kInteger if w else kinds.kContinuous for w in whole]
    matrix = program.a_matrix_
    matrix.format_ = highspy.MatrixFormat.kRowwise
    matrix.start_ = np.concatenate([[0], np.cumsum([len(row) for row, _, _ in rows])]).astype(np.int32)
    matrix.index_ = np.array([j for row, _, _ in rows for j in row], dtype=np.int32)
    matrix.value_ = np.array([value for row, _, _ in rows for value in row.values()], dtype=np.float64)
    solver = highspy.Highs()
    for name, value in _OPTIONS.items():
        solver.setOptionValue(name, value)
    solver.setOptionValue("presolve", "choose" if presolve else "off")
    solver.passModel(program)
    solver.run()
    status, info = solver.getModelStatus(), solver.getInfo()
    if info.primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
        return Answer(None, infeasible=status == highspy.HighsModelStatus.kInfeasible)
    mixed = whole is not None and bool(whole.any())
    value = float(info.objective_function_value)
    bound = min(float(info.mip_dual_bound), value) if mixed else value
    return Answer(np.array(solver.getSolution().col_value), value, bound)
