"""A short run of `python -m tests.fuzz`, whose long one finds more."""

import time

import pytest

from tests import fuzz


@pytest.mark.parametrize("name", fuzz.targets())
def test_the_files_that_are_mutated_are_good_before(name, tmp_path):
    seeds = fuzz.targets()[name].files
    for number in range(max(map(len, seeds.values()))):
        files = {each: contents[number % len(contents)] for each, contents in seeds.items()}
        assert fuzz.attempt(name, files, tmp_path) == ""


def test_some_hostile_files_for_every_reader_are_read_or_refused(tmp_path):
    inputs = 40
    results = fuzz.run(list(fuzz.targets()), inputs, 5, tmp_path)
    assert {name: dict(each.found) for name, each in results.items()} == dict.fromkeys(results, {})
    assert {each.inputs for each in results.values()} == {inputs}
    assert all(each.refused for each in results.values())


def test_deaths_hangs_and_exceptions_are_seen_and_gone_on_after(tmp_path, monkeypatch):
    """The parent's part of it, on a child that dies, hangs and works in turn."""
    child = tmp_path / "child.py"
    child.write_text(
        "import json, os, sys, time\n"
        "for name, first, end in json.loads(sys.argv[-2]):\n"
        "    for number in range(first, end):\n"
        "        with open(sys.argv[-1], 'a') as report:\n"
        "            report.write(json.dumps([name, number]) + '\\n')\n"
        "            report.flush()\n"
        "            if number == 1: os.abort()\n"
        "            if number == 2: time.sleep(60)\n"
        "            became = ['KeyError' * (number == 3), 9.0 * (number == 4), 0]\n"
        "            report.write(json.dumps(became) + '\\n')\n"
    )
    monkeypatch.setattr(fuzz, "CHILD", [str(child)])
    monkeypatch.setattr(fuzz, "WALL", 1)
    start = time.monotonic()
    found = fuzz.run(["npy"], 6, 5, tmp_path / "kept")["npy"]
    assert found.inputs == 6
    assert dict(found.found) == {"native death, status -6": 1, "hang": 1, "KeyError": 1, "9 s": 1}
    assert sorted(path.name for path in (tmp_path / "kept").iterdir()) == [
        f"npy-{number}" for number in (1, 2, 3, 4)
    ]
    assert time.monotonic() - start < 30
