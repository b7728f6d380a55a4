"""Tell what each stage depends on, its code and the settings that count: DVC compares that."""

from pathlib import Path

from wscpml import artifacts
from wscpml.code_digest import CodeDigest
from wscpml.datasets.files import digest
from wscpml.methods import METHODS, PLACES
from wscpml.settings import LOADED, Settings, load

from . import run

HERE = Path(__file__).parent
STAGES = run.__module__  # wscpml.stages where the package is installed
NO_STAGES = {"__init__", "identify", "inputs", "review"}
ROOT = HERE.parents[STAGES.count(".")]
CHANGE_NO_RESULT = frozenset(
    {
        f"{STAGES}:refuse_other_version",
        "wscpml.errors",
        "wscpml.methods",  # finds a method by name; its class is an entry of its own
        "wscpml.progress",  # tells what is done
        "wscpml.settings:loaded",  # what was loaded is an output of this stage
        "wscpml.settings:Settings",
        "wscpml.serving.locks:refuse_changed",  # refuses, and changes nothing
        "wscpml.stopping",
    }
)
AROUND: list[tuple[str, str | None]] = [  # every stage, beyond the code that its script names
    (STAGES, "run"),
    ("wscpml.settings", "has_stages"),
    ("wscpml.settings", "title"),
]
BESIDE: dict[str, list[tuple[str, str | None]]] = {
    "track": [("wscpml.serving.served_model", None)],
}
PAGES = ["quality/audit.css", "quality/tables.js"]
FILES = {  # that are no code
    "fetch": ["datasets/registry.yaml"],
    "prepare": ["datasets/registry.yaml"],
    "evaluate": [*PAGES, "quality/audit.html.j2", "quality/audit.js"],
    "track": [*PAGES, "quality/diff.html.j2", "quality/diff.js"],
}


def entries(stage: str) -> list[tuple[str, str | None]]:
    """The definitions that a stage starts from, by module and name; None for a whole module."""
    return [(f"{STAGES}.{stage}", stage), *AROUND, *BESIDE.get(stage, [])]


def identify(settings: Settings) -> None:
    """Write metrics/settings.json, and metrics/code.json: a digest for each stage and method."""
    code = CodeDigest(ROOT, ["stages", "wscpml"], CHANGE_NO_RESULT)
    names = sorted({file.stem for file in HERE.glob("*.py")} - NO_STAGES)
    stages = {
        name: [
            *(code.of(*each) for each in entries(name)),
            *(digest(ROOT / "wscpml" / file) for file in FILES.get(name, [])),
        ]
        for name in names
    }
    methods = {}
    for name in METHODS:
        module, kind = PLACES[name].split(":")
        methods[name] = code.of(f"wscpml.methods.{module}", kind)
    artifacts.write("metrics/code.json", {"stages": stages, "methods": methods})
    artifacts.write(LOADED, settings.model_dump(mode="json"))


if __name__ == "__main__":
    run(identify, load)
