"""The data set that ships inside the package river: there without a network or files of ours."""

import hashlib
import importlib.util
from pathlib import Path

import numpy as np

from wscpml.datasets.dataset import Dataset
from wscpml.errors import UserError

YEAST_SHA256 = "2969cb4bab877a27adcbe17871fa0b378a1e54b98816cd6106b542ee450a1c09"


def yeast() -> Dataset:
    """2417 genes, 103 features, 14 functional classes (Elisseeff and Weston, 2001)."""
    import pandas as pd

    path = _directory() / "yeast.csv.gz"
    if not path.exists():
        raise UserError(f"{path}: is missing; install river==0.26.1")
    if hashlib.sha256(path.read_bytes()).hexdigest() != YEAST_SHA256:
        raise UserError(f"{path}: is not the expected yeast data; install river==0.26.1")
    table = pd.read_csv(path)
    labels = table.filter(regex="^Class")
    features = table.drop(columns=labels.columns)
    return Dataset(
        features=features.to_numpy(dtype=np.float64),
        truth=labels.to_numpy(dtype=np.uint8),
        candidates=None,
        feature_names=list(features.columns),
        label_names=list(labels.columns),
        instance_ids=list(range(len(table))),
    )


def _directory() -> Path:
    """The data directory of river, found without importing it."""
    package = importlib.util.find_spec("river")
    if package is None or package.origin is None:
        raise UserError("dataset.name: yeast ships inside river; pip install 'wscpml[pipeline]'")
    return Path(package.origin).parent / "datasets"
