"""The paper's study, done again: `python -m experiments.NAME`."""

from pathlib import Path

from wscpml import stopping

if stopping.is_program(__name__):  # all that is imported takes seconds
    stopping.install("stopped; what is done is kept, and the same command goes on from there")

ROOT = Path(__file__).parents[1]
