import math
import os

import numpy as np
import pytest
from scipy.io import savemat

from wscpml.datasets.dataset import check
from wscpml.datasets.files import find
from wscpml.datasets.registry import BENCHMARKS, REGISTRY
from wscpml.datasets.river import yeast
from wscpml.errors import UserError

# Table 1 of the paper: instances, dimensions, labels, average true labels, average candidates.
TABLE_1 = {
    "Mirflickr": (10433, 100, 7, 1.77, 3.35),
    "Music_emotion": (6833, 98, 11, 2.42, 5.29),
    "Music_style": (6839, 98, 10, 1.44, 6.04),
    "YeastBP": (6139, 6139, 217, 5.54, 5.93),
    "YeastCC": (6139, 6139, 50, 1.35, 1.39),
    "YeastMF": (6139, 6139, 39, 1.01, 1.04),
    "emotions": (593, 72, 6, 1.86, None),
    "birds": (645, 260, 19, 1.01, None),
    "medical": (978, 1449, 45, 1.25, None),
    "image": (2000, 294, 5, 1.23, None),
    "yeast": (2417, 103, 14, 4.24, None),
    "corel5k": (5000, 499, 374, 3.52, None),
}


def loaded(name: str):
    """The real set, or a skip that says what is missing."""
    absent = [file.name for file in REGISTRY[name].files if find(file) is None]
    if absent:
        where = os.environ.get("WSCPML_DATA", "WSCPML_DATA, which is not set")
        pytest.skip(f"{', '.join(absent)} is neither in data/own/ nor in {where}")
    return REGISTRY[name].load()


def printed(value: float, average: float) -> bool:
    """Whether a figure of the paper is the average to two decimals, rounded or cut off."""
    return value in (round(average, 2), math.floor(average * 100) / 100)


@pytest.mark.parametrize("name", TABLE_1)
def test_the_real_files_are_those_of_the_papers_table_1(name):
    data = loaded(name)
    n, d, q, true, candidates = TABLE_1[name]
    entry = REGISTRY[name]
    if name == "Mirflickr":
        assert "a subset, 5000 of the 10433" in entry.note
        n = 5000
    assert data.features.shape == (n, d) == (entry.instances, entry.dimensions)
    assert data.truth.shape == (n, q) == (n, entry.labels)
    assert printed(true, data.truth.sum(axis=1).mean())
    assert round(data.truth.sum(axis=1).mean(), 2) == entry.average_true
    if candidates is None:
        assert data.candidates is None
    else:
        assert printed(candidates, data.candidates.sum(axis=1).mean())
        assert entry.average_candidates == candidates
    check(data, name)


def test_rivers_yeast_is_the_yeast_of_the_field():
    mirror = os.environ.get("WSCPML_DATA")
    if not mirror or not os.path.exists(f"{mirror}/yeast.mat"):  # noqa: PTH110
        pytest.skip("yeast.mat is not in WSCPML_DATA")
    from scipy.io import loadmat

    theirs = loadmat(f"{mirror}/yeast.mat")
    np.testing.assert_array_equal(yeast().truth, theirs["target"])
    np.testing.assert_allclose(yeast().features, theirs["data"])


def test_the_papers_24_settings_all_have_a_name():
    real = [name for name, entry in REGISTRY.items() if entry.average_candidates is not None]
    assert len(real) + len(BENCHMARKS) == 24
    assert BENCHMARKS["emotions-3"] == ("emotions", 3)
    assert BENCHMARKS["corel5k-11"] == ("corel5k", 11)


def test_every_set_says_where_it_comes_from():
    for name, entry in REGISTRY.items():
        assert entry.citation, name
        assert entry.note, name
        for file in entry.files:
            assert (file.sha256 is None) == (file.url is None)
            if file.url:
                assert len(file.sha256) == 64
                assert file.url.startswith("https://raw.githubusercontent.com/")
                assert " " not in file.url


@pytest.mark.parametrize(
    ("name", "variable"), [("Music_emotion", "partial_labels"), ("Music_style", "candidate_labels")]
)
def test_a_set_that_only_a_user_can_supply_is_read_once_it_is_there(
    tmp_path, monkeypatch, name, variable
):
    monkeypatch.chdir(tmp_path)
    entry = REGISTRY[name]
    assert entry.availability() == "to supply"
    with pytest.raises(UserError, match=f"{name}.mat: is not public; put it into data/own/"):
        entry.load()
    own = tmp_path / "data/own"
    own.mkdir(parents=True)
    rng = np.random.default_rng(0)
    truth = (rng.random((entry.labels, 30)) < 0.3).astype(np.uint8)
    candidates = truth | (rng.random(truth.shape) < 0.3)
    made = {"data": rng.normal(size=(30, 98)), "target": truth, variable: candidates}
    savemat(own / f"{name}.mat", made)
    assert entry.availability() == "here"
    data = entry.load()
    assert data.features.shape == (30, 98)
    np.testing.assert_array_equal(data.truth, truth.T)
    np.testing.assert_array_equal(data.candidates, candidates.T)
