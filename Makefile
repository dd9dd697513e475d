# Development of hyptrans. `make` lists the targets, each of which installs into .venv what it needs.

TRAINER ?= fairseq
ifneq ($(filter-out fairseq hyptrans,$(TRAINER)),)
$(error TRAINER=$(TRAINER): name fairseq or hyptrans)
endif
# the newest Python 3; fairseq does not build on 3.14
export NEWEST := $(if $(filter hyptrans,$(TRAINER)),14,13)
ifndef PYTHON
PYTHON := $(shell for python in python3 python3.14 python3.13 python3.12 python3.11 python3.10; do \
	$$python -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, $(NEWEST)))' 2>/dev/null \
	&& echo $$python && break; done || echo python3)
endif
TORCH ?= torch==2.13.0

COMMA := ,
SPACE := $(subst ,, )
BIN := .venv/bin
# what .venv has: all but fairseq, for the quickstart alone, for tests too, for development too
ALONE := .venv/.alone
QUICK := .venv/.quickstart
TESTS := .venv/.tests
READY := .venv/.ready
CODE := hyptrans hyptrans_startup.py probing recipes
FAIRSEQ := --no-deps fairseq==0.12.2

# asked before anything is installed: what is missing would otherwise be a page of compiler output
define PREFLIGHT
import os, sys
version, newest = "%d.%d" % sys.version_info[:2], int(os.environ["NEWEST"])
if not (3, 10) <= sys.version_info[:2] <= (3, newest):
    sys.exit("make: this needs Python 3.10 to 3.%d and %s is %s: name another one, as in make"
             " PYTHON=python3.11 test%s" % (newest, sys.executable, version,
             ", and remove .venv" if os.path.exists(".venv") else ""))
import shutil, sysconfig
try:
    import ensurepip, venv
except ImportError:
    sys.exit("make: Python " + version + " lacks the modules venv and ensurepip: install them"
             " (python3-venv in some distributions)")
if os.environ["TRAINER"] == "hyptrans":
    sys.exit()
wanted = [(os.environ.get(name) or sysconfig.get_config_var(name) or "c++").split()[0]
          for name in ("CC", "CXX")]
missing = [tool for tool in wanted if not shutil.which(tool)]
if missing:
    sys.exit("make: fairseq is built from source and no C++ compiler is found (" + ", ".join(missing)
             + "): install one (g++ or build-essential)")
header = os.path.join(sysconfig.get_path("include"), "Python.h")
if not os.path.exists(header):
    sys.exit("make: fairseq is built from source and " + header + " is missing: install the headers"
             " of Python " + version + " (python3-dev or python3-devel)")
endef
export PREFLIGHT TRAINER

.DEFAULT_GOAL := help
.PHONY: help quickstart test test-slow test-hostile test-pythons test-gpu format lint tables docs dist findings

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14
	@echo
	@echo "Variables, as in make TORCH=./torch.whl test:"
	@echo "  TRAINER of the quickstart: fairseq, or hyptrans, which needs neither fairseq nor a"
	@echo "          compiler (now $(TRAINER))"
	@echo "  PYTHON  the interpreter that makes .venv, 3.10 to 3.$(NEWEST) (now $(PYTHON))"
	@echo "  ARCHS   models of the quickstart (now hybonet_plus_tiny euclidean_prenorm_tiny);"
	@echo "          also euclidean_tiny han_tiny hybonet_tiny hypformer_tiny hvt_tiny"
	@echo "  OPTIONS further options of the quickstart, as in OPTIONS='--updates 100'"
	@echo "  TORCH   what pip installs as torch, before all else (now $(TORCH));"
	@echo "          options may follow, for example an index with builds for the CPU only"

quickstart: $(if $(filter hyptrans,$(TRAINER)),$(ALONE),$(QUICK))  ## toy corpus: prepare, train, translate, score, probe
	$(BIN)/python -m recipes.quickstart --trainer $(TRAINER) $(if $(ARCHS),--archs $(subst $(SPACE),$(COMMA),$(strip $(ARCHS)))) $(OPTIONS)

test: $(TESTS)  ## the fast tests, a process per core
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses auto --dist loadscope

test-slow: $(TESTS)  ## the tests that take minutes
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m "slow and not gpu" --numprocesses auto --dist loadscope

test-pythons:  ## install and try the commands on every Python found (ENDS=1: oldest and newest)
	@$(PYTHON) -c "$$PREFLIGHT"
	TORCH="$(TORCH)" $(PYTHON) .ci/pythons.py $(if $(ENDS),--ends)

test-hostile: $(TESTS)  ## files of strangers that nobody should open, drawn anew (SEED=N: again)
	SEED=$(or $(SEED),$$$$) OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m "slow or not slow" tests/hostile

test-gpu: $(TESTS)  ## the tests that need a CUDA device
	$(BIN)/python -m pytest -m gpu

findings:  ## what other libraries do: run findings/*.sh (installs packages, more than half an hour)
	@failed=; log=$$(mktemp); for script in findings/*.sh; do \
		if bash $$script > $$log 2>&1; then echo "pass $$script"; \
		else echo "FAIL $$script"; tail -n 20 $$log; failed=1; fi; \
	done; rm -f $$log; test -z "$$failed"

format: $(READY)  ## format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lint: $(READY)  ## check format, style and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy $(CODE)

tables: $(TESTS)  ## fill the results tables of the READMEs from the runs
	$(BIN)/python -m recipes.tables
	PYTHONPATH=. $(BIN)/python docs/pictures/cover.py

docs: $(READY)  ## build the pages of docs/ into site/, without the network
	$(BIN)/mkdocs build --strict --quiet

dist: $(READY)  ## build a wheel and an sdist into dist/
	rm -rf build dist
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .
	$(BIN)/python setup.py --quiet sdist --dist-dir dist

# A .venv without the stamp was not finished: what cannot even import torch is made anew. torch goes
# first, so that nothing else brings another build of it; fairseq comes without what it asks for.
$(ALONE): pyproject.toml setup.py $(wildcard probing/__init__.py)
	@$(PYTHON) -c "$$PREFLIGHT"
	@test -e $@ || $(BIN)/python -c "import pip, torch" 2>/dev/null || rm -rf .venv
	test -d .venv || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install $(TORCH)
	$(BIN)/python -m pip install --editable ".[transformers,probing]"
	@touch $@

$(QUICK): $(ALONE)
	@NEWEST=13 TRAINER=fairseq $(BIN)/python -c "$$PREFLIGHT"
	$(BIN)/python -m pip install --editable ".[fairseq]"
	$(BIN)/python -m pip install $(FAIRSEQ)
	@touch $@

$(TESTS): $(QUICK)
	$(BIN)/python -m pip install --editable ".[test]"
	@touch $@

$(READY): $(TESTS)
	$(BIN)/python -m pip install --editable ".[dev]"
	@touch $@
