import json
from pathlib import Path

import numpy as np
import pytest
import yaml

from stages import (
    build_confidence,
    cluster,
    collect_decisions,
    fetch,
    inject_noise,
    judge_labels,
    learn_prototypes,
    prepare,
    review,
    train_classifier,
)
from wscpml import settings
from wscpml.errors import UserError
from wscpml.quality import decisions


@pytest.fixture
def pipeline(tiny_project):
    """The tiny project as it is after the stages that a review needs."""
    loaded = settings.load()
    for stage in (
        fetch.fetch,
        prepare.prepare,
        inject_noise.inject_noise,
        collect_decisions.collect_decisions,
        learn_prototypes.learn_prototypes,
        build_confidence.build_confidence,
        cluster.cluster,
        judge_labels.judge_labels,
        train_classifier.train_classifier,
    ):
        stage(loaded)
    return loaded


def test_a_review_takes_up_what_the_pipeline_has_judged_and_judges_anew(pipeline):
    opened = review.session(pipeline)
    item = opened.next("me")
    assert item["id"].startswith("song ")
    assert {cell["column"] for cell in item["cells"]} <= set("abcde")
    confidence = np.load("models/wsc-pml/label_confidence.npy")
    assert opened.progress("me")["errors_left"] == pytest.approx((1 - confidence).sum())
    assert item["tags"][0]["chance"] in confidence
    opened.decide("me", item["row"], item["open"][0], True)
    (row,) = decisions.read("data/decisions/decisions.csv").to_dict("records")
    assert (row["instance"], row["label"]) == (item["id"], item["tags"][0]["name"])
    opened._judge_anew()
    assert opened.progress("me")["problem"] == ""
    assert opened.progress("me")["rounds"] == 1
    held_out = np.flatnonzero(np.load("data/split.npy"))
    names = json.loads(Path("data/prepared/names.json").read_text())
    stranger = {"instance": names["instances"][held_out[0]], "label": "rock", "decision": False}
    decisions.append("data/decisions/decisions.csv", [stranger])
    assert review.session(pipeline).progress("me")["decided"] == 1


def test_a_method_that_judges_no_labels_cannot_be_reviewed(tiny_project):
    params = yaml.safe_load(Path("params.yaml").read_text()) | {"method": "br"}
    Path("params.yaml").write_text(yaml.safe_dump(params))
    with pytest.raises(UserError, match="method: br judges no labels; a review needs wsc-pml"):
        review.session(settings.load())
