"""The kernel that goes through an epoch at once, against the plain steps of a stack.

Triton's interpreter runs the kernel on the CPU, so its arithmetic is tested wherever Triton can be imported; what the
compiler makes of it is tested where there is a GPU.
"""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fused_cases import CASES, CPU, KEPT, SEEDS, distance, task
from rocerf.models.network import fused
from rocerf.models.network import training as network_training
from rocerf.models.network.network import Architecture
from rocerf.models.network.training import Training, train_stack

needs_triton = pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed here")
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")


@pytest.mark.slow
@needs_triton
def test_the_interpreted_kernel() -> None:
    cases = Path(__file__).with_name("interpreted_kernel.py")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(cases)]
    done = subprocess.run(
        command, env=os.environ | {"TRITON_INTERPRET": "1"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(CASES) + 4} passed" in done.stdout


@pytest.mark.parametrize("shuffle", [True, False])
def test_orders_are_those_of_the_plain_steps(shuffle: bool) -> None:
    """The rows in the order of the places, against the table that the plain steps go by."""
    kept, seeds = [*KEPT, KEPT[1] + 0, KEPT[3]], [*SEEDS, 5, 11]
    how = Training(batch_size=4, shuffle=shuffle)
    orders = fused.Orders(kept, seeds, shuffle=shuffle, device=CPU)
    assert len(orders.distinct) == (6 if shuffle else 1)  # 5 with 22 rows is drawn once
    with ThreadPoolExecutor(2) as pool:
        for epoch in range(3):
            table = network_training._batches(kept, seeds, epoch, how, pool)
            places = orders.of_epoch(epoch, pool).numpy()
            for m, rows in enumerate(kept):
                expected = table[:, m].reshape(-1)
                assert rows[places[orders.which[m], : len(rows)]].tolist() == expected[expected >= 0].tolist()


def test_orders_in_use_are_not_overwritten_by_those_drawn_ahead() -> None:
    orders = fused.Orders(KEPT, SEEDS, shuffle=True, device=CPU)
    with ThreadPoolExecutor(2) as pool:
        first = orders.of_epoch(0, pool)
        before = first.clone()
        orders.of_epoch(1, pool)
    assert torch.equal(first, before)


@pytest.mark.parametrize(
    ("shape", "options"),
    [
        pytest.param((3, 4, 3), {}, id="three hidden layers"),
        pytest.param((3, 200, 2), {}, id="too wide"),
        pytest.param((200, 4, 2), {}, id="too many inputs"),
        pytest.param((3, 4, 2), {"batch_size": 1000}, id="too long a batch"),
        pytest.param((3, 4, 2), {"precision": "float64"}, id="float64"),
    ],
)
def test_what_does_not_fit_is_left_to_the_plain_steps(shape: tuple[int, int, int], options: dict[str, Any]) -> None:
    inputs, width, hidden = shape
    start = Architecture.of(inputs, width=width, hidden_layers=hidden).initial(SEEDS)
    assert fused.train_fused(task(inputs), start, KEPT, SEEDS, Training(**options), CPU, None) is None


def test_layers_of_different_width_are_left_to_the_plain_steps() -> None:
    start = [np.zeros((2, *shape)) for shape in ((4, 3), (4,), (5, 4), (5,), (1, 5), (1,))]
    assert fused.Tiles.of(start, 8) is None


def test_a_kernel_that_does_not_run_is_left_to_the_plain_steps_with_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_run: fused.FusedRun) -> None:
        raise RuntimeError("Failed to find C compiler.\nMore")

    monkeypatch.setattr(fused.fused_kernel, "AVAILABLE", True)
    monkeypatch.setattr(fused.FusedRun, "compile", broken)
    start = Architecture.of(3, width=4).initial(SEEDS)
    with pytest.warns(
        UserWarning, match=r"does not run here \(RuntimeError: Failed to find C compiler\.\); training st"
    ):
        assert fused.train_fused(task(3), start, KEPT, SEEDS, Training(), CPU, None) is None


@needs_gpu
@needs_triton
@pytest.mark.parametrize(("sizes", "options"), CASES)
def test_on_a_gpu_the_kernel_trains_the_networks_of_the_cpu(
    sizes: tuple[int, int, int], options: dict[str, Any]
) -> None:
    inputs, width, hidden = sizes
    how = Training(**({"learning_rate": 0.2, "epochs": 3} | options))
    start = Architecture.of(inputs, width=width, hidden_layers=hidden).initial(SEEDS)
    plain = train_stack(task(inputs), start, KEPT, SEEDS, how)
    found = fused.train_fused(task(inputs), start, KEPT, SEEDS, how, torch.device("cuda"), None)
    assert found is not None
    assert distance(found, plain) < 1e-5
