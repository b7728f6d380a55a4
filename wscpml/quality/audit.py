"""The audit: which tags are probably wrong, as one page that needs nothing else."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.stats import poisson

from wscpml.arrays import EVEN_ODDS, Array
from wscpml.errors import UserError
from wscpml.quality import page
from wscpml.quality.decisions import Decided
from wscpml.quality.evidence import Evidence
from wscpml.quality.issues import ranked
from wscpml.quality.judging import noise_rates

MOST_LISTED = 5000  # suspicious tags in the page
MOST_POINTS = 3000  # instances on the map
MOST_CONFUSED = 12  # rows, and columns, of the table of confused labels
MOST_TOLD = 3  # labels, or pairs of them, that are named in words
GRID = 1000  # steps of a coordinate on the map
BINS = 10  # of the calibration curve
ENOUGH = 10  # tags that a label needs for its noise rate to be told in words
CHANCE = 0.05  # that any pair of labels stands out though none is confused
CLEAR = 0.1  # below this confidence hardly any tag is true
SHADES = 5
MOST_TEXT = 200  # characters of what is shown of an instance
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
    candidates: Array  # (n, q)
    label_confidence: Array  # (n, q), 0 where a label is no candidate
    issues: pd.DataFrame  # as `WSCPML.find_label_issues` gives it
    evidence: Evidence
    noise_rates: pd.DataFrame | None = None  # `lower` and `upper` of each label's noise rate
    remarks: list[str] = field(default_factory=list)  # which noise it is, what cannot be known
    truth: Array | None = None  # (n, q), -1 where it is not known
    meaning: str = PROBABILITY  # of the label confidence
    decided: Decided = field(default_factory=Decided.nothing)  # by a person
    shown: pd.DataFrame | None = None  # n rows of text, what people know the instances by
    missing: pd.DataFrame | None = None  # as `WSCPML.find_missing_labels` gives it; None: complete


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
    truth = None if truth is None else np.asarray(truth)
    if truth is not None and truth.shape != confidence.shape:
        given, fitted = (" x ".join(map(str, each.shape)) for each in (truth, confidence))
        raise UserError(
            f"truth: it is {given}, and the labels that were fitted are {fitted}; "
            "give it for the same rows and labels"
        )
    return Audit(
        title,
        estimator.instances_,
        estimator.label_names_,
        estimator.candidates_,
        confidence,
        estimator.find_label_issues(),
        estimator.evidence_,
        estimator.noise_rates_,
        estimator.remarks_,
        truth,
        decided=estimator.decided_,
        shown=shown,
        missing=None if estimator.judged_.missing is None else estimator.find_missing_labels(),
    )


def by_label(audit: Audit) -> pd.DataFrame:
    """Frequency, noise and confidence of each label, a row each."""
    tags = audit.candidates.sum(axis=0)
    rates = noise_rates(audit.label_confidence, audit.candidates)
    table = pd.DataFrame(
        {
            "label": audit.label_names,
            "tags": tags,
            "frequency": tags / len(audit.candidates),
            "suspicious": _suspicious(audit).sum(axis=0),
            "noise_rate": rates,
            "average_confidence": 1 - rates,
        }
    )
    if audit.noise_rates is not None:
        for place, bound in enumerate(("lower", "upper")):
            table.insert(5 + place, bound, audit.noise_rates[bound].to_numpy())
    if audit.truth is not None:
        known = audit.candidates * (audit.truth >= 0)
        table["true_noise_rate"] = noise_rates(audit.truth * known, known)
    return table


def confusion(audit: Audit) -> Array:
    """How often a suspicious tag (row) is beside one that is probably right (column), (q, q)."""
    wrong, right = (
        sparse.csr_array(each.astype(np.int64))
        for each in (_suspicious(audit), audit.label_confidence >= EVEN_ODDS)
    )
    return (wrong.T @ right).toarray()


def striking_pairs(audit: Audit) -> list[Pair]:
    """The pairs of `confusion` that are above chance, however many pairs were looked at.

    Those come first that explain most tags.
    """
    counts = confusion(audit)
    wrong, right = _suspicious(audit).sum(axis=0), (audit.label_confidence >= EVEN_ODDS).sum(axis=0)
    expected = np.outer(wrong, right) / len(audit.candidates)
    excess = counts - expected
    false, true = np.nonzero(poisson.sf(counts - 1, expected) < CHANCE / counts.size)
    first = np.argsort(-excess[false, true], kind="stable")[:MOST_TOLD]
    names = audit.label_names
    return [
        Pair(names[j], names[k], int(counts[j, k]), float(counts[j, k] / expected[j, k]))
        for j, k in zip(false[first].tolist(), true[first].tolist(), strict=True)
    ]


def calibration(audit: Audit) -> pd.DataFrame:
    """Mean confidence and share of right tags, per tenth of confidence that has any."""
    from sklearn.calibration import calibration_curve

    assert audit.truth is not None
    chosen = (_undecided(audit) == 1) & (audit.truth >= 0)
    right, said = calibration_curve(
        audit.truth[chosen], audit.label_confidence[chosen], n_bins=BINS
    )
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
    labels, chosen, suspicious = by_label(audit), audit.candidates == 1, _suspicious(audit)
    known = labels[labels.tags >= ENOUGH]
    worst = (known if len(known) else labels[labels.tags > 0]).nlargest(MOST_TOLD, "noise_rate")
    touched, wrong = suspicious.any(axis=1), float((1 - audit.label_confidence[chosen]).sum())
    tags, flagged = int(chosen.sum()), int(suspicious.sum())
    false = precision = recall = None
    if audit.truth is not None:
        found = (_undecided(audit) == 1) & (audit.truth == 0)
        hits, false = int((suspicious & found).sum()), int(found.sum())
        told = int((suspicious & (audit.truth >= 0)).sum())
        precision, recall = hits / max(told, 1), hits / max(false, 1)
    return Summary(
        instances=len(chosen),
        tags=tags,
        labels=len(labels),
        wrong=round(wrong),
        wrong_share=wrong / max(tags, 1),
        decided=len(audit.decided.true),
        decided_true=int(audit.decided.true.sum()),
        suspicious=flagged,
        certain=int((suspicious & (audit.label_confidence < CLEAR)).sum()),
        touched=int(touched.sum()),
        hopeless=int((touched & ~(audit.label_confidence >= EVEN_ODDS).any(axis=1)).sum()),
        worst=worst.to_dict("records"),
        false=false,
        precision=precision,
        recall=recall,
    )


def _undecided(audit: Audit) -> Array:
    return audit.decided.undecided(audit.candidates)


def _suspicious(audit: Audit) -> Array:
    return (_undecided(audit) == 1) & (audit.label_confidence < EVEN_ODDS)


def _tags(audit: Audit) -> dict[str, Any]:
    """The table of suspicious tags as the page's script takes it."""
    listed = audit.issues.head(MOST_LISTED)
    listed = listed.assign(instance=listed.instance.map(str), label=listed.label.map(str))
    row, label = (each[:MOST_LISTED] for each in ranked(audit.label_confidence, _undecided(audit)))
    titles = {}
    if audit.shown is not None:
        for place, name in enumerate(audit.shown, start=1):
            titles[key := f"{SHOWN} {place}"] = str(name)
            listed.insert(place, key, audit.shown[name].iloc[row].map(_cut).to_numpy())
    if audit.truth is not None:
        listed["truth"] = np.array(["wrong", "right", "unknown"])[
            audit.truth[row, label].astype(int)
        ]
    known = COLUMNS | {key: (title, "text") for key, title in titles.items()}
    return page.table("tags", listed, known, ("label_confidence", "ascending")) | {
        "left_out": len(audit.issues) - len(listed)
    }


