# Two commands matter: `make run` measures the article's tables here, `make test` checks everything.
# Paths are relative, because make cannot name a target whose path holds a space.

PYTHON ?= python3
BIN := .venv/bin
INTO ?= runs/runtimes
PIP := $(BIN)/python -m pip --disable-pip-version-check

# Thousands of interpreters start here: each may leave the next one the code that it compiled.
unexport PYTHONDONTWRITEBYTECODE
# Of what is installed little is ever imported: Python compiles that, and pip need not compile all.
export PIP_COMPILE := 0

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: run test matrix runtimes lab bench notebooks evidence guide pages font lock clean help

run: .venv/installed-core ## measure the article's two tables on this machine
	$(BIN)/rcr run article

# A process for each core. One file's tests stay together: the cells of a notebook share a kernel.
# Files come in the order of tests/conftest.py, and not by how many tests they hold.
test: .venv/installed-dev ## lint, types, every test, and the notebooks under strict nbval
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest --nbval --nbval-current-env \
		--numprocesses auto --dist loadfile --no-loadscope-reorder

# PYTHONS names others than those on PATH; PART is what pytest is told instead of most of the tests.
matrix: ## run most tests under each Python, with the oldest and the newest dependencies
	"$(PYTHON)" scripts/matrix.py --pythons "$(PYTHONS)" --part "$(PART)"

# Real runtimes wait more than they compute, so more cells run side by side than there are cores.
runtimes: .venv/installed-runtimes node_modules/.bin/restate-server ## install the real runtimes and run them through the same faults
	@command -v redis-server > /dev/null || { \
		echo 'RQ and Celery need redis-server, and are left out: sudo apt install redis-server' >&2; }
	$(BIN)/rcr run runtimes --installed --deadline 90 --workers 6 --into $(INTO)

# Its server comes from npm; without npm it is left out, and rcr says so.
node_modules/.bin/restate-server:
	-npm install --no-save --ignore-scripts --no-audit --no-fund @restatedev/restate-server@1.7

# Jupyter refuses root, who is all that there is in many a container.
lab: .venv/installed-notebooks ## open the notebooks in JupyterLab
	$(BIN)/jupyter lab $(if $(filter 0,$(shell id -u)),--allow-root) notebooks

bench: .venv/installed-dev ## take the benchmarks (ONLY=name: one), each a ratio to its floor; KEEP=1 keeps them
	$(BIN)/python -m benchmarks $(ONLY) $(if $(KEEP),--keep)

# What one extra needs, or several: with-dask,parquet. pip only warns of one that is not there.
with-%: .venv/installed-core ## install what an extra needs: make with-parquet
	@$(BIN)/python -c 'import sys; from importlib.metadata import metadata; \
		known = metadata("rcr-probes").get_all("Provides-Extra"); \
		{*sys.argv[1].split(",")} <= {*known} or sys.exit(f"Extras: {chr(32).join(known)}")' '$*'
	$(call install,[$*])

notebooks: .venv/installed-notebooks ## execute the committed notebooks again, in place
	$(BIN)/rcr notebooks --into notebooks

evidence: .venv/installed-core ## measure the committed evidence again, and transcribe the published
	@for plan in article locations faults contrast syscalls power power_local; do \
		rm -rf "evidence/$$plan" && $(BIN)/rcr run "$$plan" --into "evidence/$$plan" || exit 1; \
	done
	$(BIN)/python scripts/transcribe_article.py
	$(BIN)/python -m scripts.make_synthetic_package

guide: .venv/installed-notebooks ## build the guide's pages, evidence/guide/index.html and zh.html
	$(BIN)/rcr guide --into evidence/guide

pages: .venv/installed-notebooks ## fill the READMEs and the results, and draw their figures
	$(BIN)/python scripts/fill_pages.py

font: .venv/installed-dev ## cut the figures' font to the characters that the texts use
	$(BIN)/python scripts/subset_font.py

# A fresh environment, so that nothing left over in .venv is pinned. Use the oldest Python that the
# project supports: its dependencies may need backports that newer ones do not.
lock: ## pin the newest versions of everything in constraints.txt
	rm -rf .lock
	"$(PYTHON)" -m venv .lock
	.lock/bin/python -m pip --disable-pip-version-check install --editable '.[dev,runtimes]'
	@echo '# Exact versions of all that rcr-probes[dev,runtimes] installs; make and CI install under them.' > .lock/pins
	@echo '# Made by `make lock`; do not edit by hand.' >> .lock/pins
	.lock/bin/python -m pip --disable-pip-version-check freeze --exclude-editable >> .lock/pins
	mv .lock/pins constraints.txt
	rm -rf .lock

clean: ## remove .venv and all caches; runs/ stays, it is data
	rm -rf .venv .lock .matrix build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -prune -exec rm -rf {} +
	find . -name .ipynb_checkpoints -prune -exec rm -rf {} +

help: ## show this list
	@awk -F ':.*## ' '/^[a-z%-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

# A stamp is younger than what it was made from: a second run installs nothing.
.venv/made:
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo 'rcr-probes needs Python 3.11 or newer, and "$(PYTHON)" is none.' >&2; \
		echo 'Name another one: make $(MAKECMDGOALS) PYTHON=/path/to/python3' >&2; \
		echo 'To get one: sudo apt install python3-venv, or on macOS: brew install python' >&2; \
		exit 1; }
	@echo 'Making .venv, once.'
	@"$(PYTHON)" -m venv .venv || { \
		echo '"$(PYTHON)" cannot make a virtual environment; on Debian or Ubuntu, install python3-venv.' >&2; \
		exit 1; }
	@touch $@

# What is installed for one purpose serves the smaller ones too.
.venv/installed-core: serves = .venv/installed-core
.venv/installed-notebooks: extra = [notebooks]
.venv/installed-notebooks: serves = .venv/installed-core .venv/installed-notebooks
.venv/installed-dev: extra = [dev]
.venv/installed-dev: serves = .venv/installed-core .venv/installed-notebooks .venv/installed-dev
.venv/installed-embedded: extra = [dev,embedded]
.venv/installed-embedded: serves = .venv/installed-core .venv/installed-notebooks \
	.venv/installed-dev .venv/installed-embedded
.venv/installed-runtimes: extra = [runtimes]
.venv/installed-runtimes: serves = .venv/installed-core .venv/installed-runtimes

# pip writes the absolute path of this folder to a .pth file, and Python cannot start where its
# locale (C, GBK) does not decode that path. The same path, relative, is ASCII.
define install
	$(PIP) install --constraint constraints.txt --editable '.$(1)'
	@echo ../../../.. > "$$(ls .venv/lib/python*/site-packages/*rcr_probes.pth)"
endef

.venv/installed-%: .venv/made pyproject.toml constraints.txt
	$(call install,$(extra))
	@touch $(serves)
