import numpy as np

from tests.contract import Contract, small
from wscpml.methods.wsc_pml import AsPrinted


class TestWSCPML(Contract):
    method = AsPrinted()


def test_its_defaults_are_those_of_the_pipeline(params):
    ours = AsPrinted().get_params()
    ours.pop("random_state")
    del params["classifier"]["kind"], params["classifier"]["labels"]
    sections = ("features", "weak_supervision", "clustering", "classifier")
    assert ours == {name: value for key in sections for name, value in params[key].items()}


def test_its_pseudo_labels_are_those_of_the_clustering():
    X, _, Y = small()
    loose = AsPrinted(alpha=0.01, beta=100, random_state=0).fit(X, Y)
    tight = AsPrinted(alpha=0.01, beta=0.01, random_state=0).fit(X, Y)
    some = Y.min(axis=1) == 0  # a row of all labels has no supervision
    np.testing.assert_array_equal(loose.pseudo_labels_[some], Y[some])  # the barrier alone decides
    assert tight.pseudo_labels_[Y == 1].mean() < 0.9
    assert len(tight.objective_) >= 1
