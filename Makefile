# Two commands do all the set-up: `make run` (the main job) and `make test`.
PYTHON ?= python3
OUT ?= runs
VENV := .venv
BIN := $(VENV)/bin

.PHONY: run test test-compat simulate mutations venv check fields organism pictures clean

run: venv
	HF_HUB_OFFLINE=1 $(BIN)/ahalab run studies/quickstart.yaml --out $(OUT)

test: venv
	HF_HUB_OFFLINE=1 $(BIN)/python -m pytest -q

# Train the organism with each supported set of libraries, or with SETS="newest oldest".
test-compat: venv
	HF_HUB_OFFLINE=1 $(BIN)/python tools/compat.py $(SETS)

venv: $(VENV)/.ready

$(VENV)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[train,dev]'
	touch $@

check: venv
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Studies without a true effect, by the thousand: the tables in docs/statistics.md (some minutes).
simulate: venv
	$(BIN)/python -m benchmarks.simulate --write docs/statistics.md

# Every mutation of evidence, and the check that tells: the tables in docs/evidence.md (some minutes).
mutations: venv
	$(BIN)/python -m benchmarks.mutations --write docs/evidence.md

# The field tables of TRL and PEFT, from the versions installed.
fields: venv
	$(BIN)/python -m ahalab.plan.field_tables

# The embedded model again, from its recipe, into build/organism.
organism: venv
	$(BIN)/ahalab organism build build/organism

# The README's pictures, from results/quickstart (needs Debian's chromium).
pictures: venv
	$(BIN)/python tools/pictures.py

clean:
	rm -rf $(VENV) runs build .pytest_cache .mypy_cache .ruff_cache .hypothesis
