"""The audit: which tags are probably wrong, as one page that needs nothing else."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.stats import poisson

from wscpml.arrays import EVEN_ODDS, Array, Matrix, values_at
from wscpml.errors import UserError
from wscpml.quality import page
from wscpml.quality.decisions import Decided
from wscpml.quality.evidence import Evidence

MOST_LISTED = 5000  # suspicious tags in the page
MOST_POINTS = 3000  # instances on the map
MOST_LABELS = 2000  # in the table of labels and on the map, those with most tags
MOST_CONFUSED = 12  # rows, and columns, of the table of confused labels
MOST_TOLD = 3  # labels, or pairs of them, that are named in words
GRID = 1000  # steps of a coordinate on the map
BINS = 10  # of the calibration curve
ENOUGH = 10  # tags that a label needs for its noise rate to be told in words
CHANCE = 0.05  # that any pair of labels stands out though none is confused
CLEAR = 0.1  # below this confidence hardly any tag is true
SHADES = 5
MOST_TEXT = 200  # characters of what is shown of an instance
MOST_LIKELIER = 400  # characters of the names of likelier labels
SHOWN = "shown"  # and a number: what the page's script calls such a column
PROBABILITY = "the estimated probability that a tag is right"

COLUMNS = {  # of all tables: what people read, and how it is shown
    "instance": ("Instance", "text"),
    "label": ("Label", "text"),
    "label_confidence": ("Confidence", "probability"),
    "probability": ("Probability", "probability"),
    "nearest": ("Nearest prototypes", "text"),
    "prototype_rank": ("Rank of its prototype", "count"),
    "competing": ("Likelier labels of the instance", "text"),
    "truth": ("In truth", "text"),
    "tags": ("Tags", "count"),
    "frequency": ("Share of the instances", "share"),
    "suspicious": ("Suspicious tags", "count"),
    "noise_rate": ("Estimated noise rate", "share"),
    "lower": ("at least", "share"),
    "upper": ("at most", "share"),
    "average_confidence": ("Average confidence", "probability"),
    "true_noise_rate": ("True noise rate", "share"),
}


@dataclass(frozen=True)
class Audit:
    """What the page tells of n instances and q labels."""

    title: str
    instances: "pd.Index[Any]"  # n ids
    label_names: list[str]
    candidates: Matrix  # (n, q)
    label_confidence: Matrix  # (n, q), 0 where a label is no candidate
    issues: pd.DataFrame  # as `WSCPML.find_label_issues` gives it, or the first of them
    evidence: Evidence
    noise_rates: pd.DataFrame | None = None  # `lower` and `upper` of each label's noise rate
    remarks: list[str] = field(default_factory=list)  # which noise it is, what cannot be known
    truth: Matrix | None = None  # (n, q), -1 where it is not known
    meaning: str = PROBABILITY  # of the label confidence
    decided: Decided = field(default_factory=Decided.nothing)  # by a person
    shown: pd.DataFrame | None = None  # n rows of text, what people know the instances by
    missing: pd.DataFrame | None = None  # as `WSCPML.find_missing_labels` gives it; None: complete
    missing_in_all: int = 0  # how many there are, where that has the first of them alone

    @cached_property
    def tags(self) -> "Tags":
        """The candidates, one by one."""
        row, label = np.nonzero(self.candidates)
        confidence = values_at(self.label_confidence, row, label)
        undecided = self.decided.codes(self.candidates) == 0
        return Tags(
            row,
            label,
            confidence,
            undecided,
            confidence >= EVEN_ODDS,
            undecided & (confidence < EVEN_ODDS),
            None if self.truth is None else values_at(self.truth, row, label).astype(np.int8),
        )


@dataclass(frozen=True)
class Tags:
    """m candidates, in the order of rows and labels."""

    row: Array  # (m,)
    label: Array  # (m,)
    confidence: Array  # (m,)
    undecided: Array  # (m,), bool: by a person
    right: Array  # (m,), bool: probably
    suspicious: Array  # (m,), bool
    truth: Array | None  # (m,), -1 where it is not known

    def matrix(self, chosen: Array, shape: tuple[int, int]) -> sparse.csr_array:
        """Some of them, a boolean ``(m,)``, as 0/1 ``(n, q)``."""
        pairs = self.row[chosen], self.label[chosen]
        return sparse.csr_array((np.ones(len(pairs[0]), np.int64), pairs), shape=shape)


@dataclass(frozen=True)
class Pair:
    """A false label that comes with a true one more often than by chance."""

    false: str
    true: str
    count: int
    times: float  # as often as by chance


@dataclass(frozen=True)
class Summary:
    """The figures that the page begins with; the last three are known with the truth alone."""

    instances: int
    tags: int
    labels: int
    wrong: int  # tags, by the sum of the confidences
    wrong_share: float
    decided: int  # pairs, by a person
    decided_true: int
    suspicious: int  # of the others
    certain: int  # of these, tags that are hardly true
    touched: int  # instances with a suspicious tag
    hopeless: int  # those of them on which no tag is probably right
    worst: list[dict[Any, Any]]  # rows of `by_label`
    false: int | None  # of the tags that are not decided
    precision: float | None
    recall: float | None


def of(estimator: Any, title: str, truth: Any = None, shown: pd.DataFrame | None = None) -> Audit:
    """The audit of the rows that a WSCPML was fitted to, with their truth if it is known.

    What is `shown` of them has a row each, and is text.
    """
    confidence = estimator.judged_.label_confidence
    truth = truth if truth is None or sparse.issparse(truth) else np.asarray(truth)
    if truth is not None and truth.shape != confidence.shape:
        given, fitted = (" x ".join(map(str, each.shape)) for each in (truth, confidence))
        raise UserError(
            f"truth: it is {given}, and the labels that were fitted are {fitted}; "
            "give it for the same rows and labels"
        )
    missing = estimator.judged_.missing
    absent = round(estimator.judged_.noise.missing)
    return Audit(
        title,
        estimator.instances_,
        estimator.label_names_,
        estimator.candidates_,
        confidence,
        estimator.find_label_issues(limit=MOST_LISTED),
        estimator.evidence_,
        estimator.noise_rates_,
        estimator.remarks_,
        truth,
        decided=estimator.decided_,
        shown=shown,
        missing=None
        if missing is None
        else estimator.find_missing_labels(min(absent, MOST_LISTED)),
        missing_in_all=absent,
    )


def by_label(audit: Audit) -> pd.DataFrame:
    """Frequency, noise and confidence of each label, a row each."""
    found, (n, q) = audit.tags, audit.candidates.shape
    tags = np.bincount(found.label, minlength=q)
    confidence = _shares(found.label, found.confidence, q)
    table = pd.DataFrame(
        {
            "label": audit.label_names,
            "tags": tags,
            "frequency": tags / n,
            "suspicious": np.bincount(found.label[found.suspicious], minlength=q),
            "noise_rate": 1 - confidence,
            "average_confidence": confidence,
        }
    )
    if audit.noise_rates is not None:
        for place, bound in enumerate(("lower", "upper")):
            table.insert(5 + place, bound, audit.noise_rates[bound].to_numpy())
    if found.truth is not None:
        known = found.truth >= 0
        table["true_noise_rate"] = 1 - _shares(found.label[known], found.truth[known], q)
    return table


def confusion(audit: Audit) -> sparse.csr_array:
    """How often a suspicious tag (row) is beside one that is probably right (column), (q, q)."""
    tags, shape = audit.tags, audit.candidates.shape
    wrong, right = (tags.matrix(chosen, shape) for chosen in (tags.suspicious, tags.right))
    return sparse.csr_array(wrong.T @ right)


def striking_pairs(audit: Audit) -> list[Pair]:
    """The pairs of `confusion` that are above chance, however many pairs were looked at.

    Those come first that explain most tags.
    """
    tags, (n, q) = audit.tags, audit.candidates.shape
    wrong, right = (
        np.bincount(tags.label[chosen], minlength=q) for chosen in (tags.suspicious, tags.right)
    )
    counts = sparse.coo_array(confusion(audit))
    false, true = counts.coords
    expected = wrong[false] * right[true] / n
    striking = np.flatnonzero(poisson.sf(counts.data - 1, expected) < CHANCE / q**2)
    excess = (counts.data - expected)[striking]
    names = audit.label_names
    return [
        Pair(
            names[false[k]],
            names[true[k]],
            int(counts.data[k]),
            float(counts.data[k] / expected[k]),
        )
        for k in striking[np.argsort(-excess, kind="stable")[:MOST_TOLD]]
    ]


def calibration(audit: Audit) -> pd.DataFrame:
    """Mean confidence and share of right tags, per tenth of confidence that has any."""
    from sklearn.calibration import calibration_curve

    tags = audit.tags
    assert tags.truth is not None
    chosen = tags.undecided & (tags.truth >= 0)
    if not chosen.any():
        return pd.DataFrame({"confidence": [], "right": []})
    right, said = calibration_curve(tags.truth[chosen], tags.confidence[chosen], n_bins=BINS)
    return pd.DataFrame({"confidence": said, "right": right})


def render(audit: Audit) -> str:
    """The page: HTML that asks for no other file and runs no script but its own."""
    return page.render(
        "audit.html.j2",
        "audit.js",
        audit=audit,
        summary=summary(audit),
        tables=[_tags(audit), _labels(audit), *_missing(audit)],
        confused=_confused(audit),
        pairs=striking_pairs(audit),
        points=_map(audit),
        calibration=None if audit.truth is None else calibration(audit).to_dict("records"),
        columns=COLUMNS,
        even=EVEN_ODDS,
        clear=CLEAR,
    )


def summary(audit: Audit) -> Summary:
    """The figures that the page begins with."""
    labels, tags, n = by_label(audit), audit.tags, audit.candidates.shape[0]
    known = labels[labels.tags >= ENOUGH]
    worst = (known if len(known) else labels[labels.tags > 0]).nlargest(MOST_TOLD, "noise_rate")
    wrong = float((1 - tags.confidence).sum())
    touched, fine = (
        np.bincount(tags.row[each], minlength=n) > 0 for each in (tags.suspicious, tags.right)
    )
    false = precision = recall = None
    if tags.truth is not None:
        found = tags.undecided & (tags.truth == 0)
        hits, false = int((tags.suspicious & found).sum()), int(found.sum())
        told = int((tags.suspicious & (tags.truth >= 0)).sum())
        precision, recall = hits / max(told, 1), hits / max(false, 1)
    return Summary(
        instances=n,
        tags=len(tags.row),
        labels=len(labels),
        wrong=round(wrong),
        wrong_share=wrong / max(len(tags.row), 1),
        decided=len(audit.decided.true),
        decided_true=int(audit.decided.true.sum()),
        suspicious=int(tags.suspicious.sum()),
        certain=int((tags.suspicious & (tags.confidence < CLEAR)).sum()),
        touched=int(touched.sum()),
        hopeless=int((touched & ~fine).sum()),
        worst=worst.to_dict("records"),
        false=false,
        precision=precision,
        recall=recall,
    )


def _shares(label: Array, values: Array, q: int) -> Array:
    """The mean value of each label's tags, ``(q,)``; NaN without any."""
    counts = np.bincount(label, minlength=q)
    sums = np.bincount(label, values, minlength=q)
    return np.divide(sums, counts, out=np.full(q, np.nan), where=counts > 0)


