"""What columns of words, categories and dates are worth, and what our encoding of them is.

`python -m benchmarks.tables [--quick] [--json FILE] [--draws N]` gives invented songs, whose true
tags are known, to `WSCPML` in three ways, and tells the ROC AUC of the label confidence among all
tags:

    as it is        the table itself: every column is recognised and encoded
    without text    the same without the description
    by hand         a ColumnTransformer of scikit-learn in front: median and indicator, scaled;
                    one-hot categories; year and month; TF-IDF of words

Figures are means over three draws of the songs. `--quick`: one draw of 300 songs in place of 3000.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from tqdm import tqdm

from wscpml import WSCPML
from wscpml.arrays import Array, Matrix
from wscpml.datasets.songs import NUMBERS, WORDS, songs
from wscpml.datasets.tags import plain

MANY, FEW = 3000, 300
DRAWS = 3


def by_hand(table: pd.DataFrame) -> Matrix:
    """What a person would write for these columns."""
    days = pd.to_datetime(table.released)
    table = table.assign(year=days.dt.year, month=days.dt.month)
    numbers = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    categories = OneHotEncoder(min_frequency=5, handle_unknown="infrequent_if_exist")
    return ColumnTransformer(
        [
            ("numbers", numbers, [*NUMBERS, "year", "month"]),
            ("categories", categories, ["country"]),
            ("text", TfidfVectorizer(min_df=2), "description"),
        ]
    ).fit_transform(table)


def measure(rows: int, draw: int) -> dict[str, float]:
    """ROC AUC of each way, on one draw of the songs."""
    table, truth = songs(rows, draw)
    given = [{plain(tag) for tag in tags.split(",")} for tags in table.tags]
    candidates = np.array([[plain(name) in tags for name in WORDS] for tags in given], np.uint8)
    X = table.drop(columns=["song", "tags"])
    ways = {
        "as it is": X,
        "without text": X.drop(columns="description"),
        "by hand": by_hand(X),
    }
    return {way: auc(features, candidates, truth) for way, features in ways.items()}


def auc(X: Matrix, candidates: Array, truth: Array) -> float:
    """How well label confidences tell true from false candidates."""
    confidence = np.asarray(WSCPML(random_state=0).fit(X, candidates).label_confidence_)
    return float(roc_auc_score(truth[candidates == 1], confidence[candidates == 1]))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help=f"{FEW} songs")
    parser.add_argument("--draws", type=int, default=DRAWS, metavar="N", help="of the songs")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep the figures here too")
    options = parser.parse_args()
    rows, draws = (FEW, 1) if options.quick else (MANY, options.draws)
    each = [measure(rows, draw) for draw in tqdm(range(draws), disable=None, leave=False)]
    found = {way: float(np.mean([of_draw[way] for of_draw in each])) for way in each[0]}
    for way, value in found.items():
        print(f"{way:15}{value:.3f}   ", *(f"{of_draw[way]:.3f}" for of_draw in each))
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
