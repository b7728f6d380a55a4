"""The paper's study, done again: `python -m experiments.NAME`."""
