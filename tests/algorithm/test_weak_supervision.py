import numpy as np
import pytest
from scipy import sparse

from wscpml.algorithm import prototypes, weak_supervision

X = np.array([[0.0], [1.0], [0.4]])
POSITIVE, NEGATIVE = np.array([[0.0], [1.0]]), np.array([[1.0], [0.0]])


def test_candidates_nearer_to_the_positive_prototype_get_one_and_the_others_theta():
    candidates = np.array([[1, 0], [1, 0], [0, 1]], dtype=np.uint8)
    B = weak_supervision.build(X, candidates, POSITIVE, NEGATIVE, "adaptive")
    np.testing.assert_array_equal(B, [[1, 0], [0.5, 0], [0, 0.5]])


def test_theta_shrinks_with_the_rows_share_of_candidates():
    candidates = np.array([[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 1]], dtype=np.uint8)
    far, near = np.full((4, 1), 9.0), np.zeros((4, 1))
    B = weak_supervision.build(np.zeros((3, 1)), candidates, far, near, "adaptive")
    np.testing.assert_array_equal(B, [[0.75, 0, 0, 0], [0.5, 0.5, 0, 0], [0, 0, 0, 0]])


def test_a_fixed_theta_holds_for_all_rows():
    candidates = np.array([[0, 1], [1, 1], [1, 1]], dtype=np.uint8)
    B = weak_supervision.build(X, candidates, POSITIVE, NEGATIVE, 0.3)
    np.testing.assert_array_equal(B, np.float32([[0, 0.3], [0.3, 1], [1, 0.3]]))


def test_a_row_as_near_to_both_prototypes_gets_theta():
    candidates = np.array([[1, 0]], dtype=np.uint8)
    B = weak_supervision.build(np.array([[0.5]]), candidates, POSITIVE, NEGATIVE, "adaptive")
    np.testing.assert_array_equal(B, [[0.5, 0]])


def test_a_label_that_every_row_has_is_trusted_and_one_that_none_has_stays_zero():
    candidates = np.array([[1, 0]] * 3, dtype=np.uint8)
    nothing = np.full((1, 1), np.nan)
    positive, negative = np.vstack([X[:1], nothing]), np.vstack([nothing, X[:1]])
    B = weak_supervision.build(X, candidates, positive, negative, "adaptive")
    np.testing.assert_array_equal(B, [[1, 0]] * 3)


@pytest.mark.parametrize("theta", ["adaptive", 0.3])
def test_sparse_candidates_give_the_same_as_dense_ones(theta):
    rng = np.random.default_rng(0)
    X, candidates = rng.normal(size=(60, 3)), (rng.random((60, 5)) < 0.4).astype(np.uint8)
    candidates[:, 4] = 1
    candidates[0] = 1
    candidates[1] = 0
    few = sparse.csr_array(candidates)
    dense, found = (prototypes.learn(X, each) for each in (candidates, few))
    np.testing.assert_allclose(found.positive, dense.positive, atol=1e-12)
    np.testing.assert_allclose(found.negative, dense.negative, atol=1e-12)
    B = weak_supervision.build(X, few, *found, theta)
    assert B.nnz == candidates.sum()
    expected = weak_supervision.build(X, candidates, *dense, theta)
    np.testing.assert_array_equal(B.toarray(), expected)
