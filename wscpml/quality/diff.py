"""What changed between two results: candidates, decisions to keep or drop them, confidences."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from wscpml.arrays import EVEN_ODDS
from wscpml.errors import UserError
from wscpml.quality import page

PAIR = ["instance", "label"]
CONFIDENCES = ("label_confidence", "F")  # the first that a table has
BOUND = 0.1  # a confidence that moves further is told
FLIPS = ("dropped", "kept")  # what the new result does with a candidate, and the old one did not
CHANGES = (*FLIPS, "added", "gone", "moved")  # the most important first
MOST_LISTED = 5000  # changes, and instances, in the page
MOST_TOLD = 10  # labels, instances or settings in the text

COLUMNS = {  # of the page's tables: what people read, and how it is shown
    "instance": ("Instance", "text"),
    "label": ("Label", "text"),
    "change": ("Change", "text"),
    "old_confidence": ("Confidence then", "probability"),
    "new_confidence": ("Confidence now", "probability"),
    "decided": ("Decided by a person", "text"),
    "old_tags": ("Tags then", "count"),
    "new_tags": ("Tags now", "count"),
    "dropped": ("Dropped now", "count"),
    "kept": ("Kept now", "count"),
    "added": ("Added", "count"),
    "gone": ("Gone", "count"),
    "moved": ("Moved", "count"),
    "old_noise_rate": ("Noise rate then", "share"),
    "new_noise_rate": ("Noise rate now", "share"),
}


@dataclass(frozen=True)
class Version:
    """One of the two results, and what it was made of as far as that is known."""

    name: str
    table: pd.DataFrame  # as `candidates` gives it
    settings: Mapping[str, Any] | None = None
    data: Mapping[str, str] | None = None  # hashes by path
    code: Mapping[str, str] | None = None  # digests by stage


@dataclass(frozen=True)
class Summary:
    """How much changed; tags are candidates, and decisions are to keep them or to drop them."""

    old_instances: int
    new_instances: int
    old_tags: int
    new_tags: int
    old_suspicious: int
    new_suspicious: int
    flipped: int
    dropped: int  # of these, was kept
    kept: int  # of these, was dropped
    by_person: int  # of these, because a person has decided
    added: int
    gone: int
    moved: int  # by more than the bound, and not flipped


@dataclass(frozen=True)
class Difference:
    """What differs between two results."""

    old: str
    new: str
    bound: float
    summary: Summary
    changes: pd.DataFrame  # a row for each candidate that changed, flips first
    labels: pd.DataFrame  # a row for each label
    instances: pd.DataFrame  # a row for each instance with a change, most changes first
    remarks: list[str]
    settings: dict[str, tuple[Any, Any]] = field(default_factory=dict)  # old and new
    data: list[str] = field(default_factory=list)  # paths whose content differs
    code: list[str] = field(default_factory=list)  # stages whose code differs

    def plain(self) -> dict[str, Any]:
        """All of it as JSON takes it."""
        tables = {"changes": self.changes, "labels": self.labels, "instances": self.instances}
        return {
            "old": self.old,
            "new": self.new,
            "bound": self.bound,
            **asdict(self.summary),
            "remarks": self.remarks,
            "settings": {name: list(values) for name, values in self.settings.items()},
            "data": self.data,
            "code": self.code,
            **{name: _records(table) for name, table in tables.items()},
        }


def candidates(table: pd.DataFrame, where: str) -> pd.DataFrame:
    """A table of candidates, checked: instance, label, confidence, decided, in its own order.

    It is one that `wscpml clean` or the pipeline writes. The name of the column that holds the
    confidence is in `attrs`. What the table is called, `where`, is for messages.
    """
    source = next((name for name in CONFIDENCES if name in table), None)
    missing = [name for name in PAIR if name not in table] or ([] if source else [CONFIDENCES[0]])
    if missing:
        raise UserError(
            f"{where}: has no column {missing[0]!r}; give a table that `wscpml clean` or the "
            "pipeline wrote"
        )
    confidence = pd.to_numeric(table[source], errors="coerce").to_numpy(float)
    wrong = np.flatnonzero(~((confidence >= 0) & (confidence <= 1)))
    if len(wrong):
        value = table[source].iloc[wrong[0]]
        raise UserError(f"{where}: row {wrong[0] + 1}: {source} must be from 0 to 1, got {value}")
    decided = table["decided"].fillna("") if "decided" in table else ""
    found = pd.DataFrame(
        {
            **{name: table[name].astype(str).to_numpy(object) for name in PAIR},
            "confidence": confidence,
            "decided": pd.Series(decided, index=table.index).map(_word).to_numpy(object),
        }
    )
    twice = np.flatnonzero(found.duplicated(PAIR))
    if len(twice):
        instance, label = found.loc[twice[0], PAIR]
        raise UserError(
            f"{where}: row {twice[0] + 1}: instance {instance!r} has {label!r} twice; ids must "
            "tell instances apart"
        )
    found.attrs["source"] = source
    return found


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool | np.bool_) else str(value)


def compare(old: Version, new: Version, bound: float = BOUND) -> Difference:
    """What changed from the one result to the other; a confidence by more than the bound."""
    for what in PAIR:
        if not set(old.table[what]) & set(new.table[what]):
            raise UserError(
                f"{old.name} and {new.name}: have no {what} in common; compare results of one "
                "data set"
            )
    both = old.table.merge(
        new.table, "outer", PAIR, suffixes=("_old", "_new"), indicator="there", sort=True
    )
    was, now = both.confidence_old, both.confidence_new
    known = (both.there == "both").to_numpy()
    kept_before, kept = (was >= EVEN_ODDS).to_numpy(), (now >= EVEN_ODDS).to_numpy()
    change = np.select(
        [
            both.there == "right_only",
            both.there == "left_only",
            known & kept_before & ~kept,
            known & ~kept_before & kept,
            known & ((now - was).abs() > bound).to_numpy(),
        ],
        ["added", "gone", *FLIPS, "moved"],
        "",
    )
    said_before, said = both.decided_old.fillna(""), both.decided_new.fillna("")
    both = both.assign(
        change=change,
        old_confidence=was,
        new_confidence=now,
        decided=np.where(said == said_before, "", np.where(said == "", "taken back", said)),
    )
    rates = [each.table.attrs["source"] == CONFIDENCES[0] for each in (old, new)]
    changed = both[change != ""]
    flips = changed[changed.change.isin(FLIPS)]
    counts = changed.change.value_counts()
    summary = Summary(
        old_instances=old.table.instance.nunique(),
        new_instances=new.table.instance.nunique(),
        old_tags=len(old.table),
        new_tags=len(new.table),
        old_suspicious=int((old.table.confidence < EVEN_ODDS).sum()),
        new_suspicious=int((new.table.confidence < EVEN_ODDS).sum()),
        flipped=len(flips),
        by_person=int((flips.decided != "").sum()),
        **{name: int(counts.get(name, 0)) for name in CHANGES},
    )
    return Difference(
        old.name,
        new.name,
        bound,
        summary,
        _in_order(changed),
        _by_label(both, *rates),
        _by_instance(changed),
        [] if all(rates) else [_unlike(old, new)],
        differing(old.settings, new.settings),
        list(differing(old.data, new.data)),
        list(differing(old.code, new.code)),
    )


def _in_order(changed: pd.DataFrame) -> pd.DataFrame:
    """Changes as a table: flips first, the largest moves first among those of one kind."""
    kind = changed.change.map({name: place for place, name in enumerate(CHANGES)})
    move = (changed.new_confidence - changed.old_confidence).abs().fillna(0)
    order = np.lexsort((-move.to_numpy(), kind.to_numpy(int)))
    told = [*PAIR, "change", "old_confidence", "new_confidence", "decided"]
    return changed[told].iloc[order].reset_index(drop=True)


def _counts(both: pd.DataFrame, by: str) -> pd.DataFrame:
    """How many changes of each kind there are, a row for each instance or label."""
    every = pd.crosstab(both[by], both.change)
    return every.reindex(columns=list(CHANGES), fill_value=0)


def _by_label(both: pd.DataFrame, old_is_judged: bool, new_is_judged: bool) -> pd.DataFrame:
    grouped = both.groupby("label")
    table = _counts(both, "label")
    for side, judged in (("new", new_is_judged), ("old", old_is_judged)):
        found = grouped[f"{side}_confidence"]
        table.insert(0, f"{side}_tags", found.count())
        table[f"{side}_noise_rate"] = 1 - found.mean() if judged else np.nan
    rates = ["old_noise_rate", "new_noise_rate"]
    table = table[[name for name in table if name not in rates] + rates].reset_index()
    flipped = table[list(FLIPS)].sum(axis=1)
    return table.iloc[np.argsort(-flipped.to_numpy(), kind="stable")].reset_index(drop=True)


def _by_instance(changed: pd.DataFrame) -> pd.DataFrame:
    table = _counts(changed, "instance").reset_index()
    order = np.lexsort((-table[list(CHANGES)].sum(axis=1), -table[list(FLIPS)].sum(axis=1)))
    return table.iloc[order].reset_index(drop=True)


def _unlike(old: Version, new: Version) -> str:
    sources = [each.table.attrs["source"] for each in (old, new)]
    if sources[0] == sources[1]:
        return "the confidence is the pseudo-label F, which is no probability"
    told = [f"{each.name} has {source}" for each, source in zip((old, new), sources, strict=True)]
    return f"{' and '.join(told)}: F is a pseudo-label, and no probability"


def differing(
    old: Mapping[str, Any] | None, new: Mapping[str, Any] | None
) -> dict[str, tuple[Any, Any]]:
    """What two mappings do not have in common, old and new value; nothing, if one is unknown."""
    if old is None or new is None:
        return {}
    names = dict.fromkeys([*old, *new])
    pairs = {name: (old.get(name), new.get(name)) for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def _records(table: pd.DataFrame) -> list[dict[Any, Any]]:
    plain = table.astype(object).where(table.notna(), None)
    return plain.to_dict("records")


def text(difference: Difference) -> str:
    """The difference for a terminal."""
    s, names = difference.summary, (difference.old, difference.new)
    width = max(map(len, names)) + 1
    sizes = (
        (s.old_instances, s.old_tags, s.old_suspicious),
        (s.new_instances, s.new_tags, s.new_suspicious),
    )
    lines = [
        f"{name + ':':{width}} {n} instances, {tags} tags, {suspicious} of them suspicious"
        for name, (n, tags, suspicious) in zip(names, sizes, strict=True)
    ]
    person = f"; {s.by_person} by a person" if s.by_person else ""
    lines += [
        f"{s.flipped} decisions flipped: {s.dropped} tags were kept and are dropped, {s.kept} the "
        f"other way{person}",
        f"{s.added} tags added, {s.gone} gone; {s.moved} other confidences moved by more than "
        f"{difference.bound:g}",
        *difference.remarks,
    ]
    lines += [f"{what}: {', '.join(told)}" for what, told in reasons(difference).items() if told]
    changed = difference.labels[difference.labels[list(CHANGES)].any(axis=1)]
    if len(changed):
        lines += ["", *_label_lines(changed.head(MOST_TOLD))]
        more = len(changed) - MOST_TOLD
        lines += [f"and {more} labels more"] if more > 0 else []
    most = difference.instances.head(MOST_TOLD)
    flipped = most[most[list(FLIPS)].any(axis=1)]
    if len(flipped):
        told = flipped.instance + " " + flipped[list(FLIPS)].sum(axis=1).astype(str)
        lines += ["", f"instances with most flips: {', '.join(told)}"]
    return "\n".join(lines)


def _label_lines(labels: pd.DataFrame) -> list[str]:
    width = max(5, labels.label.map(len).max())
    head = f"{'label':{width}}{'tags':>14}{'dropped':>9}{'kept':>6}{'added':>7}{'gone':>6}"
    lines = [f"{head}{'moved':>7}{'noise rate':>15}"]
    for each in labels.to_dict("records"):
        tags = f"{each['old_tags']} -> {each['new_tags']}"
        counts = f"{each['dropped']:9}{each['kept']:6}{each['added']:7}{each['gone']:6}"
        rates = [
            "?" if np.isnan(rate) else f"{100 * rate:.0f} %"
            for rate in (each["old_noise_rate"], each["new_noise_rate"])
        ]
        lines.append(
            f"{each['label']:{width}}{tags:>14}{counts}{each['moved']:7}{' -> '.join(rates):>15}"
        )
    return lines


def reasons(difference: Difference) -> dict[str, list[str]]:
    """Settings, data and code that differ, in words; just the first of many."""
    settings = [
        f"{name} {_said(old)} -> {_said(new)}" for name, (old, new) in difference.settings.items()
    ]
    found = {"settings": settings, "data": difference.data, "code": difference.code}
    return {
        what: told[:MOST_TOLD] + [f"and {len(told) - MOST_TOLD} more"] * (len(told) > MOST_TOLD)
        for what, told in found.items()
    }


def _said(value: Any) -> str:
    return "nothing" if value is None else str(value)


def render(difference: Difference) -> str:
    """The difference as a page: HTML that asks for no other file and runs no script but its own."""
    changes, labels, instances = difference.changes, difference.labels, difference.instances
    return page.render(
        "diff.html.j2",
        "diff.js",
        difference=difference,
        reasons=reasons(difference),
        left_out=[max(0, len(each) - MOST_LISTED) for each in (changes, instances)],
        tables=[
            page.table("changes", changes.head(MOST_LISTED), COLUMNS),
            page.table("labels", labels, COLUMNS),
            page.table("instances", instances.head(MOST_LISTED), COLUMNS),
        ],
    )
