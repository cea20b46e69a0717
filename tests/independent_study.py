"""The paper's study once more, from its text and its authors' description, with NumPy and scikit-learn alone.

Nothing here imports rocerf: tables are read from the data files, models fitted by scikit-learn and refitted by a Newton
of twenty lines, searches and attacks written anew, plainly. What the record says is held against it
(`reproduction/test_independent_figures.py`). Everything is in standardised columns.
"""

from __future__ import annotations

import gzip
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

Array = NDArray[np.float64]
FILES = Path(__file__).resolve().parents[1] / "src" / "rocerf" / "data" / "embedded"

#: German: places of the numbers in UCI's rows; places of the categories with their codes in the benchmark's order.
NUMBERS = (1, 4, 7, 10, 12, 15, 17)
CODES = {
    0: "A14 A11 A12 A13",
    2: "A33 A34 A30 A32 A31",
    3: "A410 A40 A41 A42 A43 A44 A45 A46 A48 A49",
    5: "A65 A61 A62 A63 A64",
    6: "A71 A72 A73 A74 A75",
    8: "A91 A92 A94 A93",
    9: "A101 A102 A103",
    11: "A124 A123 A122 A121",
    13: "A141 A142 A143",
    14: "A153 A151 A152",
    16: "A171 A172 A173 A174",
    18: "A191 A192",
}
MARRIED = ("Married-civ-spouse", "Married-AF-spouse")
OCCUPATIONS = ("Adm-clerical", "Exec-managerial", "Machine-op-inspct", "Prof-specialty")


@dataclass(frozen=True, eq=False)
class Table:
    """Training rows X (n, d) with labels y, test rows T with labels t, as they are in the files."""

    X: Array
    y: Array
    T: Array
    t: Array


def lines(name: str) -> list[str]:
    return gzip.decompress((FILES / name).read_bytes()).decode("ascii").splitlines()


def german(as_published: bool) -> Table:
    rows, split = [line.split() for line in lines("german.data.gz")], np.load(FILES / "splits.npz")
    columns = [[float(row[place]) for row in rows] for place in NUMBERS]
    columns.append([{"A201": 1.0, "A202": 2.0}[row[19]] for row in rows])
    columns += [[float(row[place] == code) for row in rows] for place, codes in CODES.items() for code in codes.split()]
    X, y = np.array(columns).T, np.array([float(row[20] == "1") for row in rows])
    train, test = split["german_train"], split["german_test"]
    if as_published:  # the labels stayed where they were while the rows were shuffled
        return Table(X[train], y[: len(train)], X[test], y[: len(test)])
    return Table(X[train], y[train], X[test], y[test])


def adult() -> Table:
    rows = [line.split(", ") for name in ("adult.data.gz", "adult.test.gz") for line in lines(name) if "," in line]
    split = np.load(FILES / "splits.npz")

    def read(places: NDArray[Any]) -> tuple[Array, Array]:
        chosen = [rows[int(place)] for place in places]
        X = [
            [
                *(float(row[place]) for place in (0, 2, 4, 10, 11, 12)),
                row[9] == "Male",
                row[1] == "Private",
                row[5] not in MARRIED,
                row[6] not in OCCUPATIONS,
                row[7] != "Husband",
                row[8] == "White",
                row[13] == "United-States",
            ]
            for row in chosen
        ]
        return np.array(X, float), np.array([row[14].startswith(">50K") for row in chosen], float)

    return Table(*read(split["adult_train"]), *read(split["adult_test"]))


def compas(train: Path, test: Path, label: str) -> Table:
    """COMPAS from two files with a head, whose columns but the label are the features."""
    parts: list[Array] = []
    for path in (train, test):
        with path.open(encoding="utf-8") as file:
            names = file.readline().strip().split(",")
        values = np.loadtxt(path, delimiter=",", skiprows=1)
        here = np.array(names) == label
        parts += [values[:, ~here], values[:, here][:, 0]]
    return Table(*parts)


