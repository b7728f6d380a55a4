"""The story of docs/how-to/versions.md: `python -m docs.story` plays it, and takes its pictures.

400 songs with tags, then 593, of which somebody has taken 25 wrong tags off: two versions of the
data and of the labels, told apart by `wscpml diff`, on its page and in MLflow. The songs are
invented, as those of `wscpml sample` are. What the command prints goes into the page, and what
MLflow's pages show, opened in Chromium, into docs/images/mlflow.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pandas as pd
import yaml
from PIL import Image
from selenium.webdriver.common.by import By
from selenium.webdriver.support.expected_conditions import presence_of_element_located
from selenium.webdriver.support.ui import WebDriverWait

from benchmarks import ROOT
from docs import run
from tests.chromium import chromium
from wscpml.datasets.songs import WORDS
from wscpml.datasets.songs import songs as invented

FIRST, ALL, CORRECTED = 400, 593, 25
TABLE = "data/own/songs.csv"
DATASET = {
    "features": TABLE,
    "tags": "tags",
    "id": "song",
    "merge_variants": True,
    "min_count": 5,
}
LABELS = {name.lower(): place for place, name in enumerate(WORDS)}
PROJECT = Path(tempfile.gettempdir(), "songs")  # for the story alone: MLflow's pages show its path
PAGE = ROOT / "docs/how-to/versions.md"
IMAGES = ROOT / "docs/images/mlflow"
OLD, NEW = f"songs-{FIRST}", f"songs-{ALL}"
TOLD = re.compile(rf"(?<=^\$ wscpml diff {OLD} {NEW}\n).*?(?=^```)", re.DOTALL | re.MULTILINE)
MORE = ("clustering.alpha=1", "features.scaling=zscore")  # further runs, for MLflow's pages
PORT = "5055"
SECONDS_TO_START, SECONDS_TO_SETTLE = 300, 5
WIDE, COLOURS = 1400, 128  # of the pictures
COLUMNS = [  # of the table of runs
    *(f"metrics.`labels.{name}`" for name in ("tags", "suspicious", "flipped", "gone")),
    *(f"params.`{name}`" for name in ("clustering.alpha", "features.scaling")),
]
REMEMBERED = {  # by MLflow's pages: those of training, without the assistant
    "mlflow.workflowType_v1": '"machine_learning"',
    "mlflow.assistant.panelOpen_v1": "false",
    "mlflow.assistant.fab.autoOpenedOnFirstLoad_v1": "true",
}


def songs(n: int, corrected: int = 0) -> pd.DataFrame:
    """The first of all songs; somebody has taken a wrong tag off each of the first of these."""
    table, truth = invented(ALL)
    for i in range(ALL):
        given = table.tags[i].split(", ")
        wrong = [tag for tag in given if (j := label(tag)) is not None and not truth[i, j]]
        if corrected and wrong and len(given) > 1:
            given.remove(wrong[0])
            table.loc[i, "tags"] = ", ".join(given)
            corrected -= 1
    return table.head(n)


def label(tag: str) -> int | None:
    """Which of the labels a tag is, however it is written; None for the rare one."""
    return LABELS.get(tag.strip().lower())


def play(project: Path, env: Mapping[str, str]) -> list[str]:
    """Make both versions, and some more runs; returns the runs' ids."""
    path = project / "params.yaml"
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | {"dataset": DATASET}))
    runs = []

    def do(*command: str) -> None:
        subprocess.run(command, cwd=project, env=env, check=True, stdout=subprocess.DEVNULL)

    for n, corrected, tag in ((FIRST, 0, OLD), (ALL, CORRECTED, NEW)):
        songs(n, corrected).to_csv(project / TABLE, index=False)
        do("dvc", "add", "--quiet", TABLE)
        do("dvc", "repro", "--quiet")
        runs.append(json.loads((project / "metrics/run.json").read_text())["run_id"])
        do("git", "add", "--all")
        do("git", "commit", "--quiet", "--message", f"{n} songs")
        do("git", "tag", tag)
    for setting in MORE:
        do("dvc", "exp", "run", "--quiet", "--set-param", setting)
        runs.append(json.loads((project / "metrics/run.json").read_text())["run_id"])
        do("git", "checkout", "--quiet", "--force", ".")
    do("dvc", "checkout", "--quiet")
    return runs


