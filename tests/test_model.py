import numpy as np

from wscpml import artifacts, features
from wscpml.classifier import Network
from wscpml.model import Model


def test_a_model_read_back_predicts_the_same(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    for kernel, d in (("rbf", 15), ("none", 3)):
        shapes = ((d, 8), 8, (4, 2), 4)
        network = Network(*(rng.normal(size=shape).astype(np.float32) for shape in shapes))
        feature_map = features.fit(X, "quantile", kernel, 5, 0.5, rng)
        model = Model(feature_map, network, list("abc"), list("wxyz"))
        artifacts.write_directory(tmp_path / kernel, model.to_files())
        again = Model.from_files(artifacts.read_directory(tmp_path / kernel, Model.FILES))
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
        assert (again.feature_names, again.label_names) == (list("abc"), list("wxyz"))
