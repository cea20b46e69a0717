"""What the service counts for Prometheus: requests by route, how long they took, and what lies in the ledger.

A registry of its own for each application, so that two in one process do not mix. Labels are routes, methods, statuses
and states: never a person, a letter or a token.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

if TYPE_CHECKING:
    from rocerf.ledger import Ledger

#: What the ledger holds now: name of a gauge -> (what it means, name of its label, count by that label).
Holdings = Mapping[str, tuple[str, str, Mapping[str, float]]]

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)


class Metrics:
    """The counters of one application."""

    def __init__(self, holdings: Callable[[], Holdings] | None = None) -> None:
        self.registry = CollectorRegistry()
        names = ("method", "route", "status")
        self._requests = Counter("rocerf_requests", "Requests answered.", names, registry=self.registry)
        self._seconds = Histogram(
            "rocerf_request_seconds", "Time to answer.", names[:2], buckets=SECONDS, registry=self.registry
        )
        self._gauges: dict[str, Gauge] = {}
        self._holdings = holdings

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)

    def text(self) -> str:
        """Everything in Prometheus' text format."""
        for name, (meaning, label, counts) in (self._holdings() if self._holdings else {}).items():
            if name not in self._gauges:
                self._gauges[name] = Gauge(name, meaning, (label,), registry=self.registry)
            self._set(self._gauges[name], counts.items())
        return generate_latest(self.registry).decode("utf-8")

    @staticmethod
    def _set(gauge: Gauge, counts: Iterable[tuple[str, float]]) -> None:
        gauge.clear()
        for value, count in counts:
            gauge.labels(value).set(count)


def holdings(ledger: Ledger) -> Holdings:
    """What lies in the ledger, in counts."""
    portfolio = ledger.letters.portfolio()
    left = _by_budget(portfolio["outstanding"])
    waiting = ledger.requests.by_deadline(limit=10_000)
    states: dict[str, float] = {}
    for request in waiting:
        states[request.state.code] = states.get(request.state.code, 0) + 1
    today = ledger.core.today()
    overdue = sum(request.deadline < today for request in waiting)
    return {
        "rocerf_letters": ("Letters by state.", "state", portfolio["states"]),
        "rocerf_letters_outstanding": ("Outstanding letters by what is left of their budget.", "remaining", left),
        "rocerf_deletions_open": ("Open deletion requests by state.", "state", states),
        "rocerf_deletions_overdue": ("Open deletion requests beyond their deadline.", "kind", {"overdue": overdue}),
    }


def _by_budget(outstanding: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    counts: dict[str, float] = {}
    for line in outstanding:
        left = str(line["remaining"])
        counts[left] = counts.get(left, 0) + line["letters"]
    return counts
