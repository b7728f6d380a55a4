"""The harness of faults, as far as it takes seconds; `python -m tests.faults` is all of it."""

from tests import faults


def test_the_short_version_of_the_harness_finds_all_right(capsys):
    assert faults.main(["--quick"]) == 0
    assert "| two writers of one output | 60 | 60 |" in capsys.readouterr().out
