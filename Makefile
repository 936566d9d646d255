# The targets say what they do: run `make`.
SHELL := /bin/sh
.DEFAULT_GOAL := help
.PHONY: help demo bench test lint coverage fuzz test-cgocheck2 test-lanes soak test-host test-rdmalab test-lab figures figures-cm build generate clean setup setup-lab kernel

# The kernel that the lab boots.
KERNEL ?= 6.1
# What make test and make demo leave behind; figures read it.
OUT := out
export GOVERBS_OUT := $(CURDIR)/$(OUT)
export PATH := $(PATH):/usr/local/go/bin:/usr/lib/go/bin:/usr/sbin:/sbin

help: ## print this list
	@echo 'usage: make TARGET [KERNEL=6.1]'
	@sed -n 's/^\([a-z0-9-]*\):.*## /  \1\t/p' $(MAKEFILE_LIST) | expand -t 16

demo: setup-lab kernel build ## compare RoCE v2, iWARP and TCP on this machine, in a VM with real rxe and siw devices
	@ci/demo $(KERNEL)

bench: setup ## what the bindings cost, against C in the same run: docs/performance.md
	@ci/bench

test: lint coverage test-host fuzz test-rdmalab test-lab test-cgocheck2 ## run all checks and all tests, on rxe and on siw

lint: setup ## gofmt, go vet, staticcheck, shellcheck, generated code
	@ci/lint

test-host: setup ## the tests that need no device
	@ci/test-host

coverage: setup ## which of rdma-core's functions the bindings reach
	@ci/coverage

fuzz: setup ## every fuzz target for FUZZTIME (30s)
	@ci/fuzz

test-rdmalab: setup-lab kernel build ## the lab itself: exit status, streams, time-outs, crashes
	@ci/lab-selftest bin/rdmalab

test-lab: setup-lab kernel build ## all tests in the lab, on rxe and on siw, under the race detector
	@ci/test-lab $(KERNEL)

test-cgocheck2: setup-lab kernel build ## ibverbs' tests in the lab, with every stored pointer checked
	@ci/test-lane cgocheck2 ibverbs

test-lanes: setup-lab kernel build ## more than make test does: AddressSanitizer and Linux 6.12, for ibverbs
	@ci/kernel 6.12
	@ci/test-lane asan ibverbs
	@ci/test-lane 6.12 ibverbs

soak: setup-lab kernel build ## a million ping-pongs by events on rxe and on siw, with random delays
	@ci/soak $(KERNEL)

figures: test demo ## what the project measures of itself, a line each
	@ci/figures

figures-cm: setup-lab kernel build ## measure connections: a thousand at once, and their rate against cmtime
	@ci/figures-cm $(KERNEL)

build: setup ## build the commands into bin/
	@ci/build

generate: setup ## regenerate what is generated
	go generate ./...

kernel: setup-lab
	@ci/kernel $(KERNEL)

setup:
	@ci/setup build lint

setup-lab: setup
	@ci/setup lab peers

clean: ## remove what was built here; kernels stay in ~/.cache/goverbs
	rm -rf bin $(OUT)