@dataclass(frozen=True, eq=False)
class Study:
    """A logistic model in standardised columns: rows with a constant Z (n, d + 1), labels, theta, refused people.

    ``parts`` (P,) says in which of the consecutive parts of the test file each of the refused people is.
    """

    Z: Array
    y: Array
    C: float
    theta: Array
    people: Array
    parts: NDArray[np.intp]
    accuracy: float

    @classmethod
    def of(cls, table: Table, C: float, scaled: str, cut: int = 1) -> Study:
        """``scaled``: people by the training rows' mean and spread ("train"), or by their own in so many parts.

        The test file is ``cut`` into so many parts for the order in which people are asked.
        """
        mean, spread = table.X.mean(axis=0), _spread(table.X)
        Z = np.column_stack([(table.X - mean) / spread, np.ones(len(table.X))])
        if scaled == "train":
            people = (table.T - mean) / spread
        else:
            parts = np.array_split(table.T, int(scaled))
            people = np.concatenate([(part - part.mean(axis=0)) / _spread(part) for part in parts])
        fitted = LogisticRegression(C=C, tol=1e-10, max_iter=100_000).fit(Z[:, :-1], table.y)
        theta = newton(Z, table.y, C, np.append(fitted.coef_[0], fitted.intercept_))
        assert np.abs(theta - np.append(fitted.coef_[0], fitted.intercept_)).max() < 1e-3
        accepted = with_one(people) @ theta >= 0
        labels = np.concatenate([[place] * len(part) for place, part in enumerate(np.array_split(table.t, cut))])
        accuracy = float((accepted == table.t).mean())
        return cls(Z, table.y, C, theta, people[~accepted], labels[~accepted], accuracy)

    def drawn(self, seed: int) -> Study:
        """The same with people as they are asked: parts in a drawn order; where there is one, people in one."""
        rng, known = np.random.default_rng(seed), np.unique(self.parts)
        if len(known) == 1:
            order = rng.permutation(len(self.people))
        else:
            turn = dict(zip(known.tolist(), rng.permutation(len(known)).tolist(), strict=True))
            order = np.array(sorted(range(len(self.people)), key=lambda person: turn[int(self.parts[person])]))
        return replace(self, people=self.people[order], parts=self.parts[order])

    def without(self, rows: NDArray[np.intp]) -> Array:
        """Theta of the model truly refitted without these rows."""
        kept = np.ones(len(self.y), bool)
        kept[rows] = False
        return newton(self.Z[kept], self.y[kept], self.C, self.theta)

    def effects(self, theta: Array) -> Array:
        """What theta moves by to first order without each row, (n, d + 1)."""
        p = sigmoid(self.Z @ theta)
        H = (self.Z * (p * (1 - p))[:, None]).T @ self.Z + _penalty(self.Z, self.C)
        return (self.Z * (p - self.y)[:, None]) @ np.linalg.inv(H)

    def random_validity(self, points: Array, count: int, trials: int, seed: int) -> Array:
        """Share of the points (P, d) accepted without ``count`` random rows, by trial."""
        rng = np.random.default_rng(seed)
        thetas = [self.without(rng.choice(len(self.y), count, replace=False)) for _ in range(trials)]
        return np.array([(with_one(points) @ theta >= -1e-9).mean() for theta in thetas])

    def attacked(self, point: Array, k: int, rounds: int = 3) -> Array:
        """Theta without the worst k rows found for a point: first order, refitted, first order again from there."""
        here, worst = np.append(point, 1.0), self.theta
        for _ in range(rounds):
            rows = np.argsort(self.effects(worst) @ here)[:k]
            theta = self.without(rows)
            if theta @ here >= worst @ here - 1e-12:
                break
            worst = theta
        return worst


def _spread(X: Array) -> Array:
    spread = X.std(axis=0)
    return np.where(np.ptp(X, axis=0) > 0, spread, 1.0)


def _penalty(Z: Array, C: float) -> Array:
    return np.diag([1 / C] * (Z.shape[1] - 1) + [0.0])


def sigmoid(scores: Array) -> Array:
    return 1 / (1 + np.exp(-np.clip(scores, -500, 500)))


def with_one(points: Array) -> Array:
    return np.column_stack([points, np.ones(len(points))])


def rows_of(A: Array, B: Array) -> Array:
    """The inner products of their rows."""
    return np.asarray(np.einsum("ij,ij->i", A, B))


def newton(Z: Array, y: Array, C: float, start: Array) -> Array:
    """The minimum of the summed logistic loss plus |w|^2 / 2C, the constant free."""
    theta, penalty = start.copy(), _penalty(Z, C)
    for _ in range(50):
        p = sigmoid(Z @ theta)
        step = np.linalg.solve((Z * (p * (1 - p))[:, None]).T @ Z + penalty, Z.T @ (p - y) + penalty @ theta)
        theta -= step
        if np.abs(step).max() < 1e-10:
            return theta
    raise AssertionError("no optimum found")


def at_margin(study: Study, margin: float) -> Array:
    """The nearest points whose score is ``margin``, in closed form."""
    w, b = study.theta[:-1], study.theta[-1]
    missing = margin - (study.people @ w + b)
    return np.asarray(study.people + np.maximum(missing, 0.0)[:, None] * w / (w @ w))


