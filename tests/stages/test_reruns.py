"""What runs again: the stages that see a change of a knob or of code, and no others."""

import ast
import sys
import threading
from pathlib import Path
from types import CodeType

import pytest
import yaml

from benchmarks import dvc_stages
from stages import identify
from tests.conftest import ROOT
from tests.stages.test_stages import STAGES, change
from wscpml import settings
from wscpml.code_digest import CodeDigest
from wscpml.methods import PLACES
from wscpml.serving.versions import SETTINGS, flat

DVC = {name: stage for name, stage in dvc_stages().items() if name != "identify"}
PASS_ON = {  # their properties call functions, which count
    ("wscpml.settings", "Settings"),
    ("wscpml.settings", "DatasetSettings"),
}
SONGS = {"name": None, "features": "data/own/songs.csv", "tags": "tags"}
BASES = {  # what is changed before the knob is
    "default": {},
    "own files": {"dataset": SONGS},
    "candidates of its own": {"dataset": {"name": "Mirflickr"}},
    "uniform": {"noise": {"kind": "uniform"}},
    "no test rows": {"split": {"fold": None}},
    "no kernel": {"features": {"kernel": "none"}},
    "ridge": {"classifier": {"kind": "kernel_ridge"}},
    "another method": {"method": "pml-ni"},
    "a rule of its own": {"method": "nlr"},
}
OWN_FILES = [
    ("candidates", "data/own/tags.csv"),
    ("truth", "data/own/truth.csv"),
    ("id", "song"),
    ("tags", None),
    ("separator", "|"),
    ("merge_variants", True),
    ("min_count", 2),
    ("label_count", 3),
    ("columns", {"country": "category"}),
    ("show", ["title"]),
]
FEATURES = [("anchors_per_feature", 4), ("bandwidth", 1), ("energy", 0.9)]
CLUSTERING = [
    ("alpha", 1),
    ("beta", 1),
    ("rule", "constrained"),
    ("max_iterations", 9),
    ("tolerance", 0.1),
]
NETWORK = [
    ("width", 3),
    ("learning_rate", 0.01),
    ("weight_decay", 0),
    ("batch_size", 64),
    ("max_epochs", 3),
    ("patience", 1),
    ("validation_share", 0.2),
]
FIRST = "fetch prepare"
KNOBS = [  # base, knob, value, and the stages but `track` that see it; nothing: not even `track`
    ("default", "method", "pml-ni", "learn_prototypes apply_method evaluate"),
    ("another method", "method", "br", "learn_prototypes apply_method evaluate"),
    (
        "default", "seed", 1,
        "prepare inject_noise learn_prototypes judge_labels train_classifier apply_method",
    ),
    ("default", "device", "cpu", "cluster train_classifier"),
    ("default", "memory", "2 GB", None),  # these three change no byte
    ("default", "scheduler", "tcp://127.0.0.1:8786", None),
    ("default", "checkpoint", "tmp", None),
    ("default", "dataset.name", "birds", f"{FIRST} inject_noise evaluate"),
    ("default", "dataset.name", "yeast-9", None),  # its short name
    ("default", "dataset.complete", False, "judge_labels"),
    ("own files", "dataset.features", "data/own/x.csv", "prepare evaluate"),
    *(("own files", f"dataset.{key}", value, "prepare") for key, value in OWN_FILES),
    ("default", "dataset.separator", "|", None),
    ("default", "dataset.merge_variants", True, None),
    ("default", "dataset.min_count", 2, None),
    ("default", "dataset.columns", {"country": "category"}, None),
    ("default", "split.folds", 5, "prepare"),
    ("no test rows", "split.folds", 5, None),
    ("default", "split.fold", 1, "prepare"),
    ("default", "split.fold", None, "prepare"),
    ("default", "noise.kind", "uniform", "inject_noise"),
    ("default", "noise.candidates", 8, "inject_noise"),
    ("default", "noise.candidates", 9, None),  # as by default
    ("uniform", "noise.candidates", 8, None),
    ("uniform", "noise.rate", 0.5, "inject_noise"),
    ("default", "noise.rate", 0.5, None),
    ("default", "noise.missing", 0.1, "inject_noise"),
    *(
        (base, f"noise.{key}", value, None)
        for base in ("own files", "candidates of its own")
        for key, value in (("kind", "uniform"), ("candidates", 3), ("rate", 0.5), ("missing", 0.1))
    ),
    ("default", "review.decisions", "data/decisions/d.csv", "collect_decisions"),
    ("default", "features.scaling", "minmax", "learn_prototypes"),
    ("no kernel", "features.scaling", "minmax", "learn_prototypes"),
    ("default", "features.kernel", "rbf", "learn_prototypes"),
    *(("default", f"features.{key}", value, "learn_prototypes") for key, value in FEATURES),
    *(("no kernel", f"features.{key}", value, None) for key, value in FEATURES),
    ("default", "weak_supervision.theta", 0.5, "build_confidence"),
    *(("default", f"clustering.{key}", value, "cluster") for key, value in CLUSTERING),
    ("default", "classifier.kind", "kernel_ridge", "train_classifier"),
    ("default", "classifier.labels", "printed", "train_classifier"),
    ("ridge", "classifier.labels", "printed", "train_classifier"),
    *(("default", f"classifier.{key}", value, "train_classifier") for key, value in NETWORK),
    *(("ridge", f"classifier.{key}", value, None) for key, value in NETWORK),
    ("default", "evaluation.threshold", 0.4, "evaluate"),
    ("another method", "evaluation.threshold", 0.4, "evaluate"),
    ("a rule of its own", "evaluation.threshold", 0.4, None),
    ("default", "tracking.experiment", "other", ""),
    ("default", "tracking.register_as", "model", ""),
    ("another method", "tracking.register_as", "model", None),
    ("another method", "device", "cpu", None),
    ("another method", "dataset.complete", False, None),
    *(("another method", f"features.{key}", value, None) for key, value in FEATURES),
    ("another method", "weak_supervision.theta", 0.5, None),
    *(("another method", f"clustering.{key}", value, None) for key, value in CLUSTERING),
    *(("another method", f"classifier.{key}", value, None) for key, value in NETWORK),
]  # fmt: skip


