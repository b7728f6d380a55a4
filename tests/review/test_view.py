import json

import numpy as np

from tests.review.reviews import by_order, some_items
from wscpml.quality.decisions import Decided
from wscpml.review.view import Judgement, View, describe


def described(items=None, asked=(1,), judgement=None, words=None, decided=None):
    items = some_items() if items is None else items
    nothing = np.array([], int)
    decided = decided or Decided(nothing, nothing, nothing.astype(bool))
    judgement = judgement or by_order(items)
    return describe(items, View(4, list(asked), list(asked), words or {}, judgement, decided))


def test_a_tag_comes_with_the_nearest_items_that_have_it_and_that_have_not():
    jazz = described()["tags"][0]
    assert jazz["name"] == "jazz"
    assert [each["row"] for each in jazz["with"]] == [5, 1, 0]
    assert [each["row"] for each in jazz["without"]] == [3, 2, 6]
    confidence = by_order(some_items()).label_confidence
    assert jazz["chance"] == confidence[4, 1]
    assert [each["chance"] for each in jazz["with"]] == confidence[[5, 1, 0], 1].tolist()


def test_what_was_decided_says_who_has_a_tag():
    decided = Decided(np.array([3, 5]), np.array([1, 1]), np.array([True, False]))
    jazz = described(decided=decided)["tags"][0]
    assert [each["row"] for each in jazz["with"]] == [3, 1, 0]
    assert [each["row"] for each in jazz["without"]] == [5, 2, 6]


def test_similar_items_come_with_their_content_once_each_and_no_other_items_do():
    found = described()
    mentioned = {
        each["row"]
        for tag in (*found["tags"], *found["missing"])
        for side in ("with", "without")
        for each in tag[side]
    }
    assert set(found["similar"]) == mentioned
    assert found["similar"][5]["id"] == "song 5"
    assert found["similar"][5]["cells"][1]["value"] == "words of\nsong 5"


def test_what_the_page_is_told_does_not_grow_with_the_number_of_items():
    few, many = (len(json.dumps(described(some_items(n)))) for n in (30, 3000))
    assert many < 1.1 * few


def test_labels_that_may_be_missing_are_the_likeliest_that_the_item_has_not():
    likely = Judgement(
        by_order(some_items()).label_confidence, lambda _: np.array([0.9, 0.9, 0.19, 0.6])
    )
    missing = described(judgement=likely)["missing"]
    assert [(tag["label"], tag["chance"], tag["given"]) for tag in missing] == [(3, 0.6, False)]


def test_what_is_asked_comes_first_and_then_the_least_likely():
    assert [tag["label"] for tag in described(asked=[1])["tags"]] == [1, 0]
    words = {2: {"true": True, "reviewer": "Anna", "note": ""}}
    found = described(asked=[], words=words)
    assert [(tag["label"], tag["word"]) for tag in found["tags"]] == [
        (2, words[2]),
        (0, None),
        (1, None),
    ]
