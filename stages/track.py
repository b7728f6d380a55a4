"""Log the result of the pipeline as one MLflow run, from the files that it left."""

import hashlib
import json
import os
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from wscpml import artifacts
from wscpml.arrays import EVEN_ODDS, to_dense
from wscpml.errors import UserError
from wscpml.quality import diff
from wscpml.serving import locks, tracking, versions
from wscpml.serving.dvc_cache import Cache
from wscpml.serving.versions import Locked, flat
from wscpml.settings import OF_WSC_PML, Settings

from . import run

SHOWN = versions.FOR_MLFLOW

FILES = [
    "params.yaml",
    "dvc.yaml",
    "dvc.lock",
    "data/pseudo_labels.parquet",
    "data/predictions.parquet",
    "metrics/iterations.csv",
    "metrics/training.csv",
    "metrics/per_label.csv",
    "metrics/candidates.csv",
    "metrics/noise.json",
    "metrics/evaluation.json",
    "metrics/overview.png",
    "metrics/audit.html",
    "metrics/code.json",
    "metrics/settings.json",
]
RAW = Path("data/prepared/raw.parquet")  # some rows, where columns were encoded
JUDGED = ("seen", "dispersion", "deviation", "weight")  # of the noise: what speaks for its kind
DECISIONS = ["data/decided.parquet", "data/contradictions.csv"]
DATA_SET = ("dataset.name", "dataset.features")
NAMED = ("method", *DATA_SET, "noise.kind", "noise.candidates", "noise.rate")
MOST_NAMED = 3  # differences in a run's name
MOST_LABELS = 100  # that have metrics of their own, the most frequent ones
MOST_ROWS = 1000  # of the table in MLflow's pages
MOST_COPIED = 1 << 20  # bytes of a person's file that DVC does not keep
MOST_LOGGED = 64 << 20  # bytes of an output that DVC keeps, which the run then has by its hash
MOST_CHANGES = 100_000  # rows of the table of what changed
MOST_CHANGED = 5  # files that the tag about the tree names

V = TypeVar("V")


def track(settings: Settings) -> None:
    """Write metrics/run.json: where the run is."""
    own, made = settings.has_stages, Path("models", settings.method)
    files = [*FILES, *sources(settings)]
    files += [locks.OWN_PIPELINE, locks.OWN_LOCK] if own else [f"{made}/params.yaml"]
    files += [f"{made}/noise_rates.csv", f"{made}/noise.json"] if own else []
    decided = len(artifacts.read(DECISIONS[0])) > 0
    files += DECISIONS if decided else []
    found = versions.locked({name: artifacts.read(name) for name in files if name in locks.LOCKS})
    names = artifacts.read("data/prepared/names.json")
    parameters = flat(settings.model_dump(exclude=None if own else set(OF_WSC_PML)))
    if not own:
        parameters |= flat({settings.method: artifacts.read(made / "params.yaml")})
    features = artifacts.read_matrix("data/prepared", "features")
    table = artifacts.read(versions.TABLE)
    head = versions.git("rev-parse", "--short", "HEAD")
    before = versions.locked_at(head) if head else None
    ours = diff.candidates(table, versions.TABLE)
    difference = since(head, ours, found) if head else None

    measured = flat(artifacts.read("metrics/evaluation.json"))
    measured |= flat({"candidates": artifacts.read("metrics/noise.json")})
    if difference:
        counts = asdict(difference.summary)
        measured |= {
            f"labels.{name}": counts[name] for name in ("flipped", "added", "gone", "moved")
        }
    labels = artifacts.read("metrics/per_label.csv")
    often = table.label.value_counts().reindex(labels.label, fill_value=0).to_numpy()
    listed = np.sort(np.argsort(-often, kind="stable")[:MOST_LABELS])
    of_labels = {"label_average_precision": labels.average_precision}
    if own:
        judged = artifacts.read(made / "noise.json")
        measured |= {f"noise_seen.{name}": judged[name] for name in JUDGED}
        of_labels["label_noise_rate"] = artifacts.read(made / "noise_rates.csv").noise_rate
    for prefix, values in of_labels.items():
        measured |= named(prefix, labels.label.to_numpy()[listed], values.to_numpy()[listed])
    courses = {name: artifacts.read(f"metrics/{name}.csv") for name in ("iterations", "training")}
    objective = courses["iterations"].objective
    courses["iterations"]["objective_per_candidate"] = objective / max(len(table), 1)
    result = tracking.Result(
        name=run_name(
            settings,
            "candidates" in names["given"],
            found,
            before,
            os.environ.get("DVC_EXP_NAME"),
        ),
        params=fit(parameters),
        metrics={name: value for name, value in measured.items() if not pd.isna(value)},
        courses=courses,
        tags=tags(found, before, settings.tracking.experiment)
        | {tracking.DESCRIPTION: description(settings, ours, difference, head)},
        files=[Path(name) for name in copied(files, found)],
        tables={f"{SHOWN}/pseudo_labels.json": shown(ours, difference)},
        texts=told(difference) if difference else {},
        model=made / "classifier" if own else None,
        example=artifacts.read(RAW) if RAW.exists() else to_dense(features[:2]),
        dataset=settings.dataset.title,
        digest=found.outs["data/prepared"].removesuffix(".dir"),
        source=", ".join(named_files(settings)) or f"wscpml fetch {settings.dataset.name}",
        identity=identity(found),
        sizes={
            "instances": features.shape[0],
            "features": features.shape[1],
            "labels": len(labels),
        },
    )
    run_id = tracking.log_run(result, **settings.tracking.model_dump())
    artifacts.write("metrics/run.json", {"run_id": run_id})


