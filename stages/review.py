"""Review the pipeline's labels on a page: `make review`, after `make run`.

It is no stage, for what a person decides is no output of the pipeline but an input. It is here
because it reads what the stages have written.
"""

import sys

from wscpml import artifacts
from wscpml.arrays import Matrix
from wscpml.cli import INTERRUPTED
from wscpml.datasets.files import OWN
from wscpml.errors import UserError
from wscpml.quality import judging
from wscpml.quality.decisions import Decided
from wscpml.randomness import streams
from wscpml.review import app
from wscpml.review.items import Items
from wscpml.review.session import Session
from wscpml.review.view import Judgement
from wscpml.serving import model
from wscpml.settings import DECISIONS, Settings
from wscpml.stopping import STOPPED

from . import inputs, run

PORT = "8765"
MADE = "models/wsc-pml"


def session(settings: Settings) -> Session:
    """A review of the training rows, which begins with what the last run has judged.

    When it judges anew, it is with new decisions and the same trained classifier.
    """
    if not settings.has_stages:
        raise UserError(f"method: {settings.method} judges no labels; a review needs wsc-pml")
    names = artifacts.read("data/prepared/names.json")
    candidates = inputs.candidates("train")
    rows, X, trained = (
        inputs.training_rows(),
        inputs.raw_features("train"),
        model.load(f"{MADE}/classifier"),
    )
    votes = inputs.votes("train")
    known = inputs.decided().added_to(candidates)
    confidence = inputs.of_candidates(artifacts.read(f"{MADE}/label_confidence.npy"), known)

    def judgement(label_confidence: Matrix) -> Judgement:
        return Judgement(label_confidence, lambda row: trained.predict_proba(X[[row]])[0])

    def judge(decided: Decided) -> Judgement:
        random, complete = streams(settings.seed).judging, settings.dataset.complete
        judged = judging.judge(rows, candidates, random, decided, complete=complete, votes=votes)
        return judgement(judged.label_confidence)

    items = Items(
        settings.dataset.title,
        inputs.instances("train").tolist(),
        names["labels"],
        candidates,
        X,
        names["features"],
        rows.scaled,
        inputs.shown("train"),
        root=OWN,
        held_out=inputs.instances("test").tolist(),
    )
    journal = settings.review.decisions or DECISIONS / "decisions.csv"
    return Session(items, judge, judgement(confidence), journal)


def review(settings: Settings) -> None:
    """Serve the page until Ctrl-C."""
    with app.listen(sys.argv[1] if len(sys.argv) > 1 else PORT) as listening:
        opened = session(settings)
        if settings.review.decisions is None:
            print(
                f"to have `dvc repro` use what you decide, set review.decisions: {opened.journal}"
            )
        app.serve(opened, listening)


if __name__ == "__main__":
    try:
        run(review)
    except KeyboardInterrupt:
        print(STOPPED, file=sys.stderr)
        sys.exit(INTERRUPTED)
