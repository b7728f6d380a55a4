"""Read the data set, and hold one fold of its rows out for the test."""

from stages import run
from wscpml import artifacts, datasets, splits
from wscpml.settings import Settings


def prepare(settings: Settings) -> None:
    """Write data/prepared/ and data/split.npy (True for a test row)."""
    data = datasets.REGISTRY[settings.dataset.name]()
    names = {
        "features": data.feature_names,
        "labels": data.label_names,
        "instances": data.instance_ids,
    }
    contents = {"features.npy": data.features, "names.json": names}
    if data.truth is not None:
        contents["truth.npy"] = data.truth
    if data.candidates is not None:
        contents["candidates.npy"] = data.candidates
    split = settings.split
    test = splits.held_out(len(data.features), split.folds, split.fold, settings.rng("split"))
    artifacts.write_directory("data/prepared", contents)
    artifacts.write("data/split.npy", test)


if __name__ == "__main__":
    run(prepare)