@contextmanager
def served(project: Path, env: Mapping[str, str]) -> Iterator[str]:
    """The pages of `make ui`; gives the address that it prints."""
    command = [sys.executable, "-m", "wscpml.serving.tracking", PORT]
    with subprocess.Popen(
        command, cwd=project, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        try:
            assert server.stdout is not None
            _, _, address = server.stdout.readline().strip().partition(": ")
            for _ in range(SECONDS_TO_START):
                try:
                    urlopen(f"http://127.0.0.1:{PORT}/health", timeout=5).close()
                    break
                except URLError:
                    time.sleep(1)
            else:
                sys.exit(f"MLflow's pages: no answer within {SECONDS_TO_START} seconds")
            yield address
        finally:
            server.terminate()


def pictures(address: str, runs: list[str], folder: Path) -> None:
    """Take the picture of each of MLflow's pages that the documentation speaks of."""
    folder.mkdir(parents=True, exist_ok=True)
    start, _, rest = address.partition("/experiments/")
    experiment = rest.partition("/")[0]
    run = f"{start}/experiments/{experiment}/runs/{runs[1]}"
    both = json.dumps(runs[:2], separators=(",", ":"))
    with tempfile.TemporaryDirectory() as profile, chromium(Path(profile)) as browser:

        def take(name: str, page: str, shown: str, high: int, folded: Sequence[str] = ()) -> None:
            """The page once something is shown, with some parts of it folded."""
            browser.set_window_size(WIDE, high)
            browser.get("about:blank")
            browser.get(page)
            there = (By.XPATH, f"//*[contains(text(), '{shown}')]")
            WebDriverWait(browser, SECONDS_TO_START).until(presence_of_element_located(there))
            for part in folded:
                browser.find_element(By.XPATH, f"//*[text()='{part}']").click()
            time.sleep(SECONDS_TO_SETTLE)
            browser.execute_script(
                "document.head.append(Object.assign(document.createElement('style'),"
                "{textContent: '.modebar {display: none !important}'}));"  # tools over the charts
                "for (const each of document.querySelectorAll('div')) each.scrollLeft = 0;"
            )
            file = folder / f"{name}.png"
            browser.save_screenshot(str(file))
            Image.open(file).convert("RGB").quantize(COLOURS).save(file, optimize=True)

        browser.get(f"{start.rstrip('#/')}/health")
        for key, value in REMEMBERED.items():
            browser.execute_script("localStorage.setItem(...arguments)", key, value)
        browser.get(address)
        time.sleep(SECONDS_TO_SETTLE)
        state = f'MLflowLocalStorage-1.1-ExperimentPage-["{experiment}"]-ReactComponentState'
        browser.execute_script(
            "const [key, columns] = arguments, state = JSON.parse(localStorage.getItem(key));"
            "localStorage.setItem(key, JSON.stringify({...state, selectedColumns: columns}));",
            state,
            COLUMNS,
        )
        take("runs", address, "labels.flipped", 620)
        take("charts", f"{address}&compareRunsMode=CHART", "Model metrics", 950)
        pair = f"runs={both}&experiments=[%22{experiment}%22]"
        folded = ("Visualizations", "Parameters")
        take("compare", f"{start}/compare-runs?{pair}", "labels.flipped", 1050, folded)
        take("run", run, "labels.flipped", 950)
        take("labels", f"{run}/artifacts/labels/pseudo_labels.json", "song", 850)
        take("changes", f"{run}/artifacts/labels/changes.html", "changes.html", 950)


def main() -> None:
    """Play the story, and bring page and pictures up to date."""
    PROJECT.mkdir()
    try:
        env = run.copied(PROJECT) | {"LOGNAME": "docs"}
        runs = play(PROJECT, env)
        command = ["wscpml", "diff", OLD, NEW]
        told = subprocess.run(command, cwd=PROJECT, env=env, check=True, stdout=subprocess.PIPE)
        PAGE.write_text(TOLD.sub(lambda _: told.stdout.decode(), PAGE.read_text(), 1))
        with served(PROJECT, env) as address:
            pictures(address, runs, IMAGES)
    finally:
        shutil.rmtree(PROJECT)


if __name__ == "__main__":
    main()