def nearest(z0: Array, cuts: Array) -> Array:
    """The point nearest to z0 (d,) where every cut (m, d + 1) gives at least 0: non-negative least squares in the dual.

    The point is z0 + A' u, u >= 0, with A A' u >= r where u = 0; a passive set is grown and shrunk (Lawson, Hanson).
    """
    A, r = cuts[:, :-1], -(cuts[:, :-1] @ z0 + cuts[:, -1])
    G, u, passive = A @ A.T, np.zeros(len(cuts)), np.zeros(len(cuts), bool)
    for _ in range(20 * len(cuts)):
        lacking = np.where(passive, 0.0, r - G @ u)
        if lacking.max() < 1e-10:
            break
        passive[lacking.argmax()] = True
        while True:
            s = np.zeros(len(cuts))
            s[passive] = np.linalg.lstsq(G[np.ix_(passive, passive)], r[passive], rcond=None)[0]
            if s[passive].min() > 0:
                break
            falling = passive & (s <= 0)
            share = (u[falling] / (u[falling] - s[falling])).min()
            u += share * (s - u)
            passive &= u > 1e-14
        u = s
    return np.asarray(z0 + A.T @ u)


def survivors(study: Study, people: Array, k: int, truly: bool) -> Array:
    """The nearest points accepted without any k rows: to first order, or by models truly refitted for what is attacked.

    Cuts are found one after another and serve everybody.
    """
    cuts, effects = study.theta[None, :], study.effects(study.theta)
    points = np.empty(people.shape)
    for place, z0 in enumerate(people):
        while True:
            point = nearest(z0, cuts)
            drops = effects @ np.append(point, 1.0)
            worst = np.argsort(drops)[:k]
            cut = study.attacked(point, k) if truly else study.theta + effects[worst[drops[worst] < 0]].sum(axis=0)
            if cut @ np.append(point, 1.0) >= -1e-7:
                break
            cuts = np.vstack([cuts, cut])
        points[place] = point
    return points


def feared(study: Study, k: int) -> Array:
    """What the authors' ROCERF descends on, a theta for each person (P, d + 1).

    Rows are chosen once, at the person; the Hessian is that of the mean loss without penalty, plus 0.01; of rows with
    equal effects all or none are taken.
    """
    Z, n = study.Z, len(study.y)
    p = sigmoid(Z @ study.theta)
    H = (Z * (p * (1 - p))[:, None]).T @ Z / n + 0.01 * np.eye(Z.shape[1])
    effects = np.linalg.solve(H, (Z * (p - study.y)[:, None]).T).T / n
    thetas = []
    for person in with_one(study.people):
        drops = (effects @ person).astype(np.float32)
        thetas.append(study.theta + effects[drops < np.sort(drops)[k]].sum(axis=0))
    return np.array(thetas)


def wachter(thetas: Array, z0: Array) -> Array:
    """The authors' search for each person z0 (P, d) on a linear model of their own (P, d + 1).

    Adam with steps of 0.5 down relu(-f)^2 + lam |z - z0|; lam 2.5, doubled while some iterate was accepted, halved
    while none was, then bisected; what the bisection found is lost if the last lam tried was not valid. Where a point
    ends is chaotic: starts that differ by 1e-9 can end 30 % apart.
    """
    ends, walk = np.full(z0.shape, np.nan), _Walk(thetas, z0)
    while len(walk.place):
        settled = walk.step()
        if settled.any():
            through = np.zeros(len(settled), bool)
            for i in np.flatnonzero(settled):
                weight = walk.weights[i]
                walk.lam[i] = weight.turn(walk.lam[i], walk.t[i], bool(walk.valid[i]))
                walk.begin(i)
                through[i] = weight.through
                if weight.through:
                    ends[walk.place[i]] = walk.end(i)
            walk.keep(~through)
    return ends


