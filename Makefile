PYTHON ?= python3
PY := .venv/bin/python
READY := .venv/.ready
TORCH_VENV := build/conformance
TORCH := $(TORCH_VENV)/bin/python
unexport PYTHONDONTWRITEBYTECODE # sources are compiled once, not by each of a thousand commands

.PHONY: help prove audit certify tables report docs test test-all conformance fuzz mutants lint bench clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(READY):
	@$(PYTHON) -c 'import sys; sys.exit(None if (3, 11) <= sys.version_info < (3, 14) else "psem needs Python 3.11, 3.12 or 3.13; set PYTHON=...")'
	$(PYTHON) -m venv --clear .venv
	$(PY) -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test]'
	@$(PY) -m compileall -q spec proofs psem_model psem_check
	@touch $(READY)

prove: $(READY) ## prove every claim, by area; build/report.json
	@$(PY) -m psem_model prove

audit: $(READY) ## decide every obligation again by cvc5, audit what is assumed; build/audit.json
	@$(PY) -m psem_model audit

certify: $(READY) ## a proof of every obligation, checked without solver or kernel; build/certificate.json.xz
	@$(PY) -m psem_model.certify

tables: $(READY) ## formula tables as LaTeX, Markdown, CSV, HTML; build/tables
	@$(PY) -m psem_model tables --all

report: $(READY) ## the claims as one page for a browser; build/report.html
	@$(PY) -m psem_model report

docs: $(READY) ## write the pages of docs/ that are generated
	@$(PY) -m proofs.page > docs/CLAIMS.md.part && mv docs/CLAIMS.md.part docs/CLAIMS.md
	@$(PY) -m proofs.specification > docs/SPEC.md.part && mv docs/SPEC.md.part docs/SPEC.md
	@$(PY) -m psem_model.commands.page > docs/CLI.md.part && mv docs/CLI.md.part docs/CLI.md
	@$(PY) -m conformance.page > docs/CONFORMANCE.md.part && mv docs/CONFORMANCE.md.part docs/CONFORMANCE.md
	@$(PY) -m psem_model.published.measured > docs/MEASURED.md.part && mv docs/MEASURED.md.part docs/MEASURED.md
	@$(PY) -m psem_model.pages.words > docs/ABSTRACT.md.part && mv docs/ABSTRACT.md.part docs/ABSTRACT.md
	@$(PY) -m psem_model.notebooks.executed docs/example.ipynb

test: $(READY) ## run the tests, but for slow ones, with a tenth of the examples: about two minutes
	@$(PY) -m pytest -q -n 2 --dist worksteal -m "not slow" --hypothesis-profile quick

test-all: $(READY) ## run all tests, with cross-checks, broken rules and all examples: ten minutes
	@$(PY) -m pytest -q -n 2 --dist worksteal

conformance: $(READY) ## record what PyTorch does, again, and compare; torch in build/conformance
	@test -x $(TORCH) || $(PYTHON) -m venv $(TORCH_VENV)
	@$(TORCH) -m pip install --quiet --disable-pip-version-check -r conformance/requirements.txt || true
	@if $(TORCH) -c 'import torch, transformers' 2>/dev/null; then \
	  $(TORCH) -W ignore -m conformance.record && $(TORCH) -W ignore -m conformance.record.counts && \
	  $(MAKE) docs && $(PY) -m pytest -q tests/conformance tests/reading/test_configurations.py; \
	else echo "conformance: SKIPPED, not passed: torch or transformers is not installed here, and cannot be"; fi

fuzz: $(READY) ## random schedules until Ctrl-C, specification against simulator; SEED=...
	@$(PY) -m tests.fuzz $(SEED)

mutants: $(READY) ## change each rule of spec/ in one place: what notices; docs/MUTANTS.md; hours
	@$(PY) -m tests.support.mutated_rules

lint: $(READY) ## ruff and mypy, strict but for tests
	@$(PY) -m ruff check . && $(PY) -m ruff format --check . && $(PY) -m mypy

bench: $(READY) ## measure speed: ratios and medians
	@$(PY) -m tests.bench

clean: ## remove what was generated, but for the environment
	rm -rf build .pytest_cache .mypy_cache .ruff_cache .hypothesis
