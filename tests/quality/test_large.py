"""What is written of very many instances: bounded, and never as a matrix of all labels."""

from itertools import islice

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from tests.chromium import chromium
from wscpml import WSCPML, artifacts
from wscpml.algorithm import composition, features, network
from wscpml.datasets import dataset
from wscpml.evaluation import memory
from wscpml.parameters import FeatureSettings
from wscpml.quality import audit, evidence, issues, judging, queue, review
from wscpml.quality.audit import Audit
from wscpml.quality.decisions import Decided
from wscpml.quality.evidence import Evidence

MOST_BYTES = 5e6  # of the page
MOST_ELEMENTS = 20_000  # that the browser lays out when it opens
CANDIDATES = 5  # of each row
MANY = 1_000_000
LABELS = 1000


def large_audit(n=MANY, q=LABELS) -> Audit:
    """An audit of made-up confidences, all of it sparse."""
    rng = np.random.default_rng(0)
    step, ends = q // CANDIDATES, np.arange(0, CANDIDATES * n + 1, CANDIDATES)
    labels = rng.integers(0, step, (n, CANDIDATES), np.int32)
    labels += np.arange(0, CANDIDATES * step, step, dtype=np.int32)
    candidates, confidence, ranks = (
        sparse.csr_array((values, labels.ravel(), ends), shape=(n, q))
        for values in (
            np.ones(n * CANDIDATES, np.uint8),
            rng.random(n * CANDIDATES),
            rng.integers(1, q + 1, n * CANDIDATES, np.int32),
        )
    )
    seen = Evidence(
        rng.integers(0, q, (n, 3), np.int32),
        ranks,
        rng.normal(size=(n, 2)),
        rng.normal(size=(q, 2)),
    )
    names = [f"label number {j}" for j in range(q)]
    ids = pd.Index([f"item-{i:09}" for i in range(n)])
    first = np.arange(min(n, 100))
    decided = Decided(first, labels[first, 0], first % 2 == 0)
    found = issues.find(
        confidence, decided.undecided(candidates), seen, names, ids, limit=audit.MOST_LISTED
    )
    return Audit(
        "a million items", ids, names, candidates, confidence, found, seen, decided=decided
    )


@pytest.fixture(scope="module")
def large():
    return large_audit()


def test_sparse_and_dense_results_are_told_in_the_same_words():
    few = large_audit(300, 40)
    dense = {name: getattr(few, name).toarray() for name in ("candidates", "label_confidence")}
    same = Audit(**{name: getattr(few, name) for name in Audit.__dataclass_fields__} | dense)
    assert audit.render(same) == audit.render(few)
    given = dense["label_confidence"], few.decided.undecided(dense["candidates"])
    listed = issues.find(*given, few.evidence, few.label_names, few.instances)
    pd.testing.assert_frame_equal(listed, few.issues)
    parts = [
        (few.instances, few.label_names, each.candidates, each.label_confidence, few.decided)
        for each in (few, same)
    ]
    pd.testing.assert_frame_equal(*(review.judged_tags(*each) for each in parts))
    asked = [
        queue.choose(each[3], each[2], few.decided, 50, queue.Lottery(*each[:2])) for each in parts
    ]
    for one, other in zip(*asked, strict=True):
        np.testing.assert_array_equal(one, other)


def test_ranks_are_those_of_sorting_also_where_prototypes_are_the_same():
    rng = np.random.default_rng(0)
    X, prototypes = rng.normal(size=(50, 3)), rng.normal(size=(12, 3))
    prototypes[[5, 9]] = prototypes[2]
    prototypes[7] = np.nan
    distances = ((X[:, None] - prototypes) ** 2).sum(axis=2)
    order = np.argsort(np.where(np.isnan(distances), np.inf, distances), axis=1, kind="stable")
    pairs = (rng.random((50, 12)) < 0.4).astype(np.uint8)
    nearest, ranks = evidence.by_distance(X, prototypes, sparse.csr_array(pairs))
    np.testing.assert_array_equal(nearest, order[:, :3])
    np.testing.assert_array_equal(ranks.toarray(), (np.argsort(order, axis=1) + 1) * pairs)


