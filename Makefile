# Everything a fresh machine needs is Python >= 3.11 and make.
PYTHON ?= python3
VENV ?= .venv
RUN = $(VENV)/bin/python
WORKERS ?= 2
PYTEST = $(RUN) -m pytest --numprocesses $(WORKERS) --dist worksteal

.DEFAULT_GOAL := help
.PHONY: help install psro test check lint slow gpu papers oracles baselines bench report notebook doctor api conformance clean

help:
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --quiet --disable-pip-version-check --constraint constraints.txt torch
	$(RUN) -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,tensorboard]'
	@touch $@

install: $(VENV)/.installed ## virtual environment with everything in it

psro: install ## the main job: PSRO on Bucket Brigade at its default budget (ARGS="--help" for options)
	$(RUN) experiments/psro_bucket_brigade.py $(ARGS)

test: install ## the whole default test suite, with coverage, in WORKERS=2 processes
	$(PYTEST) --cov --cov-report=term

check: lint ## format, lint, types and fast tests
	$(PYTEST) -q -x

lint: install ## format, lint and types alone
	$(RUN) -m ruff format --check .
	$(RUN) -m ruff check .
	$(RUN) -m mypy

slow: install ## long tests
	$(RUN) -m pytest -m slow

gpu: install ## tests that need a CUDA device
	$(RUN) -m pytest -m gpu

papers: install ## reproduce published results
	$(RUN) -m pytest -m papers

oracles: install ## measure the learners on published tasks (hours; ARGS="--task sac_pendulum" for one), then their table
	$(RUN) -m papers.oracles.run $(ARGS)
	$(RUN) -m papers.oracles.table

baselines: install ## our algorithms beside OpenSpiel's (hours; ARGS="--games kuhn" for one game), then their page
	$(RUN) -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[baselines]'
	$(RUN) experiments/openspiel_baselines.py $(ARGS)

bench: install ## speed, as ratios against named peers in the same run
	$(RUN) -m counterplay.bench --json docs/bench.json

report: install ## a finished run as one HTML page (ARGS="runs/rest_trap-0")
	$(RUN) -m counterplay.main report $(ARGS)

notebook: install ## a finished run as an executed notebook (ARGS="runs/rest_trap-0")
	$(RUN) -m counterplay.main notebook $(ARGS)

doctor: install ## whether this machine has what is needed
	$(RUN) -m counterplay.main doctor

api: install ## write docs/api.md, the list of the public interface
	$(RUN) -m counterplay.api > $(VENV)/api.md
	@mv $(VENV)/api.md docs/api.md

conformance: install ## write docs/conformance.md, which rules every game keeps
	$(RUN) -m counterplay.main conform --all --markdown > $(VENV)/conformance.md
	@mv $(VENV)/conformance.md docs/conformance.md

clean: ## remove the virtual environment and caches
	rm -rf $(VENV) .pytest_cache .ruff_cache .mypy_cache
