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
def _layer(inputs, w, b, WIDTH: tl.constexpr, H: tl.constexpr, PRECISION: tl.constexpr):
    """Activities (B, H) of a hidden layer, and their slopes."""
    return _activity(tl.dot(inputs, tl.trans(w), input_precision=PRECISION) + b[None, :], tl.arange(0, H), WIDTH)


@_jit
def _learned(dz, inputs, w, b, rate, decay, PRECISION: tl.constexpr):
    """Weights and biases of a hidden layer after a step, from the slopes (B, H) of the loss by what goes in there."""
    to_w = tl.dot(tl.trans(dz), inputs, input_precision=PRECISION)
    return _moved(w, to_w, rate, decay), _moved(b, tl.sum(dz, 0), rate, decay)


@_jit
def _step(
    x, label, weight, rows, w1, b1, w2, b2, w3, b3, w, b, rate, decay,
    HIDDEN: tl.constexpr, WIDTH: tl.constexpr, H: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """The parameters after a step on a batch of so many rows; those of missing layers come back untouched."""
    top = x
    if HIDDEN > 0:
        h1, slope1 = _layer(x, w1, b1, WIDTH, H, PRECISION)
        top = h1
    if HIDDEN > 1:
        h2, slope2 = _layer(h1, w2, b2, WIDTH, H, PRECISION)
        top = h2
    if HIDDEN > 2:
        h3, slope3 = _layer(h2, w3, b3, WIDTH, H, PRECISION)
        top = h3
    logits = tl.sum(top * w[None, :], 1) + b
    error = weight * _error(logits, label) / rows.to(tl.float32)

    back = error[:, None] * w[None, :]  # the loss by the activities, layer by layer
    w, b = _moved(w, tl.sum(error[:, None] * top, 0), rate, decay), _moved(b, tl.sum(error, 0), rate, decay)
    if HIDDEN > 2:
        dz3 = back * slope3
        back = tl.dot(dz3, w3, input_precision=PRECISION)
        w3, b3 = _learned(dz3, h2, w3, b3, rate, decay, PRECISION)
    if HIDDEN > 1:
        dz2 = back * slope2
        back = tl.dot(dz2, w2, input_precision=PRECISION)
        w2, b2 = _learned(dz2, h1, w2, b2, rate, decay, PRECISION)
    if HIDDEN > 0:
        w1, b1 = _learned(back * slope1, x, w1, b1, rate, decay, PRECISION)
    return w1, b1, w2, b2, w3, b3, w, b


@_jit
def _addresses(stack, size, HIDDEN: tl.constexpr, D: tl.constexpr, H: tl.constexpr):
    """Where the parameters of a network stand, layer by layer; places of missing layers are not to be used."""
    unit, column = tl.arange(0, H), tl.arange(0, D)
    w1_at, b1_at = stack + unit[:, None] * D + column[None, :], stack + H * D + unit
    w2_at, b2_at = b1_at[None, :] + H + unit[:, None] * H, b1_at + H + H * H
    w3_at, b3_at = b2_at[None, :] + H + unit[:, None] * H, b2_at + H + H * H
    b_at = stack + size - 1
    w_at = b_at - D + column if HIDDEN == 0 else b_at - H + unit
    return w1_at, b1_at, w2_at, b2_at, w3_at, b3_at, w_at, b_at


@_jit
def _put(w_at, w, b_at, b):
    tl.store(w_at, w)
    tl.store(b_at, b)


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
    w1_at, b1_at, w2_at, b2_at, w3_at, b3_at, w_at, b_at = _addresses(stack + network * size, size, HIDDEN, D, H)
    w, b = tl.load(w_at), tl.load(b_at)
    w1, b1 = (tl.load(w1_at), tl.load(b1_at)) if HIDDEN > 0 else (w, b)
    w2, b2 = (tl.load(w2_at), tl.load(b2_at)) if HIDDEN > 1 else (w, b)
    w3, b3 = (tl.load(w3_at), tl.load(b3_at)) if HIDDEN > 2 else (w, b)

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
        w1, b1, w2, b2, w3, b3, w, b = _step(
            x, label, weight, there, w1, b1, w2, b2, w3, b3, w, b, rate, decay, HIDDEN, WIDTH, H, PRECISION
        )
        x, label, weight = next_x, next_label, next_weight

    _put(w_at, w, b_at, b)
    if HIDDEN > 0:
        _put(w1_at, w1, b1_at, b1)
    if HIDDEN > 1:
        _put(w2_at, w2, b2_at, b2)
    if HIDDEN > 2:
        _put(w3_at, w3, b3_at, b3)
