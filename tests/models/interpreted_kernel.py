"""The training kernel as Triton's interpreter runs it on the CPU, against the plain steps of a stack.

Triton decides at its own import whether it interprets, so these tests have a process of their own: run by
``test_fused_training.py`` with ``TRITON_INTERPRET=1``.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from fused_cases import CASES, CPU, KEPT, SEEDS, distance, task
from rocerf.models.network import fused
from rocerf.models.network.network import Architecture
from rocerf.models.network.training import Training, train_stack


@pytest.fixture(autouse=True)
def lengths_of_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of a loop is an array of one number there, which NumPy 2.4 does not take for a number any more."""
    from triton.runtime import interpreter

    patch = interpreter._patch_lang_tensor

    def patched(tensor: Any, scope: Any) -> None:
        patch(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: self.handle.data.item())

    monkeypatch.setattr(interpreter, "_patch_lang_tensor", patched)


@pytest.mark.parametrize(("sizes", "options"), CASES)
def test_the_kernel_trains_the_networks_that_plain_steps_train(
    sizes: tuple[int, int, int], options: dict[str, Any]
) -> None:
    inputs, width, hidden = sizes
    how = Training(**({"learning_rate": 0.2, "epochs": 3} | options))
    start = Architecture.of(inputs, width=width, hidden_layers=hidden).initial(SEEDS)
    plain = train_stack(task(inputs), start, KEPT, SEEDS, how)
    found = fused.train_fused(task(inputs), start, KEPT, SEEDS, how, CPU, None)
    assert found is not None
    assert [p.shape for p in found] == [p.shape for p in start]
    assert distance(found, plain) < 2e-6
    assert distance(plain, start) > 0.01


def test_padding_stays_zero_whatever_is_learned() -> None:
    how = Training(learning_rate=0.5, batch_size=5, epochs=1, weight_decay=0.1)
    start = Architecture.of(3, width=4).initial(SEEDS)
    run = fused.fused_run(task(3), start, KEPT, how, CPU)
    assert run is not None
    orders = fused.Orders(KEPT, SEEDS, shuffle=True, device=CPU)
    with ThreadPoolExecutor(1) as pool:
        run.epoch(orders.of_epoch(0, pool), orders.which)
    real = np.hstack([p.reshape(len(SEEDS), -1) for p in run.result()])
    stack = run.stack.numpy()
    assert np.count_nonzero(real) == real.size
    assert np.count_nonzero(stack) == real.size < stack.size


def test_large_activities_neither_overflow_nor_lose_their_place() -> None:
    """Softplus far beyond the 20 at which torch takes z itself, and far below, where it is nothing."""
    start = Architecture.of(3, width=4).initial(SEEDS)
    start[0] *= 80.0
    how = Training(learning_rate=0.001, batch_size=8, epochs=1)
    plain = train_stack(task(3), start, KEPT, SEEDS, how)
    found = fused.train_fused(task(3), start, KEPT, SEEDS, how, CPU, None)
    assert found is not None
    assert distance(plain, start) > 0.01
    for a, b in zip(found, plain, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-6, atol=2e-6)


def test_progress_is_told_each_epoch_and_may_interrupt() -> None:
    heard: list[int] = []

    def tell(done: int) -> None:
        heard.append(done)
        if len(heard) == 2:
            raise InterruptedError

    start = Architecture.of(3, width=4).initial(SEEDS)
    with pytest.raises(InterruptedError):
        fused.train_fused(task(3), start, KEPT, SEEDS, Training(epochs=1_000_000), CPU, tell)
    assert heard == [5, 10]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, about numbers that overflow in the interpreter
def test_a_network_that_diverges_does_not_come_back_as_one_that_learned() -> None:
    start = Architecture.of(3, width=4).initial(SEEDS)
    how = Training(learning_rate=1e20, batch_size=16, epochs=2)
    plain = train_stack(task(3), start, KEPT, SEEDS, how)
    found = fused.train_fused(task(3), start, KEPT, SEEDS, how, CPU, None)
    assert found is not None
    finite = [[np.isfinite(p[m]).all() for m in range(len(SEEDS))] for p in (_flat(plain), _flat(found))]
    assert finite[0] == finite[1]
    assert not all(finite[0])


def _flat(stack: list[np.ndarray]) -> np.ndarray:
    return np.hstack([p.reshape(len(p), -1) for p in stack])
