# run · test · test-quick · ui · experiments · review · lint · docs · study · update · hashes · sbom: each sets up what it needs in .venv, once.
PYTHON ?= python3
PORT ?= 5000
UV = 0.13.8
CYCLONEDX = 7.5.0
REVIEW_PORT ?= 8765
SHOWN = (average_precision|hamming_loss|labels.suspicious)$$
export PATH := $(CURDIR)/.venv/bin:$(PATH)

.PHONY: run test test-quick ui experiments review lint format docs track study study-quick update hashes sbom

run: .venv/installed
	python -m wscpml.settings
	python -m wscpml.serving.locks
	python -m dvc repro
	python -m dvc metrics show metrics/evaluation.json

# Three processes, of which one mostly waits for a server, share out the files, the longest first; their matrix products keep to one thread.
test: .venv/installed
	OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 python -m pytest -n 3 --dist loadfile --no-loadscope-reorder

# The same without what is marked as slow: for the inner loop.
test-quick: .venv/installed
	OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 python -m pytest -n 3 --dist loadfile -m "not slow"

ui: .venv/installed
	python -m wscpml.serving.tracking $(PORT)

# The experiments as a table for a terminal: settings that differ, and the main metrics.
experiments: .venv/installed
	python -m dvc exp show --no-pager --only-changed --keep "$(SHOWN)" --drop "^(?!Experiment|params.yaml:|$(SHOWN))"

# A page on which a person decides which tags of the last run are right.
review: .venv/installed
	python -m stages.review $(REVIEW_PORT)

lint: .venv/installed
	python -m ruff check
	python -m ruff format --check
	python -m mypy

format: .venv/installed
	python -m ruff check --fix
	python -m ruff format

# The documentation, into site/; the variable keeps Material's news of its successor quiet.
docs: .venv/installed
	NO_MKDOCS_2_WARNING=1 python -m mkdocs build --strict

# Log the present result if it is not there, e.g. into another or an emptied MLflow store.
track: .venv/installed
	python -m dvc repro --force --single-item track

# The paper's study; a run that was stopped goes on where it was.
study: .venv/installed
	python -m experiments.study

study-quick: .venv/installed
	python -m experiments.study --quick

# The newest versions that pyproject.toml allows, into constraints.txt, without what only torch's CUDA builds ask for.
update: .venv/tools/installed
	mkdir -p build
	.venv/tools/bin/uv pip compile pyproject.toml --all-extras --python-version 3.11 --upgrade --no-annotate --no-header \
		--no-emit-index-url --quiet --output-file build/newest.txt
	grep -Ev '^(cuda|nvidia|triton)' build/newest.txt > constraints.txt
	git diff --stat constraints.txt

# constraints.txt with the sha256 of every file, but for torch, which comes in one file per kind of processor.
hashes: .venv/tools/installed
	mkdir -p build
	grep -v '^torch==' constraints.txt > build/pins.txt
	.venv/tools/bin/uv pip compile build/pins.txt --no-deps --universal --generate-hashes --no-annotate --no-header \
		--no-emit-index-url --quiet --output-file build/hashes.txt

# What is installed in .venv, as a CycloneDX bill of materials.
sbom: .venv/installed .venv/tools/installed
	mkdir -p build
	.venv/tools/bin/cyclonedx-py environment --output-reproducible --output-file build/sbom.json .venv/bin/python

.venv/tools/installed:
	$(PYTHON) -m venv .venv/tools
	.venv/tools/bin/python -m pip install --quiet uv==$(UV) cyclonedx-bom==$(CYCLONEDX)
	touch $@

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Python 3.11 or newer is needed: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv .venv
	python -m pip install --quiet --constraint constraints.txt --editable '.[pipeline,servers,review,study,dev,docs]'
	touch $@