def _missing(audit: Audit) -> list[dict[str, Any]]:
    """The table of tags that are probably missing, if any may be."""
    if audit.missing is None:
        return []
    listed = audit.missing.head(MOST_LISTED)
    listed = listed.assign(instance=listed.instance.map(str), label=listed.label.map(str))
    return [
        page.table("missing", listed, COLUMNS, ("probability", "descending"))
        | {"left_out": len(audit.missing) - len(listed)}
    ]


def _cut(text: str) -> str:
    return text if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]}…"


def _labels(audit: Audit) -> dict[str, Any]:
    worst_first = by_label(audit).sort_values("noise_rate", ascending=False, kind="stable")
    return page.table("labels", worst_first, COLUMNS, ("noise_rate", "descending"))


def _confused(audit: Audit) -> dict[str, Any]:
    """The part of the table of confused labels that has most in it."""
    counts = confusion(audit)
    rows = [j for j in np.argsort(-counts.sum(axis=1), kind="stable") if counts[j].any()]
    rows = rows[:MOST_CONFUSED]
    sums = counts[rows].sum(axis=0)
    columns = [k for k in np.argsort(-sums, kind="stable")[:MOST_CONFUSED] if sums[k]]
    most = counts.max(initial=1)
    return {
        "columns": [audit.label_names[k] for k in columns],
        "rows": [
            (
                audit.label_names[j],
                [(c, -(-c * SHADES // most)) for c in counts[j, columns].tolist()],
            )
            for j in rows
        ],
        "left_out": int(counts.sum() - counts[np.ix_(rows, columns)].sum()),
    }


def _map(audit: Audit) -> dict[str, Any]:
    """Instances and prototypes on a grid, as the page's script takes them."""
    n = len(audit.evidence.positions)
    every = slice(None, None, -(-n // MOST_POINTS))
    placed, right, wrong = (
        each[every]
        for each in (
            audit.evidence.positions,
            audit.label_confidence >= EVEN_ODDS,
            _suspicious(audit),
        )
    )
    both = np.vstack([placed, audit.evidence.prototypes])
    low, high = np.nanmin(both, axis=0), np.nanmax(both, axis=0)
    steps = (both - low) / np.where(high > low, high - low, 1) * GRID
    xy = [None if np.isnan(row).any() else [round(v) for v in row] for row in steps.tolist()]
    codes = ([np.flatnonzero(row).tolist() for row in each] for each in (right, wrong))
    ids = map(str, audit.instances[every])
    return {
        "grid": GRID,
        "labels": audit.label_names,
        "points": list(zip(xy[: len(placed)], ids, *codes, strict=True)),
        "prototypes": xy[len(placed) :],
    }
