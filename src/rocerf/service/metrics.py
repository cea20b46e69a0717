"""What the service counts for Prometheus: requests by route, how long they took, and what lies in the ledger.

A registry of its own for each application, so that two in one process do not mix. Labels are routes, methods, statuses
and states: never a person, a letter or a token.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

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
