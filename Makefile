# Every target is one line of `make help`.
SHELL := /bin/sh
PY := .venv/bin/python
STAMP := .venv/.installed
# one worker more than processors: whoever waits for a server or a time-out leaves one of them free
JOBS ?= $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) + 1)))
# each worker has a run of neighbours, who share what their modules start; who is done takes from the others
PYTEST := $(PY) -m pytest -n $(JOBS) --dist worksteal
# where it is set, each of the hundreds of processes that tests start would compile the sources anew
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo test pythons fuzz lives storm soak mutants changes check bench counters figures bench-cluster bench-up bench-web kube browser screenshots cluster format docs pages wheel image clean

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP)  ## make .venv with .venv/bin/pumice and the tools of this project

$(STAMP): pyproject.toml constraints.txt
	@if command -v uv >/dev/null 2>&1; then \
	  uv venv --quiet --allow-existing --python python3 .venv && \
	  uv pip install --quiet --python $(PY) -c constraints.txt -e '.[dev]'; \
	else \
	  python3 -m venv .venv && \
	  $(PY) -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'; \
	fi
	@touch $(STAMP)

demo: setup  ## watch gangs being scheduled on a simulated cluster
	.venv/bin/pumice demo

test: setup  ## run every test and every scenario (TIMES=40 says where the processor time went)
	$(PYTEST) $(if $(TIMES),--times $(TIMES))
	.venv/bin/pumice test scenarios --jobs 2

pythons: setup  ## run waits, recordings, readers and scenarios on every other Python from 3.11 to 3.14 that is here or can be installed
	$(PY) -m testbed.pythons

fuzz: setup  ## run the property tests on examples that nobody has seen before
	PUMICE_FUZZ=1 $(PYTEST)

lives: setup  ## search random lives for broken rules (LIVES=, SEEDS= the first one, POLICY=, CYCLES= longer ones); SEED=n tells one, SCENARIO=FILE writes it
	$(PY) -m tests.lives $(if $(SEED),--seed $(SEED) --shrink,--lives $(or $(LIVES),300) --first $(or $(SEEDS),0)) $(if $(POLICY),--policy $(POLICY)) $(if $(CYCLES),--cycles $(CYCLES)) $(if $(SCENARIO),--scenario $(SCENARIO))

storm: setup  ## live lives in which everything goes wrong at once, in virtual time (SEEDS= how many, FIRST= the first one, STORM= seconds of bad weather in each); SEED=n tells one, SHRINK=1 makes it small, SCENARIO=FILE writes it where a scenario can say it
	$(PY) -m tests.storm $(if $(SEED),--seed $(SEED) $(if $(SHRINK),--shrink) $(if $(SCENARIO),--scenario $(SCENARIO)),--seeds $(or $(SEEDS),200) --first $(or $(FIRST),0)) $(if $(STORM),--storm $(STORM))

soak: setup  ## let a cluster of 1,000 nodes work for a month of virtual time with a fault a minute, and tell how much every part keeps (HOURS= of real time that it may take, NODES=, JOBS= in an hour, DAYS=)
	$(PY) -m tests.storm.soak --hours $(or $(HOURS),6) --days $(or $(DAYS),30) --nodes $(or $(NODES),1000) --jobs $(or $(JOBS),200)

mutants: setup  ## change one thing at a time in the code and see whether a test notices (SAMPLE= how many, 0 for all; SEED=, PATHS= files or folders, TESTS=, AGAIN= the output of a run whose unnoticed ones are tried again)
	$(PY) -m tests.mutants --sample $(or $(SAMPLE),100) --seed $(or $(SEED),0) $(if $(PATHS),--paths $(PATHS)) $(if $(TESTS),--tests $(TESTS)) $(if $(AGAIN),--again $(AGAIN))

changes: setup  ## make what explain calls enough, and what it does not, in random worlds, and see whether the job starts (JOBS= waiting jobs, SEEDS= the first world, POLICY=)
	$(PY) -m tests.lives.changes --jobs $(or $(JOBS),500) --first $(or $(SEEDS),0) $(if $(POLICY),--policy $(POLICY))

check: setup  ## what CI runs: format, lint, types, layers, tests
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/mypy
	.venv/bin/lint-imports
	$(MAKE) test

bench: setup  ## measure, beside a plain numpy floor (JSON=FILE writes a report too)
	$(PY) -m bench $(if $(JSON),--json $(JSON))

counters: setup  ## write down anew what work the workloads cost, after a change that is meant to change it
	$(PY) -m bench.counters

figures: setup  ## take the figures of docs/performance.md anew (WORKLOADS="a b" only those)
	$(PY) -m bench.figures $(WORKLOADS)

kube: setup  ## provide etcd, kube-apiserver and kubectl for the tests; the last line is their folder
	@$(PY) -m testbed.provide $(WITH:%=--with %)

browser: setup  ## provide chromium for the tests of the page; the last line is where it is
	@$(PY) -m testbed.browser

screenshots: setup  ## take the pictures of docs/web.md anew; needs make browser first
	PUMICE_SCREENSHOTS=docs/images $(PY) -m pytest tests/web/test_web_browser.py -k pumice_up

cluster: setup  ## run an API server to try things on, until Ctrl-C; needs make kube first
	@$(PY) -m testbed

bench-cluster: setup  ## measure on a real API server (JSON=FILE writes a report, PEERS=1 runs kube-scheduler too)
	$(PY) -m bench.cluster $(if $(JSON),--json $(JSON)) $(if $(PEERS),--peers)

bench-up: setup  ## measure the API server of pumice up, beside kube-apiserver (LARGE=1 with 100,000 pods)
	$(PY) -m bench.up $(if $(LARGE),--large)

bench-web: setup  ## measure what the page costs on 5,000 nodes, 100,000 pods and 10,000 jobs
	$(PY) -m bench -k bench.web

format: setup  ## rewrite the sources in the house format
	.venv/bin/ruff format .
	.venv/bin/ruff check --fix-only .

docs: setup  ## write the reference pages and the files to deploy from the code
	$(PY) docs/generate.py
	$(PY) deploy/generate.py

pages: setup  ## play the pages about other projects and write what their commands print (PAGES="jobs ray" only those)
	PYTHONPATH=. $(PY) tests/up/write_pages.py $(PAGES)

wheel: setup  ## build the wheel in dist/, and try it in an environment of its own
	rm -rf dist
	@if command -v uv >/dev/null 2>&1; then \
	  uv build --quiet --wheel --out-dir dist . && uv venv --quiet --python python3 dist/try && \
	  uv pip install --quiet --python dist/try/bin/python -c constraints.txt dist/*.whl; \
	else \
	  $(PY) -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist . && python3 -m venv --without-pip dist/try && \
	  $(PY) -m pip --python dist/try/bin/python install --quiet --disable-pip-version-check --no-compile -c constraints.txt dist/*.whl; \
	fi
	cd dist && try/bin/pumice --version && try/bin/pumice test ../docs/examples/gang.yaml && try/bin/pumice install --print > /dev/null
	@rm -rf dist/try && ls dist/*.whl

image: setup  ## build the image pumice:VERSION, where a container engine answers
	@version=$$($(PY) -c 'import pumice; print(pumice.__version__)'); \
	if docker info >/dev/null 2>&1; then docker build --tag pumice:$$version .; \
	else echo "no container engine answers: pumice:$$version is not built"; fi

clean:  ## remove what setup and the tests made
	rm -rf .venv .pythons .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
