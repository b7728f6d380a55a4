import numpy as np
import pytest

from wscpml.datasets import river
from wscpml.datasets.registry import REGISTRY
from wscpml.errors import UserError


def test_yeast_is_the_set_of_the_papers_table():
    data = REGISTRY["yeast"].load()
    assert data.features.shape == (2417, 103)
    assert data.truth.shape == (2417, 14)
    assert round(data.truth.sum(axis=1).mean(), 2) == 4.24
    assert set(np.unique(data.truth)) == {0, 1}
    assert np.isfinite(data.features).all()
    assert (data.feature_names[0], data.label_names[-1]) == ("Att1", "Class14")
    assert len(data.instance_ids) == 2417


def test_another_file_in_yeasts_place_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(river, "_directory", lambda: tmp_path)
    with pytest.raises(UserError, match="yeast.csv.gz: is missing; install river"):
        river.yeast()
    (tmp_path / "yeast.csv.gz").write_bytes(b"something else")
    with pytest.raises(UserError, match="is not the expected yeast data"):
        river.yeast()


def test_without_river_the_way_out_is_named(monkeypatch):
    monkeypatch.setattr(river.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(UserError, match="yeast ships inside river; pip install"):
        river.yeast()
