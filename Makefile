# Every target prepares .venv by itself; `make setup` alone only does that.
#   TORCH_INDEX=URL  take torch and torchvision from this package index, now and later
#                    (https://download.pytorch.org/whl/cpu for the CPU builds)
#   PYTHON=...       the interpreter .venv is made with
#   ARGS="..."       demo, test, mutants, nightly (to both its runs), compatibility, test-cuda, bench-cuda: passed on
#   CUDA_PYTHON=...  the interpreter of test-cuda and bench-cuda, which need no .venv; default: that of .venv if
#                    its torch sees a GPU, else python3

PYTHON ?= python3.11
TORCH_VERSION ?= 2.13.0
TORCH_INDEX ?=
OMP_NUM_THREADS ?= 1
ARGS ?=
CUDA_PYTHON ?= $(shell .venv/bin/python -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' 2>/dev/null \
	&& echo .venv/bin/python || echo python3)

PY := .venv/bin/python
KILLED := tests/timm_ext/training/test_killed.py tests/fairseq_ext/training/test_killed.py
export PYTHON TORCH_VERSION TORCH_INDEX OMP_NUM_THREADS

.DEFAULT_GOAL := help
.PHONY: help setup demo test mutants nightly check docs compatibility test-cuda bench-cuda

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' Makefile | expand -t 20

setup:  ## make or bring up to date .venv; does nothing when it is
	@bash tools/setup.sh

demo: setup  ## corpus to Pareto front; report in runs/demo/report.html
	$(PY) -m examples.demo --out runs/demo $(ARGS)

test: setup  ## all tests, two at a time; or ARGS, such as tests/search
	$(PY) -m pytest -q --durations=10 $(or $(ARGS),-n 2 --dist loadfile --no-loadscope-reorder)

nightly: setup  ## 2,000 damaged inputs of all commands, each day others; more kills; all tests, programs started anew
	NAS_EXT_HARDENING=2000 NAS_EXT_HARDENING_SEED=$$(date +%j) $(PY) -m pytest -q $(KILLED) tests/hardening $(ARGS)
	NAS_EXT_COLD=1 $(PY) -m pytest -q -n 2 --dist loadfile --no-loadscope-reorder $(ARGS)

mutants: setup  ## small faults in central files of the core, which tests must notice; results: mutmut results
	@$(PY) -c 'import mutmut' 2>/dev/null || $(PY) -m pip install -q "mutmut>=3.8,<4"
	$(PY) -m mutmut run $(ARGS)

check: setup  ## ruff, the layers of imports, and mypy --strict on nas_core
	$(PY) -m ruff check .
	.venv/bin/lint-imports
	$(PY) -m mypy

docs: setup  ## the pages as a site in build/site; a broken link is an error
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict $(ARGS)

compatibility:  ## each extra in an empty environment; needs nox and uv (uv tool install nox)
	nox $(ARGS)

test-cuda:  ## every test of a kind of device on a GPU, also without .venv
	$(CUDA_PYTHON) -m tests.on_cuda $(ARGS)

bench-cuda:  ## benchmarks on a GPU, also without .venv; JSON in benchmarks/results/cuda
	$(CUDA_PYTHON) -m benchmarks.on_cuda $(ARGS)
