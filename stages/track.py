"""Log the result of the pipeline as one MLflow run, from the files that it left."""

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pandas as pd

from stages import run
from wscpml import artifacts
from wscpml.arrays import to_dense
from wscpml.serving import tracking
from wscpml.settings import Settings

STAGES = "models"  # of WSC-PML's own
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
]
RAW = Path("data/prepared/raw.parquet")  # some rows, where columns were encoded
JUDGED = ("seen", "dispersion", "deviation", "weight")  # of the noise: what speaks for its kind
DECISIONS = ["data/decided.parquet", "data/contradictions.csv"]
SHARED = {  # by all methods
    "method", "seed", "dataset", "split", "noise", "review", "evaluation", "tracking",
}  # fmt: skip


def track(settings: Settings) -> None:
    """Write metrics/run.json: where the run is."""
    own, made = settings.has_stages, Path("models", settings.method)
    files = [*FILES, f"{made}/params.yaml"]
    files += [f"{STAGES}/dvc.yaml", f"{STAGES}/dvc.lock"] if own else []
    files += [f"{made}/noise_rates.csv", f"{made}/noise.json"] if own else []
    decided = len(artifacts.read(DECISIONS[0])) > 0
    files += DECISIONS if decided else []
    hashes = dvc_hashes([name for name in files if name.endswith(".lock")])
    names, parameters = (
        artifacts.read(path) for path in ("data/prepared/names.json", made / "params.yaml")
    )
    features = artifacts.read_matrix("data/prepared", "features")
    measured = flat(artifacts.read("metrics/evaluation.json"))
    measured |= flat({"noise": artifacts.read("metrics/noise.json")})
    if own:
        judged = artifacts.read(made / "noise.json")
        measured |= {f"noise_seen.{name}": judged[name] for name in JUDGED}
    labels = artifacts.read("metrics/per_label.csv")
    for label, value in zip(labels.label, labels.average_precision, strict=True):
        name = metric_name(f"label_average_precision.{label}")
        while name in measured:  # R&B and R/B are one to MLflow
            name += "_"
        measured[name] = value
    courses = {name: artifacts.read(f"metrics/{name}.csv") for name in ("iterations", "training")}
    result = tracking.Result(
        name=run_name(settings, "candidates" in names["given"], os.environ.get("DVC_EXP_NAME")),
        params=flat(settings.model_dump(include=SHARED))
        | flat(parameters if own else {settings.method: parameters}),
        metrics={name: value for name, value in measured.items() if not pd.isna(value)},
        courses=courses,
        tags=tags(hashes, decided),
        files=[Path(name) for name in files],
        tables={},
        texts={},
        model=made / "classifier" if own else None,
        example=artifacts.read(RAW) if RAW.exists() else to_dense(features[:2]),
        dataset=settings.dataset.title,
        digest=hashes["data/prepared"].removesuffix(".dir"),
        sizes={
            "instances": features.shape[0],
            "features": features.shape[1],
            "labels": len(labels),
        },
    )
    run_id = tracking.log_run(result, **settings.tracking.model_dump())
    artifacts.write("metrics/run.json", {"run_id": run_id})


def run_name(settings: Settings, noise_is_given: bool, experiment: str | None) -> str:
    """What tells runs apart in MLflow's table, with the name that `dvc exp show` has for it."""
    chosen, added = settings.clustering, settings.noise
    weights = f" alpha={chosen.alpha:g} beta={chosen.beta:g}" if settings.has_stages else ""
    noise = f"-{added.candidates}" if added.kind == "pad" else f" {added.kind} {added.rate:g}"
    noise = "" if noise_is_given else noise
    suffix = f" ({experiment})" if experiment else ""
    return f"{settings.method} {settings.dataset.title}{noise}{weights}{suffix}"


def metric_name(text: str) -> str:
    """A name that MLflow takes, whatever a label is called."""
    return re.sub(r"[^\w\-. :]", "_", text)


def flat(nested: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested sections as one level of dotted names."""
    items: dict[str, Any] = {}
    for key, value in nested.items():
        items |= (
            flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
        )
    return items


def dvc_hashes(locks: list[str]) -> dict[str, str]:
    """DVC's hash of every output so far, by path: what `dvc checkout` can bring back."""
    stages = [stage for lock in locks for stage in artifacts.read(lock)["stages"].values()]
    return {out["path"]: out["md5"] for stage in stages for out in stage.get("outs", [])}


def tags(hashes: dict[str, str], decided: bool) -> dict[str, str]:
    """The way from the run back to code and data."""
    versions = {
        "dvc.data": hashes["data/prepared"],
        "dvc.candidates": hashes["data/candidates.npy"],
        "dvc.pseudo_labels": hashes["data/pseudo_labels.parquet"],
        "dvc.decisions": hashes[DECISIONS[0]] if decided else "",
        "dvc.model": hashes.get("models/wsc-pml/classifier", ""),
        "dvc.experiment": os.environ.get("DVC_EXP_NAME", ""),
        "git.commit": git("rev-parse", "--verify", "HEAD"),
        "git.changed": git("status", "--porcelain", "--untracked-files=no") and "yes",
    }
    return {name: value for name, value in versions.items() if value}


def git(*command: str) -> str:
    """What a git command says, or nothing where it fails."""
    done = subprocess.run(["git", *command], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


if __name__ == "__main__":
    run(track)
