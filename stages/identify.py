"""Tell what code is behind each stage and each method, so that what changed runs again."""

from pathlib import Path

from wscpml import artifacts
from wscpml.code_digest import CodeDigest
from wscpml.datasets.files import digest
from wscpml.methods import METHODS, PLACES
from wscpml.settings import Settings

from . import run

HERE = Path(__file__).parent
STAGES = run.__module__  # wscpml.stages where the package is installed
NO_STAGES = {"__init__", "identify", "inputs", "review"}
ROOT = HERE.parents[STAGES.count(".")]
CHANGE_NO_RESULT = frozenset(
    {f"{STAGES}:run", "wscpml.errors", "wscpml.methods", "wscpml.settings:Settings"}
)
SHORT_NAMES = ("wscpml.settings", "_spelled_out")  # what a short name in params.yaml stands for
BESIDE: dict[
    str, list[tuple[str, str | None]]
] = {  # what a stage uses beyond the code that its script names
    "fetch": [SHORT_NAMES],
    "prepare": [SHORT_NAMES],
    "inject_noise": [SHORT_NAMES],
    "track": [SHORT_NAMES, ("wscpml.serving.served_model", None)],
}
PAGES = ["quality/audit.css", "quality/tables.js"]
FILES = {  # that are no code
    "fetch": ["datasets/registry.yaml"],
    "prepare": ["datasets/registry.yaml"],
    "evaluate": [*PAGES, "quality/audit.html.j2", "quality/audit.js"],
    "track": [*PAGES, "quality/diff.html.j2", "quality/diff.js"],
}


def identify(_: Settings) -> None:
    """Write metrics/code.json: a digest for each stage, and for each method to compare with."""
    code = CodeDigest(ROOT, ["stages", "wscpml"], CHANGE_NO_RESULT)
    names = sorted({file.stem for file in HERE.glob("*.py")} - NO_STAGES)
    stages = {
        name: [
            code.of(f"{STAGES}.{name}", name),
            *(code.of(*each) for each in BESIDE.get(name, [])),
            *(digest(ROOT / "wscpml" / file) for file in FILES.get(name, [])),
        ]
        for name in names
    }
    methods = {}
    for name in METHODS:
        module, kind = PLACES[name].split(":")
        methods[name] = code.of(f"wscpml.methods.{module}", kind)
    artifacts.write("metrics/code.json", {"stages": stages, "methods": methods})


if __name__ == "__main__":
    run(identify)
