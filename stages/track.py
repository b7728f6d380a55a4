"""Log the result of the pipeline as one MLflow run, from the files that it left."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from stages import run
from wscpml import artifacts, tracking
from wscpml.settings import Settings


def track(settings: Settings) -> None:
    """Write metrics/run.json: where the run is."""
    hashes = dvc_hashes()
    features = artifacts.read("data/prepared/features.npy")
    evaluation = flat(artifacts.read("metrics/evaluation.json"))
    labels = artifacts.read("metrics/per_label.csv")
    for label, value in zip(labels.label, labels.average_precision, strict=True):
        evaluation[f"label_average_precision.{label}"] = value
    courses = {name: artifacts.read(f"metrics/{name}.csv") for name in ("clustering", "training")}
    result = tracking.Result(
        name=run_name(settings, os.environ.get("DVC_EXP_NAME")),
        params=flat(settings.model_dump()),
        metrics={name: value for name, value in evaluation.items() if not pd.isna(value)},
        courses=courses,
        tags=tags(hashes),
        files=[
            *[Path(name) for name in ("params.yaml", "dvc.yaml", "dvc.lock")],
            Path("data/pseudo_labels.parquet"),
            Path("data/predictions.parquet"),
            *sorted(Path("metrics").glob("*.csv")),
            Path("metrics/evaluation.json"),
            Path("metrics/overview.png"),
        ],
        model=Path("models/classifier"),
        features=features,
        targets=artifacts.read("data/candidates.npy"),
        dataset=settings.dataset.name,
        digest=hashes["data/prepared"].removesuffix(".dir"),
    )
    run_id = tracking.log_run(result, settings.tracking.experiment)
    artifacts.write("metrics/run.json", {"run_id": run_id})


def run_name(settings: Settings, experiment: str | None) -> str:
    """What tells runs apart in MLflow's table, with the name that `dvc exp show` has for it."""
    data, chosen = f"{settings.dataset.name}-{settings.noise.candidates}", settings.clustering
    suffix = f" ({experiment})" if experiment else ""
    return f"{data} alpha={chosen.alpha:g} beta={chosen.beta:g}{suffix}"


def flat(nested: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested sections as one level of dotted names."""
    items: dict[str, Any] = {}
    for key, value in nested.items():
        items |= (
            flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
        )
    return items


def dvc_hashes() -> dict[str, str]:
    """DVC's hash of every output so far, by path: what `dvc checkout` can bring back."""
    lock = yaml.safe_load(Path("dvc.lock").read_text())
    outs = [out for stage in lock["stages"].values() for out in stage.get("outs", [])]
    return {out["path"]: out["md5"] for out in outs}


def tags(hashes: dict[str, str]) -> dict[str, str]:
    """The way from the run back to code and data."""
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True)
    versions = {
        "dvc.data": hashes["data/prepared"],
        "dvc.candidates": hashes["data/candidates.npy"],
        "dvc.pseudo_labels": hashes["data/pseudo_labels.parquet"],
        "dvc.model": hashes["models/classifier"],
        "dvc.experiment": os.environ.get("DVC_EXP_NAME", ""),
        "git.commit": commit.stdout.strip(),
    }
    return {name: value for name, value in versions.items() if value}


if __name__ == "__main__":
    run(track)
