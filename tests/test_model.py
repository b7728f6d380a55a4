import numpy as np
import pytest

from wscpml import artifacts, features
from wscpml.classifier import Network
from wscpml.model import Model, with_even_odds_at
from wscpml.ridge import Ridge


def heads(d):
    rng = np.random.default_rng(0)
    shapes = ((d, 8), 8, (4, 2), 4)
    yield Network(*(rng.normal(size=shape).astype(np.float32) for shape in shapes))
    yield Ridge(rng.normal(size=(d, 4)), rng.normal(size=4))


@pytest.mark.parametrize("kernel", ["laplace", "rbf", "none"])
def test_a_model_read_back_predicts_the_same(tmp_path, kernel):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    feature_map = features.fit(X, "quantile", kernel, 5, 0.5, 1.0, rng)
    for head in heads(feature_map.size):
        model = Model(feature_map, head, list("abc"), list("wxyz"))
        artifacts.write_directory(tmp_path / "model", model.to_files())
        again = Model.from_files(artifacts.read_directory(tmp_path / "model", Model.FILES))
        assert type(again.head) is type(head)
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
        assert (again.feature_names, again.label_names) == (list("abc"), list("wxyz"))


def test_a_head_with_even_odds_elsewhere_has_a_half_there_and_the_same_order():
    X = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32) / 4
    for head in heads(3):
        before = head.predict_proba(X)
        after = with_even_odds_at(0.7, head).predict_proba(X)
        np.testing.assert_array_equal(after >= 0.5, before >= 0.7)
        np.testing.assert_array_equal(after.argsort(axis=None), before.argsort(axis=None))