def identity(found: Locked) -> str:
    """What tells the result from any other: outputs, settings, and the code that logs them."""
    code = artifacts.read(versions.CODE)["stages"]["track"]
    told = json.dumps([found.outs, found.settings, code], sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()


def copied(files: list[str], found: Locked) -> list[str]:
    """The files that a run has itself; to large outputs its locks lead."""
    large = [name for name in files if name in found.outs and size(name) > MOST_LOGGED]
    if large:
        print(f"too large for MLflow, kept by DVC alone: {', '.join(large)}", file=sys.stderr)
    return [name for name in files if name not in large]


def sources(settings: Settings) -> list[str]:
    """What leads back to a person's own files: DVC's notes of them, and small ones themselves."""
    notes = sorted(each.as_posix() for each in Path("data").rglob("*.dvc"))
    kept = versions.kept_by_dvc(Path())
    small = [
        path
        for path in named_files(settings)
        if not any(f"{path}/".startswith(f"{each}/") for each in kept)
        and size(path, "bring it back, or name another in params.yaml") <= MOST_COPIED
    ]
    return notes + small


def size(path: str, way_out: str = artifacts.FROM_DVC) -> int:
    """The bytes of a file; a UserError if it is not there."""
    try:
        return Path(path).stat().st_size
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); {way_out}") from None


def named_files(settings: Settings) -> list[str]:
    """A person's own files, as the settings name them."""
    given = flat(settings.model_dump())
    return list(dict.fromkeys(str(given[key]) for key in versions.SOURCES if given[key]))


def description(
    settings: Settings, ours: pd.DataFrame, difference: diff.Difference | None, head: str | None
) -> str:
    """What the run's page begins with, in Markdown."""
    low = int((ours.confidence < EVEN_ODDS).sum())
    lines = [
        f"`{settings.method}` on {settings.dataset.title}: {len(ours)} tags of "
        f"{ours.instance.nunique()} instances, {low} rather false than true."
    ]
    if difference:
        counts = difference.summary
        lines.append(
            f"Since commit {head}: {counts.flipped} decisions flipped, {counts.added} tags added, "
            f"{counts.gone} gone; `{SHOWN}/changes.html` among the artifacts tells which."
        )
    lines.append("`wscpml restore run:ID DIR` brings all files of the run back.")
    return "\n\n".join(lines)


def since(head: str, ours: pd.DataFrame, found: Locked) -> diff.Difference | None:
    """What changed since the last commit, if that is known; says so to people."""
    try:
        old = versions.committed(head, Cache(), remote=False)
        new = diff.Version(
            versions.WORKSPACE,
            ours,
            found.settings,
            found.data,
            found.code,
        )
        difference = diff.compare(old, new)
    except UserError as mistake:
        why = str(mistake).partition(";")[0]
        print(f"the labels are not compared with those of the last commit: {why}", file=sys.stderr)
        return None
    counts = difference.summary
    print(
        f"{counts.flipped} decisions flipped since commit {head}, {counts.added} tags added, "
        f"{counts.gone} gone: `wscpml diff {head} workspace` tells which"
    )
    return difference


def told(difference: diff.Difference) -> dict[str, str]:
    """The difference as artifacts."""
    return {
        f"{SHOWN}/changes.csv": difference.changes[:MOST_CHANGES].to_csv(
            index=False, lineterminator="\n"
        ),
        f"{SHOWN}/changes.html": diff.render(difference),
    }


