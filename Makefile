# The two commands that matter: `make demo` and `make test`. `make help` lists the others.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c

CACHE := $(or $(FINETUNE_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/finetune-operator)
PYTHON := .venv/bin/python
CODE := operator trainer-image server-image testnode tests hack benchmarks examples demo
# torch's threads wait without spinning: on a small machine spinning starves the node's own processes.
export OMP_WAIT_POLICY := passive
export PATH := $(CACHE)/bin:$(PATH)
export UV_PYTHON_DOWNLOADS := never

.PHONY: help
help: ## List the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

.PHONY: setup
setup: ## Make .venv with everything that development and tests need
	@hack/setup.sh ml

.PHONY: demo
demo: setup ## From nothing to an answer of a tuned model, on a real Kubernetes node on this machine
	@$(PYTHON) -m demo --context $(or $(CONTEXT),testnode)

.PHONY: test
test: setup lint node ## Everything: lint, types, layers, units, trainer, and the way from apply to answer on the node
	$(PYTHON) -m pytest tests --ignore=tests/lifecycle

.PHONY: test-lifecycle
test-lifecycle: setup ## The node up and down: is the machine what it was? Only while the node is down
	$(PYTHON) -m pytest tests/lifecycle

.PHONY: test-fast
test-fast: setup lint ## What needs neither the node nor the images
	$(PYTHON) -m pytest tests --ignore=tests/node --ignore=tests/lifecycle --ignore=tests/e2e --ignore=tests/llama

.PHONY: lint
lint: ## Style, types, layers, and generated files that are out of date
	$(PYTHON) -m ruff check $(wildcard $(CODE))
	$(PYTHON) -m ruff format --check $(wildcard $(CODE))
	$(PYTHON) -m mypy operator/finetune_operator trainer-image/finetune_trainer server-image/finetune_server testnode demo benchmarks
	.venv/bin/lint-imports
	$(PYTHON) hack/generate.py --check

.PHONY: format
format: ## Put the code into shape
	$(PYTHON) -m ruff check --fix $(wildcard $(CODE))
	$(PYTHON) -m ruff format $(wildcard $(CODE))

.PHONY: generate crds requirements
generate: ## Write every generated file: CRDs, reference, requirements
	@$(PYTHON) hack/generate.py
crds: generate
requirements: generate

.PHONY: node
node: setup node-up images ## The node with our images, the hub and the operator on it
	@$(PYTHON) -m testnode install

.PHONY: node-up node-down node-status
node-up: ## Start a real Kubernetes node on this machine
	@python3 -m testnode up
node-down: ## Stop the node and leave nothing behind
	@python3 -m testnode down
node-status: ## What runs, and how to use it
	@python3 -m testnode status

.PHONY: images
images: setup ## Build the three images and load them into the node
	@$(PYTHON) -m testnode.images build all
	@$(PYTHON) -m testnode.images extract
	@$(PYTHON) -m testnode.images load

.PHONY: bench
bench: setup ## Measure the operator beside its peer, on the running node
	@KUBECONFIG=$(or $(KUBECONFIG),$(CACHE)/node/kubeconfig) $(PYTHON) -m benchmarks.reconcile