def seen(params: dict, tmp_path: Path) -> dict[str, dict]:
    """What each stage sees of the settings, as DVC compares it."""
    path = tmp_path / "params.yaml"
    path.write_text(yaml.safe_dump(params))
    nested = settings.load(path).model_dump(mode="json")
    found = {}
    for stage, entry in DVC.items():
        (names,) = [each[SETTINGS] for each in entry["params"] if SETTINGS in each]
        found[stage] = {name: value(nested, name) for name in names}
    return found


def value(nested: dict, name: str) -> object:
    for key in name.split("."):
        nested = nested[key]
    return nested


@pytest.mark.parametrize(("base", "knob", "to", "expected"), KNOBS)
def test_a_knob_is_seen_by_the_stages_that_it_changes(params, tmp_path, base, knob, to, expected):
    for name, values in BASES[base].items():
        params[name] = params[name] | values if isinstance(values, dict) else values
    before = seen(params, tmp_path)
    section, _, key = knob.rpartition(".")
    place = params[section] if section else params
    assert place[key] != to
    place[key] = to
    after = seen(params, tmp_path)
    changed = {stage for stage in DVC if before[stage] != after[stage]}
    assert changed == (set() if expected is None else {*expected.split(), "track"})


def test_each_knob_of_params_yaml_is_tried(params):
    params["dataset"]["columns"] = None  # a dictionary of the user's
    tried = {knob for _, knob, _, stages in KNOBS if stages is not None}
    assert tried | {"memory", "scheduler", "checkpoint"} == set(flat(params))


class Traced(CodeDigest):
    """Digests that note which definition uses which."""

    def __init__(self, *options):
        super().__init__(*options)
        self.uses: dict[tuple[str, str], set[tuple[str, str]]] = {}

    def _definition(self, module, name):
        if self._stack:
            self.uses.setdefault(self._stack[-1], set()).add((module, name))
        return super()._definition(module, name)

    def behind(self, entries) -> set[tuple[str, str]]:
        """All definitions whose change is seen in the digests of some."""
        found, waiting = set(), []
        for module, name in entries:
            self.of(module, name)
            names = [name] if name else self._module(module).definitions
            waiting += [(module, each) for each in names]
        while waiting:
            if (each := waiting.pop()) not in found:
                found.add(each)
                waiting += self.uses.get(each, ())
        return found


@pytest.fixture(scope="module")
def traced() -> Traced:
    return Traced(ROOT, ["stages", "wscpml"], identify.CHANGE_NO_RESULT)


