"""The files of the pipeline that `wscpml init` lays, as the repository has them.

setup.py reads this, to put them into the wheel: nothing is imported here.
"""

FILES = (  # from the repository's root, * for any name
    "dvc.yaml",
    "params.yaml",
    "models/dvc.yaml",
    "models/*/params.yaml",
    "data/own/README.md",
    "data/decisions/README.md",
    ".dvc/plots.html",
)
IN_WHEEL = "pipeline"  # where the wheel's package has them
