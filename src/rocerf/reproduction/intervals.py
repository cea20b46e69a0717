"""Intervals for shares of few people."""

from __future__ import annotations


def binomial_interval(share: float, people: float) -> tuple[float, float]:
    """Clopper and Pearson's 95 % interval for a share of so many people.

    >>> low, high = binomial_interval(1.0, 40)
    >>> round(low, 3), high
    (0.912, 1.0)
    """
    from scipy.special import betaincinv

    if not people > 0:
        return share, share
    hits = round(share * people)
    low = 0.0 if hits == 0 else float(betaincinv(hits, people - hits + 1, 0.025))
    high = 1.0 if hits == people else float(betaincinv(hits + 1, people - hits, 0.975))
    return min(low, share), max(high, share)