MODEL = "judge_labels train_classifier apply_method evaluate track"
MODULES = {  # of wscpml, by the stages that a change of them is seen by
    "algorithm.composition": f"learn_prototypes cluster {MODEL}",
    "algorithm.features": f"inject_noise learn_prototypes {MODEL}",
    "algorithm.weak_supervision": "build_confidence",
    "algorithm.clustering": "cluster",
    "algorithm.prototypes": "inject_noise learn_prototypes cluster evaluate",
    "algorithm.network": MODEL,
    "algorithm.ridge": f"inject_noise learn_prototypes {MODEL}",
    "algorithm.undecomposed": "",
    "arrays": " ".join(DVC),
    "artifacts limits memory npy_files serving.locks spreadsheets temporaries": " ".join(DVC),
    "yaml_files": " ".join(DVC),
    "blocks": "judge_labels train_classifier",
    "datasets.candidate_table": "cluster train_classifier apply_method evaluate",
    "datasets.columns datasets.encoding": "prepare train_classifier apply_method evaluate track",
    "datasets.csv_files datasets.table_files": "prepare collect_decisions track",
    "datasets.dataset": f"fetch prepare collect_decisions {MODEL}",
    "datasets.description datasets.embeddings datasets.media": "",
    "datasets.mat_files datasets.readers datasets.registry datasets.river": "fetch prepare",
    "datasets.files": "fetch prepare train_classifier apply_method evaluate track",
    "datasets.tables": (
        "fetch prepare collect_decisions train_classifier apply_method evaluate track"
    ),
    "datasets.own datasets.splits datasets.tags": "prepare",
    "datasets.noise": "inject_noise",
    "datasets.batches datasets.benchmarks datasets.songs": "",
    "devices": " ".join(DVC),
    "estimator progress code_digest errors pipeline_files stopping __main__": "",
    "cli.commands cli.project cli.tables": "",
    "review.app review.items review.session review.view quality.given quality.review": "",
    "evaluation.figures quality.audit quality.evidence quality.issues": "evaluate",
    "evaluation.metrics": "judge_labels train_classifier evaluate",
    "evaluation.memory evaluation.statistics": "",
    "parameters": "train_classifier apply_method",
    "randomness": (
        "prepare inject_noise learn_prototypes judge_labels train_classifier apply_method"
    ),
    "quality.confusion quality.forests quality.logistic": "judge_labels",
    "quality.taggers quality.votes": "judge_labels",
    "quality.decisions": "collect_decisions judge_labels train_classifier apply_method evaluate",
    "quality.judging": "judge_labels evaluate",
    "quality.learning quality.noise_model quality.queue": "judge_labels",
    "quality.diff serving.dvc_cache serving.tracking serving.versions": "track",
    "deadlines serving.local_store serving.prediction serving.served_model": "track",
    "serving.opening serving.scoring": "",
    "quality.page": "evaluate track",
    "serving.model": "train_classifier apply_method evaluate track",
    "settings": " ".join(DVC),  # has_stages and title; not what loads
}


def test_a_module_is_seen_by_the_stages_that_use_it(traced):
    behind = {
        stage: {module for module, _ in traced.behind(identify.entries(stage))} for stage in DVC
    }
    for names, stages in MODULES.items():
        for name in names.split():
            found = {stage for stage in DVC if f"wscpml.{name}" in behind[stage]}
            assert found == set(stages.split()), name
    for stage in DVC:
        assert {each for each in DVC if f"stages.{stage}" in behind[each]} == {stage}


def test_each_module_is_tried():
    package = ROOT / "wscpml"
    every = {
        ".".join(file.relative_to(package).with_suffix("").parts)
        for file in package.rglob("*.py")
        if file.name != "__init__.py" and file.parent.name != "methods"
    }
    assert {name for names in MODULES for name in names.split()} == every


def test_a_method_is_seen_where_it_is_chosen(traced):
    for place in PLACES.values():
        module, _, kind = place.partition(":")
        behind = traced.behind([(f"wscpml.methods.{module}", kind)])
        assert {f"wscpml.methods.{module}", "wscpml.methods.base"} <= {name for name, _ in behind}


def executed(call, traced: Traced) -> set[tuple[str, str]]:
    """The definitions of the project that a call goes through."""
    codes: set[CodeType] = set()

    def note(frame, event, _):
        if event == "call":
            codes.add(frame.f_code)

    for profile in (sys.setprofile, threading.setprofile):
        profile(note)
    try:
        call()
    finally:
        for profile in (sys.setprofile, threading.setprofile):
            profile(None)
    return {each for code in codes for each in definitions(code, traced)}


def definitions(code: CodeType, traced: Traced) -> list[tuple[str, str]]:
    """The top definitions of the project, by module and name, that code is in."""
    file = Path(code.co_filename)
    if not file.is_relative_to(ROOT / "stages") and not file.is_relative_to(ROOT / "wscpml"):
        return []
    module = ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    return [
        (module, name)
        for name, statements in traced._module(module).definitions.items()
        for statement in statements
        if first_line(statement) <= code.co_firstlineno <= statement.end_lineno
    ]


def first_line(statement: ast.stmt) -> int:
    decorators = getattr(statement, "decorator_list", [])
    return min(each.lineno for each in (statement, *decorators))


@pytest.mark.parametrize("method", ["wsc-pml", "pml-ni", "nlr"])
def test_whatever_a_stage_goes_through_is_in_its_digest(tiny_project, traced, method):
    change("method", method)
    missed = {}
    for name, stage in STAGES.items():
        if method != "wsc-pml" and DVC[name].get("wdir"):
            continue
        chosen = settings.load()
        entries = identify.entries(name)
        if name == "apply_method":
            module, _, kind = PLACES[method].partition(":")
            entries.append((f"wscpml.methods.{module}", kind))
        through = executed(lambda stage=stage, chosen=chosen: stage(chosen), traced) - PASS_ON
        counted = {
            (module, definition)
            for module, definition in through
            if not {module, f"{module}:{definition}"} & identify.CHANGE_NO_RESULT
        }
        assert counted
        missed[name] = counted - traced.behind(entries)
    assert not any(missed.values()), missed
