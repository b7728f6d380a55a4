"""DVC's page of our plots, of two commits, in a real browser: Chromium without a window."""

import json
import os
import shutil
import subprocess
import sys

import pytest
import yaml
from selenium.webdriver.common.by import By

from tests.chromium import chromium
from tests.conftest import ROOT

TABLES = {
    "iterations": "iteration,objective\n1,{0}\n2,0.5\n",
    "training": "step,training_loss,validation_loss\n0,{0},0.7\n1,0.4,0.6\n",
    "per_label": "label,average_precision\n<b>R&B</b>,{0}\nrock,0.5\n",
    "candidates": "value,B_true,B_false,B_unknown\n0.25,{0},0.2,\n0.75,0.3,0.4,\n",
}


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A repository with the plots of our pipeline, and what they draw, changed since the commit."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DVC_SITE_CACHE_DIR", str(tmp_path / "site"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "Test")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "test@example.com")
    for name in ("config", "plots.html", ".gitignore"):
        (tmp_path / ".dvc").mkdir(exist_ok=True)
        shutil.copy(ROOT / ".dvc" / name, tmp_path / ".dvc")
    plots = yaml.safe_load((ROOT / "dvc.yaml").read_text())["plots"][:4]
    (tmp_path / "dvc.yaml").write_text(yaml.safe_dump({"plots": plots}, sort_keys=False))
    write(tmp_path, "0.1")
    for command in ("init --quiet", "add --all", "commit --quiet --message first"):
        subprocess.run(["git", *command.split()], check=True)
    write(tmp_path, "0.9")
    return tmp_path


def write(project, value):
    (project / "metrics").mkdir(exist_ok=True)
    for name, text in TABLES.items():
        (project / f"metrics/{name}.csv").write_text(text.format(value))


def test_plots_of_two_commits_are_drawn_without_the_web(project):
    dvc = [sys.executable, "-m", "dvc", "plots", "diff", "HEAD", "--quiet"]
    subprocess.run(dvc, check=True)
    with chromium(project / "profile") as browser:
        browser.get_log("performance")
        browser.get((project / "dvc_plots/index.html").as_uri())
        plots = browser.find_elements(By.CSS_SELECTOR, "body > div")
        found = {
            plot.find_element(By.TAG_NAME, "h2").text: (
                len(plot.find_elements(By.CSS_SELECTOR, "g path.line")),
                len(plot.find_elements(By.CSS_SELECTOR, "g rect")),
                [key.text for key in plot.find_elements(By.CSS_SELECTOR, "li")],
            )
            for plot in plots
        }
        both = ["workspace", "HEAD"]
        assert found == {
            "Objective of the method per iteration": (2, 0, both),
            "Classifier: loss per epoch or penalty": (
                4, 0, [f"{rev} {loss}_loss" for rev in both for loss in ("training", "validation")]
            ),
            "Average precision per label (test rows)": (0, 4, both),
            "Weak supervision B of true and false candidates": (
                4, 0, [f"{rev} B_{kind}" for rev in both for kind in ("true", "false")]
            ),
        }  # fmt: skip
        text = browser.find_element(By.TAG_NAME, "body").text
        assert "<b>R&B</b>" in text
        (bar,) = browser.find_elements(By.XPATH, "//*[text()='HEAD <b>R&B</b>: 0.1']/..")
        widest = max(float(each.get_attribute("width")) for each in all_bars(browser))
        assert float(bar.get_attribute("width")) / widest == pytest.approx(0.1 / 0.9)
        assert [e for e in browser.get_log("browser") if e["level"] in ("SEVERE", "WARNING")] == []
        asked = [json.loads(each["message"])["message"] for each in browser.get_log("performance")]
        addresses = [
            each["params"]["request"]["url"]
            for each in asked
            if each["method"] == "Network.requestWillBeSent"
        ]
        assert all(address.startswith("file://") for address in addresses)


def all_bars(browser):
    return browser.find_elements(By.CSS_SELECTOR, "g rect")
