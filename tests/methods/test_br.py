import numpy as np
import pytest

from tests.contract import Contract, small
from wscpml.algorithm import features, network
from wscpml.methods.br import BR, Oracle


class TestBR(Contract):
    method = BR()


def test_its_defaults_are_those_of_the_pipeline(params):
    ours = BR().get_params()
    ours.pop("random_state")
    del params["classifier"]["kind"], params["classifier"]["labels"]
    assert ours == params["features"] | params["classifier"]


def test_it_is_the_pipelines_network_on_the_candidates():
    X, _, Y = small()
    found = BR(max_epochs=5, random_state=3).fit(X, Y)
    rng = np.random.default_rng(3)
    mapped = features.fit(X, "quantile", "laplace", 5, 0.5, 0.999, rng)(X)
    settings = BR(max_epochs=5).get_params()
    names = ("width", "learning_rate", "weight_decay", "batch_size", "max_epochs", "patience")
    trained, course = network.fit(
        mapped,
        Y,
        Y.astype(float),
        **{name: settings[name] for name in names},
        validation_share=settings["validation_share"],
        rng=rng,
    )
    expected = trained.predict_proba(mapped)
    np.testing.assert_array_equal(found.predict_proba(X), expected)
    np.testing.assert_array_equal(found.pseudo_labels_, expected * Y)
    assert found.objective_ == course.training_loss.tolist()


def test_the_oracle_is_the_same_network_and_needs_the_truth():
    X, truth, _ = small()
    both = [kind(max_epochs=5, random_state=0).fit(X, truth) for kind in (BR, Oracle)]
    one, other = (each.predict_proba(X) for each in both)
    np.testing.assert_array_equal(one, other)
    assert Oracle.NEEDS_TRUTH
    assert not BR.NEEDS_TRUTH


def test_one_row_is_too_few():
    with pytest.raises(ValueError, match="1 sample"):
        BR().fit(np.ones((1, 3)), np.ones((1, 2)))
