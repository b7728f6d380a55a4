"""Data sets: the paper's by name (registry.py), and a person's own files (own.py)."""
