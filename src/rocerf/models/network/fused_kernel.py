"""An epoch of training as one GPU kernel: one program for each network, its parameters on the chip all the while.

A step of a stack is some forty kernels when torch does it, and each waits for the one before: for networks as small as
these the waiting takes far longer than the arithmetic. Here a network's own program goes through all its batches.

Written in Triton, whose tiles have sides that are powers of two. So inputs, units and batches are padded: with columns
of zeros, with units whose weights are zero and whose activity is held at zero (then their slopes are zero as well, and
weight decay takes nothing away from them), and with rows that weigh nothing.
"""

# Triton reads the annotations of a kernel as its own, so there are none of ours.
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-incomplete-defs=False

from __future__ import annotations

from typing import Any

try:
    import triton
    import triton.language as tl
except ModuleNotFoundError:  # torch brings it along with CUDA on Linux, and nowhere else
    triton = tl = None

AVAILABLE = triton is not None


def _jit(function: Any) -> Any:
    # A table of another length needs no kernel of its own.
    return function if triton is None else triton.jit(function, do_not_specialize=["longest"])


@_jit
def _activity(z, unit, WIDTH: tl.constexpr):
    """Centred softplus of (B, H) and its slope; nothing where there is no unit.

    ``max(z, 0) + log(1 + exp(-|z|))`` cannot overflow. Beyond 20, where torch takes z itself, it is z to rounding.
    """
    small = tl.exp(-tl.abs(z))
    value = tl.maximum(z, 0.0) + tl.log(1.0 + small) - 0.6931471805599453
    return tl.where((unit < WIDTH)[None, :], value, 0.0), tl.where(z >= 0.0, 1.0, small) / (1.0 + small)


@_jit
def _error(logits, labels):
    """Slope of the cross entropy by the logit: probability less label."""
    small = tl.exp(-tl.abs(logits))
    return tl.where(logits >= 0.0, 1.0, small) / (1.0 + small) - labels


@_jit
def _moved(parameter, slope, rate, decay):
    return parameter - rate * (slope + decay * parameter)


@_jit
def _look_up(table, at, there):
    return tl.load(table + at, mask=there, other=0)


@_jit
def _batch(rows, facts, row, there, D: tl.constexpr):
    """Rows (B, D), labels and weights (B,) at these row numbers; zeros where there is none."""
    x = tl.load(rows + row[:, None] * D + tl.arange(0, D)[None, :], mask=there[:, None], other=0.0)
    label = tl.load(facts + row * 2, mask=there, other=0.0)
    weight = tl.load(facts + row * 2 + 1, mask=there, other=0.0)
    return x, label, weight


@_jit
def _step(
    x, label, weight, rows, w1, b1, w2, b2, w3, b3, rate, decay,
    HIDDEN: tl.constexpr, WIDTH: tl.constexpr, H: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """The parameters after a step on a batch of so many rows; those of missing layers come back untouched."""
    unit = tl.arange(0, H)
    seen = x
    if HIDDEN > 0:
        h1, slope1 = _activity(tl.dot(x, tl.trans(w1), input_precision=PRECISION) + b1[None, :], unit, WIDTH)
        seen = h1
    if HIDDEN > 1:
        h2, slope2 = _activity(tl.dot(h1, tl.trans(w2), input_precision=PRECISION) + b2[None, :], unit, WIDTH)
        seen = h2
    logits = tl.sum(seen * w3[None, :], 1) + b3
    error = weight * _error(logits, label) / rows.to(tl.float32)

    back = error[:, None] * w3[None, :]  # the loss by the activities, layer by layer
    w3 = _moved(w3, tl.sum(error[:, None] * seen, 0), rate, decay)
    b3 = _moved(b3, tl.sum(error, 0), rate, decay)
    if HIDDEN > 1:
        dz2 = back * slope2
        back = tl.dot(dz2, w2, input_precision=PRECISION)
        w2 = _moved(w2, tl.dot(tl.trans(dz2), h1, input_precision=PRECISION), rate, decay)
        b2 = _moved(b2, tl.sum(dz2, 0), rate, decay)
    if HIDDEN > 0:
        dz1 = back * slope1
        w1 = _moved(w1, tl.dot(tl.trans(dz1), x, input_precision=PRECISION), rate, decay)
        b1 = _moved(b1, tl.sum(dz1, 0), rate, decay)
    return w1, b1, w2, b2, w3, b3


@_jit
def epoch(
    stack, size, rows, facts, kept, orders, which, counts, longest, rate, decay,
    HIDDEN: tl.constexpr, WIDTH: tl.constexpr, BATCH: tl.constexpr,
    D: tl.constexpr, H: tl.constexpr, B: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """All steps of one epoch of network ``program_id(0)``; parameters are read at the start and written at the end.

    ``stack`` (M, size): the padded parameters of a network one after the other. ``rows`` (n, D), ``facts`` (n, 2):
    label and weight. ``kept`` (M, longest): row numbers of each network, of which it has ``counts`` (M,). ``orders``
    (., longest): places in a line of ``kept``; network m goes by line ``which[m]``. WIDTH and BATCH are sizes before
    padding to H and B.

    Rows are fetched ahead, one look-up a step: place, then row number, then row.
    """
    network = tl.program_id(0).to(tl.int64)
    unit, column = tl.arange(0, H), tl.arange(0, D)
    stack += network * size
    w1_at = stack + unit[:, None] * D + column[None, :]
    b1_at = stack + H * D + unit
    w2_at = b1_at[None, :] + H + unit[:, None] * H
    b2_at = b1_at + H + H * H
    w3_at = (stack + column) if HIDDEN == 0 else (b1_at + H if HIDDEN == 1 else b2_at + H)
    b3_at = stack + size - 1
    w3, b3 = tl.load(w3_at), tl.load(b3_at)
    w1, b1 = (tl.load(w1_at), tl.load(b1_at)) if HIDDEN > 0 else (w3, b3)
    w2, b2 = (tl.load(w2_at), tl.load(b2_at)) if HIDDEN > 1 else (w3, b3)

    count = tl.load(counts + network)
    kept += network * longest
    orders += tl.load(which + network).to(tl.int64) * longest
    lane = tl.arange(0, B)
    lane = tl.where(lane < BATCH, lane, 1 << 30)  # lanes beyond the batch are beyond every end
    row = _look_up(kept, _look_up(orders, lane, lane < count), lane < count)
    x, label, weight = _batch(rows, facts, row, lane < count, D)
    row = _look_up(kept, _look_up(orders, BATCH + lane, lane < count - BATCH), lane < count - BATCH)
    place = _look_up(orders, 2 * BATCH + lane, lane < count - 2 * BATCH)
    for begin in range(0, count, BATCH):
        left = count - begin
        next_x, next_label, next_weight = _batch(rows, facts, row, lane < left - BATCH, D)
        row = _look_up(kept, place, lane < left - 2 * BATCH)
        place = _look_up(orders, begin + 3 * BATCH + lane, lane < left - 3 * BATCH)
        there = tl.minimum(left, BATCH)
        w1, b1, w2, b2, w3, b3 = _step(
            x, label, weight, there, w1, b1, w2, b2, w3, b3, rate, decay, HIDDEN, WIDTH, H, PRECISION
        )
        x, label, weight = next_x, next_label, next_weight

    tl.store(w3_at, w3)
    tl.store(b3_at, b3)
    if HIDDEN > 0:
        tl.store(w1_at, w1)
        tl.store(b1_at, b1)
    if HIDDEN > 1:
        tl.store(w2_at, w2)
        tl.store(b2_at, b2)