def _tags(audit: Audit) -> dict[str, Any]:
    """The table of suspicious tags as the page's script takes it."""
    listed, tags = _as_text(audit.issues.head(MOST_LISTED)), audit.tags
    listed["competing"] = listed.competing.map(lambda text: _cut(text, MOST_LIKELIER))
    suspicious = np.flatnonzero(tags.suspicious)
    first = suspicious[np.argsort(tags.confidence[suspicious], kind="stable")[: len(listed)]]
    titles = {}
    if audit.shown is not None:
        for place, name in enumerate(audit.shown, start=1):
            titles[key := f"{SHOWN} {place}"] = str(name)
            listed.insert(place, key, audit.shown[name].iloc[tags.row[first]].map(_cut).to_numpy())
    if tags.truth is not None:
        listed["truth"] = np.array(["wrong", "right", "unknown"])[tags.truth[first]]
    known = COLUMNS | {key: (title, "text") for key, title in titles.items()}
    return page.table("tags", listed, known, ("label_confidence", "ascending")) | {
        "left_out": len(suspicious) - len(listed)
    }


def _missing(audit: Audit) -> list[dict[str, Any]]:
    """The table of tags that are probably missing, if any may be."""
    if audit.missing is None:
        return []
    listed = _as_text(audit.missing.head(MOST_LISTED))
    return [
        page.table("missing", listed, COLUMNS, ("probability", "descending"))
        | {"left_out": max(audit.missing_in_all, len(audit.missing)) - len(listed)}
    ]


