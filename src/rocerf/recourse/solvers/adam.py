"""Adam (Kingma and Ba), for the gradient methods among solvers and baselines."""

from __future__ import annotations

from typing import Any


class Adam:
    """Steps for P people at once, each with a count of steps of their own; arrays of NumPy or torch.

    ``like`` (P, d) gives shape and kind of the arrays; ``first`` and ``second`` are the shares kept of the means of
    gradients and their squares.

    >>> import numpy as np
    >>> adam = Adam(np.zeros((1, 2)), 0.5)
    >>> adam.move(np.array([[3.0, -0.1]])).round(6).tolist()  # the first step is the sign
    [[0.5, -0.5]]
    """

    def __init__(
        self, like: Any, step_size: float, *, first: float = 0.9, second: float = 0.999, epsilon: float = 1e-8
    ) -> None:
        self.step_size, self.shares, self.epsilon = step_size, (first, second), epsilon
        self.first, self.second = 0.0 * like, 0.0 * like
        self.first_left, self.second_left = 0.0 * like[:, :1] + 1.0, 0.0 * like[:, :1] + 1.0

    def move(self, gradient: Any) -> Any:
        """What to take from the iterate (P, d)."""
        first, second = self.shares
        self.first *= first
        self.first += (1 - first) * gradient
        self.second *= second
        self.second += (1 - second) * gradient * gradient
        self.first_left *= first
        self.second_left *= second
        size = (self.second / (1 - self.second_left)) ** 0.5 + self.epsilon
        return self.step_size / (1 - self.first_left) * self.first / size

    def restart(self, people: Any) -> None:
        """Forget the past of these people, a mask (P,)."""
        self.first[people], self.second[people] = 0.0, 0.0
        self.first_left[people], self.second_left[people] = 1.0, 1.0

    def keep(self, people: Any) -> None:
        """Go on with these people only, a mask (P,)."""
        self.first, self.second = self.first[people], self.second[people]
        self.first_left, self.second_left = self.first_left[people], self.second_left[people]
