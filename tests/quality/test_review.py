from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from wscpml.errors import UserError
from wscpml.quality import review
from wscpml.quality.decisions import Decided

HOSTILE = ['<script>alert("x")</script>', "rock & 'roll'", "$instance"]


CANDIDATES = np.array([[1, 1, 0], [1, 1, 1], [0, 0, 1], [0, 1, 0]])
CONFIDENCE = np.array([[0.4, 0.9, 0], [0.5, 0.1, 0.7], [0, 0, 0.8], [0, 0.2, 0]])


def judged_tags(decided=None):
    decided = decided or Decided.nothing()
    return review.judged_tags(
        ["b", "a", "<i>", 7],
        HOSTILE,
        decided.added_to(CANDIDATES),
        decided.settle(CONFIDENCE),
        decided,
    )


@pytest.fixture
def judged():
    return judged_tags()


def test_every_candidate_has_a_judgement_in_the_order_of_the_rows(judged):
    assert judged.instance.tolist() == ["b", "b", "a", "a", "a", "<i>", "7"]
    assert judged.label.tolist() == [HOSTILE[j] for j in (0, 1, 0, 1, 2, 2, 1)]
    assert judged.label_confidence.tolist() == [0.4, 0.9, 0.5, 0.1, 0.7, 0.8, 0.2]
    assert judged.keep.tolist() == [0, 1, 1, 0, 1, 1, 0]
    assert judged.decided.tolist() == [""] * 7


def test_what_is_decided_is_told_and_needs_no_task():
    found = judged_tags(Decided(np.array([0, 1, 3]), np.array([0, 1, 2]), np.array([0, 0, 1]) == 1))
    assert found.decided.tolist() == ["false", "", "", "false", "", "", "", "true"]
    assert found.label_confidence.tolist() == [0, 0.9, 0.5, 0, 0.7, 0.8, 0.2, 1]
    assert found.keep.tolist() == [0, 1, 1, 0, 1, 1, 0, 1]
    (task,) = review.label_studio_tasks(found, "wscpml 1")
    assert task["data"]["instance"] == "7"
    assert task["data"]["tags"] == HOSTILE[1:]
    (prediction,) = task["predictions"]
    assert prediction["score"] == 0.2
    assert prediction["result"][0]["value"] == {"choices": [HOSTILE[2]]}


def test_instances_with_a_suspicious_tag_are_tasks_the_most_suspicious_first(judged):
    tasks = review.label_studio_tasks(judged, "wscpml 1")
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


def test_the_labeling_interface_fits_the_tasks_and_is_escaped(judged):
    view = ElementTree.fromstring(review.label_studio_config(HOSTILE))
    assert [choice.get("value") for choice in view.iter("Choice")] == HOSTILE
    controls = {each.get("name"): each for each in view if each.get("name")}
    (task, *_) = review.label_studio_tasks(judged, "wscpml 1")
    for name in ("instance", "confidence"):
        assert controls[name].get("value") == f"${name}"
        assert name in task["data"]
    (result,) = task["predictions"][0]["result"]
    assert controls[result["from_name"]].get("toName") == result["to_name"]
    assert controls[result["from_name"]].get("choice") == "multiple"


def test_a_name_that_xml_cannot_hold_is_told():
    with pytest.raises(UserError, match=r"label 'a\\x01': has a character that XML cannot hold"):
        review.label_studio_config(["a\x01"])
    with pytest.raises(UserError, match=r"column 'b\\x01': has a character that XML cannot hold"):
        review.label_studio_config(["a"], pd.DataFrame({"b\x01": ["x"]}))


def test_tasks_show_an_item_as_its_columns_say(judged):
    shown = pd.DataFrame(
        {
            '"title" <b>': HOSTILE + ["plain"],
            "cover": ["a.PNG", "", "https://example.invalid/b.jpeg?size=1", "c.webp"],
            "sound": ["a.mp3", "b.wav", "c.ogg", "d.flac"],
            "mixed": ["a.png", "no picture", "", "b.png"],
        }
    )
    cells = dict(zip(["b", "a", "<i>", "7"], shown.to_numpy().tolist(), strict=True))
    view = ElementTree.fromstring(review.label_studio_config(HOSTILE, shown))
    objects = [(each.tag, each.get("value")) for each in view if each.tag != "Choices"]
    assert objects == [
        ("Header", '"title" <b>'),
        ("Text", "$shown1"),
        ("Header", "cover"),
        ("Image", "$shown2"),
        ("Header", "sound"),
        ("Audio", "$shown3"),
        ("Header", "mixed"),
        ("Text", "$shown4"),
        ("Text", "$instance"),
        ("Table", "$confidence"),
    ]
    for task in review.label_studio_tasks(judged, "wscpml 1", cells):
        data = task["data"]
        assert [data[f"shown{k}"] for k in (1, 2, 3, 4)] == cells[data["instance"]]
