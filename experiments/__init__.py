"""The paper's study, done again: `python -m experiments.NAME`."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
