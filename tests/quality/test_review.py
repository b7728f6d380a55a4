from xml.etree import ElementTree

import numpy as np
import pytest

from wscpml.errors import UserError
from wscpml.quality import review

HOSTILE = ['<script>alert("x")</script>', "rock & 'roll'", "$instance"]


@pytest.fixture
def decided():
    candidates = np.array([[1, 1, 0], [1, 1, 1], [0, 0, 1], [0, 1, 0]])
    confidence = np.array([[0.4, 0.9, 0], [0.5, 0.1, 0.7], [0, 0, 0.8], [0, 0.2, 0]])
    return review.decisions(["b", "a", "<i>", 7], HOSTILE, candidates, confidence)


def test_every_candidate_has_a_decision_in_the_order_of_the_rows(decided):
    assert decided.instance.tolist() == ["b", "b", "a", "a", "a", "<i>", "7"]
    assert decided.label.tolist() == [HOSTILE[j] for j in (0, 1, 0, 1, 2, 2, 1)]
    assert decided.label_confidence.tolist() == [0.4, 0.9, 0.5, 0.1, 0.7, 0.8, 0.2]
    assert decided.keep.tolist() == [0, 1, 1, 0, 1, 1, 0]


def test_instances_with_a_suspicious_tag_are_tasks_the_most_suspicious_first(decided):
    tasks = review.label_studio_tasks(decided, "wscpml 1")
    assert [task["data"]["instance"] for task in tasks] == ["a", "7", "b"]
    predictions = [task["predictions"] for task in tasks]
    assert [each["score"] for (each,) in predictions] == [0.1, 0.2, 0.4]
    assert tasks[0]["data"] == {
        "instance": "a",
        "tags": HOSTILE,
        "confidence": dict(zip(HOSTILE, [0.5, 0.1, 0.7], strict=True)),
    }
    ((result,),) = (each["result"] for each in predictions[0])
    assert result["value"] == {"choices": [HOSTILE[0], HOSTILE[2]]}
    assert result["score"] == 0.5
    assert predictions[1][0]["result"] == []


def test_the_labeling_interface_fits_the_tasks_and_is_escaped(decided):
    view = ElementTree.fromstring(review.label_studio_config(HOSTILE))
    assert [choice.get("value") for choice in view.iter("Choice")] == HOSTILE
    controls = {each.get("name"): each for each in view if each.get("name")}
    (task, *_) = review.label_studio_tasks(decided, "wscpml 1")
    for name in ("instance", "confidence"):
        assert controls[name].get("value") == f"${name}"
        assert name in task["data"]
    (result,) = task["predictions"][0]["result"]
    assert controls[result["from_name"]].get("toName") == result["to_name"]
    assert controls[result["from_name"]].get("choice") == "multiple"


def test_a_label_that_xml_cannot_hold_is_told():
    with pytest.raises(UserError, match=r"label 'a\\x01': has a character that XML cannot hold"):
        review.label_studio_config(["a\x01"])