def test_a_zero_that_is_stored_is_no_label(monkeypatch):
    monkeypatch.setattr(dataset, "LARGE", 100)
    monkeypatch.setattr(judging, "TREES", 20)
    n, q, rng = 240, 24, np.random.default_rng(0)
    X, first = rng.normal(size=(n, 3)), np.arange(n) % q
    labels = np.sort(np.column_stack([first, (first + 1) % q]), axis=1).ravel()
    given = rng.integers(0, 2, 2 * n, np.uint8)
    stored = sparse.csr_array((given, labels, np.arange(0, 2 * n + 1, 2)), shape=(n, q))
    bare = stored.copy()
    bare.eliminate_zeros()
    found, wanted = (WSCPML(random_state=0).fit(X, each).judged_ for each in (stored, bare))
    assert stored.nnz == 2 * n
    np.testing.assert_array_equal(
        found.label_confidence.toarray(), wanted.label_confidence.toarray()
    )
    twice = sparse.csr_array(([1, 1], [0, 0], [0, *[2] * n]), shape=(n, q))
    with pytest.raises(ValueError, match="must be 0 or 1"):
        WSCPML(random_state=0).fit(X, twice)


def test_labels_that_may_be_missing_are_judged_block_by_block(monkeypatch):
    monkeypatch.setattr(judging, "TREES", 10)
    monkeypatch.setattr(judging, "ROWS_AT_ONCE", 100)
    monkeypatch.setattr(network, "START_ROWS", 300)
    monkeypatch.setattr(features, "FEWEST_ANCHORS", 50)
    n, q, rng = 20_000, LABELS, np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    labels = np.hstack([rng.integers(0, q - 1, (n, 1)), np.full((n, 1), q - 1)])
    ends = np.arange(0, 2 * n + 1, 2)
    candidates = sparse.csr_array((np.ones(2 * n, np.uint8), labels.ravel(), ends), shape=(n, q))
    rows = composition.represent(X, FeatureSettings(), rng)
    before = memory.forget_peak()
    found = judging.judge(rows, candidates, rng, complete=False)
    assert memory.peak() - before < 8 * n * q  # a matrix of them
    assert found.missing.nnz <= judging.MOST_MISSING * n
    assert found.missing.sum() <= found.noise.missing


def test_the_page_of_a_million_items_is_small_and_so_is_what_a_browser_draws_of_it(large, tmp_path):
    before = memory.forget_peak()
    page = audit.render(large)
    assert memory.peak() - before < 1e9  # a matrix of all labels alone takes 1 GB in bytes
    assert len(page.encode()) < MOST_BYTES
    file = tmp_path / "audit.html"
    file.write_text(page, encoding="utf-8")
    with chromium(tmp_path / "profile") as browser:
        browser.get(file.as_uri())
        drawn = "const done = arguments[0], next = requestAnimationFrame;"
        browser.execute_async_script(drawn + "next(() => next(() => next(() => done())));")
        marks = "return document.querySelectorAll('#map-of-instances svg.plot path').length"
        assert browser.execute_script(marks) > LABELS
        every = "return document.getElementsByTagName('*').length"
        assert browser.execute_script(every) < MOST_ELEMENTS


def test_tasks_for_label_studio_come_one_by_one_in_the_order_of_all(large, monkeypatch):
    parts = large.instances, large.label_names, large.candidates, large.label_confidence
    before = memory.forget_peak()
    for task in islice(review.label_studio_parts(*parts, large.decided, "1"), 30_000):
        assert len(task["data"]["tags"]) == CANDIDATES
    assert memory.peak() - before < 5e8  # the table of all candidates takes more
    few = large_audit(200, 40)
    given = few.instances, few.label_names, few.candidates, few.label_confidence, few.decided
    whole = review.label_studio_tasks(review.judged_tags(*given), "1")
    monkeypatch.setattr(review, "TASKS_AT_ONCE", 7)
    assert list(review.label_studio_parts(*given, "1")) == whole


def test_the_table_of_all_candidates_is_written_part_by_part(large, tmp_path, monkeypatch):
    from pyarrow.parquet import ParquetFile

    judged = (
        large.instances,
        large.label_names,
        large.candidates,
        large.label_confidence,
        large.decided,
    )
    before = memory.forget_peak()
    some = islice((part for _, part in review.judged_parts(*judged)), 3)
    artifacts.write(tmp_path / "cleaned.parquet", artifacts.Parts(some))
    assert memory.peak() - before < 5e8
    with ParquetFile(tmp_path / "cleaned.parquet") as file:
        assert file.metadata.num_rows == 3 * review.ROWS_AT_ONCE * CANDIDATES
        assert file.num_row_groups == 3
    few = large_audit(50, 40)
    monkeypatch.setattr(review, "ROWS_AT_ONCE", 7)
    given = few.instances, few.label_names, few.candidates, few.label_confidence, few.decided
    parts = [part for _, part in review.judged_parts(*given)]
    whole = review.judged_tags(*given)
    pd.testing.assert_frame_equal(pd.concat(parts, ignore_index=True), whole)