class _Walk:
    """All people still searching, a row each."""

    def __init__(self, thetas: Array, z0: Array) -> None:
        self.W, self.b, self.z0, self.z = thetas[:, :-1], thetas[:, -1], z0, z0.copy()
        self.m, self.v = np.zeros((2, *z0.shape))
        self.lam, self.t = np.full(len(z0), 2.5), np.zeros(len(z0))
        self.place, self.valid = np.arange(len(z0)), np.zeros(len(z0), bool)
        self.weights = np.array([_Weight() for _ in z0], object)
        self.bisecting = np.zeros(len(z0), bool)
        self.found, self.cost = np.full((2, *z0.shape), np.nan), np.full((2, len(z0)), np.inf)

    def step(self) -> NDArray[np.bool_]:
        """One step for everybody, the cheapest accepted iterates noted; whose walk with this lam is over."""
        away = self.z - self.z0
        size = np.sqrt(rows_of(away, away))
        pull = self.lam / np.where(size > 0, size, np.inf)
        miss = np.maximum(-(rows_of(self.z, self.W) + self.b), 0.0)
        slope = pull[:, None] * away - (2 * miss)[:, None] * self.W
        self.t += 1
        self.m *= 0.9
        self.m += 0.1 * slope
        self.v *= 0.999
        self.v += 0.001 * slope * slope
        first, second = 0.5 / (1 - 0.9**self.t), 1 / np.sqrt(1 - 0.999**self.t)
        move = first[:, None] * self.m / (np.sqrt(self.v) * second[:, None] + 1e-8)
        self.z -= move
        good = rows_of(self.z, self.W) + self.b >= 5e-7
        if good.any():
            self.valid |= good
            away = self.z - self.z0
            cost = np.sqrt(rows_of(away, away))
            for kind, now in enumerate((good & ~self.bisecting, good & self.bisecting)):
                better = now & (cost < self.cost[kind])
                self.found[kind, better], self.cost[kind, better] = self.z[better], cost[better]
        return (rows_of(move, move) < 1e-10 * rows_of(self.z, self.z)) | (self.t >= 10_000)

    def begin(self, i: int) -> None:
        """The next lam of one person: from where the last one ended, Adam anew."""
        self.m[i], self.v[i], self.t[i], self.valid[i] = 0.0, 0.0, 0.0, False
        self.bisecting[i] = self.weights[i].bisecting

    def end(self, i: int) -> Array:
        kind = int(self.weights[i].last_valid and self.cost[1, i] < self.cost[0, i])
        return self.found[kind, i]

    def keep(self, rows: NDArray[np.bool_]) -> None:
        for name in ("W", "b", "z0", "z", "m", "v", "lam", "t", "place", "valid", "weights", "bisecting"):
            setattr(self, name, getattr(self, name)[rows])
        self.found, self.cost = self.found[:, rows], self.cost[:, rows]


class _Weight:
    """Where one person's search over lam stands."""

    def __init__(self) -> None:
        self.last_valid = self.bisecting = self.through = False
        self.low = self.high = 2.5
        self.steps = 0.0

    def turn(self, lam: float, steps: float, valid: bool) -> float:
        """The next lam, after so many steps with this one."""
        self.steps += steps
        if not valid and (self.bisecting or self.last_valid):
            self.bisecting, self.high = True, lam
        if valid:
            self.low = lam
        self.last_valid = valid
        lam = (self.low + self.high) / 2 if self.bisecting else (lam * 2 if valid else lam / 2)
        spent = self.steps > 100_000 if self.bisecting else self.steps >= 100_000
        self.through = spent or (self.bisecting and (lam <= self.low or lam >= self.high))
        return lam


def side_by_side(*asked: tuple[Array, Array]) -> list[Array]:
    """:func:`wachter` for people of several tables at once: narrower ones get columns of zeros, which never move."""
    wide = max(z0.shape[1] for _, z0 in asked)
    starts = [np.pad(z0, ((0, 0), (0, wide - z0.shape[1]))) for _, z0 in asked]
    models = [np.column_stack([np.pad(m[:, :-1], ((0, 0), (0, wide + 1 - m.shape[1]))), m[:, -1]]) for m, _ in asked]
    ends = np.split(wachter(np.concatenate(models), np.concatenate(starts)), np.cumsum([len(z) for z in starts])[:-1])
    return [end[:, : z0.shape[1]] for end, (_, z0) in zip(ends, asked, strict=True)]


def cchvae(weights: Path, study: Study, people: Array, seed: int) -> Array:
    """Nearest accepted of 1,000 decoded draws in the first shell of width 0.05 that has any; the authors' weights."""
    with np.load(weights) as file:
        layers = {name: file[name].astype(np.float32) for name in file.files}

    def through(x: Array, *names: str) -> Array:
        for place, name in enumerate(names):
            x = x.astype(np.float32) @ layers[f"{name}.weight"].T + layers[f"{name}.bias"]
            x = np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))) if place < 2 else x
        return x

    rng, points = np.random.default_rng(seed), np.full(people.shape, np.nan)
    for place, (z0, centre) in enumerate(zip(people, through(people, "enc.0", "enc.2", "mu_enc.1"), strict=True)):
        for shell in range(10_000):
            way = rng.normal(size=(1000, len(centre)))
            length = 0.05 * (shell + rng.random(1000))
            draws = centre + way * (length / np.sqrt((way**2).sum(axis=1)))[:, None]
            decoded = through(draws, "dec.0", "dec.2", "mu_dec.1")
            good = decoded[with_one(decoded) @ study.theta >= 0]
            if len(good):
                points[place] = good[((good - z0) ** 2).sum(axis=1).argmin()]
                break
    return points


def costs(points: Array, people: Array) -> tuple[float, float, float]:
    """Mean L2 and L1 length of the changes, and the standard error of the first."""
    away = points - people
    l2, l1 = np.sqrt((away**2).sum(axis=1)), np.abs(away).sum(axis=1)
    return float(l2.mean()), float(l1.mean()), float(l2.std(ddof=1) / np.sqrt(len(l2)))
