import numpy as np

from tests.conftest import Tiny
from wscpml.methods.group_features import GroupFeatures
from wscpml.methods.wsc_pml import AsPrinted


def test_it_is_wsc_pml_with_the_scaling_and_kernel_of_the_groups_code():
    X, Y = Tiny().data.features, Tiny().data.truth
    train, rest = X[:40], X[40:]
    found = GroupFeatures(random_state=0).score_grid(train, Y[:40], rest)
    same = AsPrinted(random_state=0, scaling="minmax", kernel="rbf", bandwidth=2.0)
    expected = same.score_grid(train, Y[:40], rest)
    assert [each.settings for each in found] == [each.settings for each in expected]
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours.probabilities, theirs.probabilities)

    map_ = GroupFeatures(random_state=0).fit(train, Y[:40]).map_
    low, high = train.min(axis=0), train.max(axis=0)
    scaled = 2 * (train - low) / (high - low) - 1
    squares = ((scaled[:, None] - map_.anchors) ** 2).sum(axis=2)
    kernel = np.exp(-squares / (2 * squares.mean()))
    np.testing.assert_allclose(map_(train), (kernel - map_.centre) @ map_.whitening, atol=1e-5)
