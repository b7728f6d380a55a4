"""The sample: invented songs as a real table has them, with holes, words, dates and messy tags.

`wscpml sample songs.csv` hands it out; `python -m wscpml.datasets.songs` makes it anew, into the
file that ships with the package. True tags are known here, so that tests can tell how well wrong
ones are found.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from wscpml.arrays import Array

FILE = Path(__file__).with_suffix(".csv")
ROWS = 300
WORDS = {
    "Classical": "orchestra strings sonata cello symphony conductor chamber movement",
    "Electronic": "synth sequencer club drum-machine loop modular sampler bass",
    "Folk": "acoustic ballad banjo fiddle storytelling harmonica village fingerpicked",
    "Jazz": "saxophone improvised swing trumpet quartet brushes bebop standard",
    "R&B": "soulful groove falsetto smooth bassline slow-jam sensual harmonies",
    "Rock": "distorted riff amplifier anthem drums stadium chords feedback",
}
ASIDES = (
    "recorded", "live", "in", "the", "studio", "with", "a", "new", "band", "for", "this", "album",
    "and", "one", "more", "take",
)  # fmt: skip
NUMBERS = {  # name: mean, deviation, decimals
    "tempo": (118, 24, 0),
    "loudness": (-9, 3, 1),
    "energy": (0.6, 0.2, 2),
    "valence": (0.5, 0.2, 2),
    "duration": (215, 45, 0),
    "acousticness": (0.4, 0.2, 2),
    "speechiness": (0.1, 0.04, 3),
    "danceability": (0.55, 0.15, 2),
}
COUNTRIES = ["Brazil", "France", "Japan", "Mali", "UK", "USA"]
MISSING = 0.05  # of the numbers
WRONG = 0.25  # of the tags that are not true are given
SPELLINGS = {"Rock": "rock", "Electronic": "electronic ", "R&B": "r&b"}  # now and then


def songs(n: int = ROWS, seed: int = 0) -> tuple[pd.DataFrame, Array]:
    """A table of songs, and which of the labels in their order are true, 0/1 ``(n, q)``."""
    rng = np.random.default_rng(seed)
    labels = list(WORDS)
    truth = rng.random((n, len(labels))) < 0.2
    truth[np.arange(n), rng.integers(len(labels), size=n)] = True
    given = truth | (rng.random(truth.shape) < WRONG)
    table = pd.DataFrame({"song": [f"song {i + 1}" for i in range(n)]})
    pulls = np.random.default_rng(1).normal(size=(len(labels), len(NUMBERS)))
    values = 0.5 * truth @ pulls + rng.normal(size=(n, len(NUMBERS)))
    values[rng.random(values.shape) < MISSING] = np.nan
    for (name, (mean, deviation, decimals)), column in zip(NUMBERS.items(), values.T, strict=True):
        table[name] = np.round(mean + deviation * column, decimals)
    home = rng.integers(len(COUNTRIES), size=n)
    at_home = truth.argmax(axis=1)
    table["country"] = np.array(COUNTRIES)[np.where(rng.random(n) < 0.3, at_home, home)]
    days = pd.Timestamp("1965-01-01") + pd.to_timedelta(rng.integers(55 * 365, size=n), "D")
    table["released"] = days.strftime("%Y-%m-%d")
    table["description"] = [_description(row, rng) for row in truth]
    table["tags"] = [_tags(row, rng) for row in given]
    return table, truth.astype(np.uint8)


def _description(true: Array, rng: np.random.Generator) -> str:
    """Some words of the true labels among others, and at times one of another label."""
    words = [each.split() for each in WORDS.values()]
    said = list(rng.choice(ASIDES, 6, replace=False))
    for j in np.flatnonzero(true):
        said += list(rng.choice(words[j], rng.integers(0, 3), replace=False))
    if rng.random() < 0.3:
        said.append(rng.choice(words[rng.integers(len(words))]))
    rng.shuffle(said)
    return " ".join(said).capitalize()


def _tags(given: Array, rng: np.random.Generator) -> str:
    names = [list(WORDS)[j] for j in np.flatnonzero(given)]
    spelt = [SPELLINGS.get(name, name) if rng.random() < 0.05 else name for name in names]
    rare = ["polka"] if rng.random() < 0.005 else []
    return ", ".join(spelt + rare)


if __name__ == "__main__":
    songs()[0].to_csv(FILE, index=False, lineterminator="\n")
