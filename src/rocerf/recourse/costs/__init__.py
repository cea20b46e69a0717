"""What a change costs a person: norms, percentiles, price tables, and whatever else follows the protocol."""

from rocerf.recourse.costs.cost import Cost, Norm
from rocerf.recourse.costs.registry import register_cost

__all__ = ["Cost", "Norm", "register_cost"]