def shown(ours: pd.DataFrame, difference: diff.Difference | None) -> pd.DataFrame:
    """The pseudo-labels for MLflow's pages: those that flipped, then the most suspicious."""
    change: Any = np.full(len(ours), "", object)
    if difference:
        changed = difference.changes.set_index(diff.PAIR).change
        every = pd.MultiIndex.from_frame(ours[diff.PAIR])
        change = changed.reindex(every).fillna("").to_numpy()
    order = np.lexsort((ours.confidence, ~np.isin(change, diff.FLIPS)))[:MOST_ROWS]
    first = ours.iloc[order].assign(change=change[order])
    first["decision"] = np.where(first.confidence >= EVEN_ODDS, "keep", "drop")
    columns = [*diff.PAIR, "change", "decision", "confidence", "decided"]
    return first[columns].round({"confidence": 4}).reset_index(drop=True)


def run_name(
    settings: Settings,
    noise_is_given: bool,
    found: Locked,
    before: Locked | None,
    experiment: str | None,
) -> str:
    """What tells runs apart in MLflow's table: what differs from the last commit, then the rest.

    It ends with the version of the data, and the name that `dvc exp show` has for it.
    """
    added = settings.noise
    noise = f"-{added.candidates}" if added.kind == "pad" else f" {added.kind} {added.rate:g}"
    noise = "" if noise_is_given else noise
    differs = differing(found, before) if before else []
    parts = [
        f"{', '.join(differs)} |" if differs else "",
        f"{settings.method} {settings.dataset.title}{noise}",
        f"@{found.outs['data/prepared'][:7]}",
        f"({experiment})" if experiment else "",
    ]
    return " ".join(filter(None, parts))


def differing(found: Locked, before: Locked) -> list[str]:
    """The first of what differs, in words, without what every name tells."""
    changed = {
        name: value
        for name, value in found.settings.items()
        if name in before.settings and value != before.settings[name]
    }
    another = not changed.keys().isdisjoint(DATA_SET)
    words = [
        f"{name}={value}"
        for name, value in changed.items()
        if name not in NAMED and not (another and name.startswith("dataset."))
    ]
    data = diff.differing(before.data, found.data)
    words += ["new data"] if "data/prepared" in data and not another else []
    words += ["new decisions"] if DECISIONS[0] in data and "data/prepared" not in data else []
    stages = [
        name.removeprefix("stages.")
        for name in diff.differing(before.code, found.code)
        if name in before.code and name in found.code
    ]
    words += [f"new code of {stages[0]}"] if stages and not words else []
    more = len(words) - MOST_NAMED
    return words[:MOST_NAMED] + ([f"{more} more"] if more > 0 else [])


def named(prefix: str, labels: Iterable[str], values: Iterable[float]) -> dict[str, float]:
    """A metric for each label."""
    pairs = zip(labels, values, strict=True)
    return fit({f"{prefix}.{label}": value for label, value in pairs})


def fit(values: Mapping[str, V]) -> dict[str, V]:
    """The same values by names that MLflow takes, each by one of its own."""
    found: dict[str, V] = {}
    for text, value in values.items():
        name, more = metric_name(text), ""
        while (whole := name[: tracking.LONGEST_NAME - len(more)] + more) in found:
            more += "_"  # R&B and R/B are one to MLflow
        found[whole] = value
    return found


def metric_name(text: str) -> str:
    """A name of characters that MLflow takes, whatever a label or a column is called."""
    return re.sub(r"[^\w\-. :]", "_", text)


def tags(found: Locked, before: Locked | None, experiment: str) -> dict[str, str]:
    """The way from the run back to code and data: the hash of each output, and the commit.

    And the run that logged the result which this one was compared with, if there is one.
    """
    known = before.outs.get(versions.TABLE) if before else None
    parent = tracking.logged(experiment, f"dvc.{versions.TABLE}", known) if known else None
    about = {
        "dvc.experiment": os.environ.get("DVC_EXP_NAME", ""),
        "git.commit": versions.git("rev-parse", "--verify", "HEAD") or "",
        "git.tree": tree(found),
        "labels.compared_with": parent or "",
        **{f"dvc.{path}": known for path, known in found.outs.items()},
    }
    return {name: value for name, value in about.items() if value}


def tree(found: Locked) -> str:
    """Whether all that the pipeline reads is as in the commit, or what is not."""
    changed = versions.git("-c", "core.quotepath=off", "diff", "--name-only", "--relative", "HEAD")
    new = versions.git("-c", "core.quotepath=off", "ls-files", "--others", "--exclude-standard")
    if changed is None or new is None:
        return ""
    paths = [*changed.splitlines(), *new.splitlines()]
    made = {*found.outs, *locks.LOCKS}
    others = [path for path in paths if path not in made]
    if not others:
        return "clean"
    more = len(others) - MOST_CHANGED
    return "changed: " + ", ".join(others[:MOST_CHANGED]) + (f", {more} more" if more > 0 else "")


if __name__ == "__main__":
    run(track)
