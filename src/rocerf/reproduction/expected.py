"""About how long a job takes, to begin the longest first: only ratios count, and a wrong one costs nothing but time."""

from __future__ import annotations

from rocerf.reproduction.jobs import Job

#: Seconds of a job of each kind on the smallest table; a kind not named here takes :data:`OTHER`.
KINDS = {
    "model": 1.0,
    "retrain": 1.5,
    "autoencoder": 20.0,
    "explain": 1.0,
    "measure": 0.5,
    "worst": 1.0,
    "theorem": 5.0,
}
OTHER = 1.0

#: How much longer on a larger table.
DATASETS = {"german": 1.0, "compas": 3.0, "adult": 6.0}

#: How much longer for a network.
NETWORK = 4.0

#: How much longer a method takes to find points than the nearest accepted ones take, and the kinds that find points.
METHODS = {"roar": 3.0, "cchvae": 4.0, "rocerf": 2.0, "first_order": 2.0, "simulated": 5.0, "retrained": 8.0}
FINDING = ("explain", "sweep")

#: The authors' searches take a hundred thousand steps for however few people.
AUTHORS = {"scfe": 15.0, "rocerf": 15.0, "roar": 8.0, "cchvae": 12.0}


def expected_seconds(job: Job) -> float:
    """A rough estimate by kind, data set, model and method.

    >>> jobs = [Job("a", "explain", {"dataset": "adult", "model": "nn", "method": m}) for m in ("plain", "retrained")]
    >>> [expected_seconds(job) for job in jobs]
    [24.0, 192.0]
    """
    inputs = job.inputs
    table = str(inputs.get("dataset", "")).partition("-")[0]
    seconds = KINDS.get(job.kind, OTHER) * DATASETS.get(table, 1.0) * (NETWORK if uses_network(job) else 1.0)
    if job.kind not in FINDING:
        return seconds
    method = str(inputs.get("method", ""))
    published = inputs.get("setting") == "published" and not method.endswith("_exact")
    longer = METHODS | AUTHORS if published else METHODS
    alike = max((name for name in longer if method.startswith(name)), key=len, default="")
    return seconds * longer.get(alike, 1.0)


def uses_network(job: Job) -> bool:
    """Whether a job trains or asks networks, which live on the device."""
    return job.inputs.get("model") == "nn"