def _as_text(listed: pd.DataFrame) -> pd.DataFrame:
    """A table of pairs with their names as text, and not too much of it."""
    return listed.assign(
        instance=[_cut(str(each)) for each in listed.instance],
        label=[str(each) for each in listed.label],
    )


def _cut(text: str, most: int = MOST_TEXT) -> str:
    return text if len(text) <= most else f"{text[:most]}…"


def _labels(audit: Audit) -> dict[str, Any]:
    listed = by_label(audit).iloc[_frequent(audit)]
    worst_first = listed.sort_values("noise_rate", ascending=False, kind="stable")
    return page.table("labels", worst_first, COLUMNS, ("noise_rate", "descending")) | {
        "left_out": len(audit.label_names) - len(listed)
    }


def _frequent(audit: Audit) -> Array:
    """The labels that the page tells of, in their order: all, or those with most tags."""
    tags = np.bincount(audit.tags.label, minlength=len(audit.label_names))
    return np.sort(np.argsort(-tags, kind="stable")[:MOST_LABELS])


def _confused(audit: Audit) -> dict[str, Any]:
    """The part of the table of confused labels that has most in it."""
    counts = confusion(audit)
    rows = _largest(counts.sum(axis=1))
    columns = _largest(counts[rows].sum(axis=0))
    shown = counts[rows][:, columns].toarray()
    most = counts.data.max(initial=1)
    return {
        "columns": [audit.label_names[k] for k in columns],
        "rows": [
            (audit.label_names[j], [(c, -(-c * SHADES // most)) for c in cells])
            for j, cells in zip(rows, shown.tolist(), strict=True)
        ],
        "left_out": int(counts.sum() - shown.sum()),
    }


def _largest(sums: Array) -> Array:
    """Where the largest of some counts are that are not 0, the largest first."""
    first = np.argsort(-sums, kind="stable")[:MOST_CONFUSED]
    return first[sums[first] > 0]


def _map(audit: Audit) -> dict[str, Any]:
    """Instances and prototypes on a grid, as the page's script takes them."""
    tags, labels, seen = audit.tags, _frequent(audit), audit.evidence
    every = slice(None, None, -(-len(seen.positions) // MOST_POINTS))
    placed = seen.positions[every]
    both = np.vstack([placed, seen.prototypes[labels]])
    low, high = np.nanmin(both, axis=0), np.nanmax(both, axis=0)
    steps = (both - low) / np.where(high > low, high - low, 1) * GRID
    xy = [None if np.isnan(row).any() else [round(v) for v in row] for row in steps.tolist()]
    chosen = (
        tags.matrix(each, audit.candidates.shape)[every][:, labels]
        for each in (tags.right, tags.suspicious)
    )
    codes = ([part.tolist() for part in np.split(m.indices, m.indptr[1:-1])] for m in chosen)
    ids = (_cut(str(each)) for each in audit.instances[every])
    return {
        "grid": GRID,
        "labels": [audit.label_names[j] for j in labels],
        "points": list(zip(xy[: len(placed)], ids, *codes, strict=True)),
        "prototypes": xy[len(placed) :],
    }
