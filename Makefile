# make [PYTHON=python3.12] [GA2_EXT=16384] [target]: `make help` lists the targets.
# The simulators are the `iverilog` and `verilator` found on PATH.

PYTHON ?= python3

SHELL := /bin/sh
.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.PHONY: all test test-rtl-full check lint setup clean help

# --- The chapter ---

all: setup  ## run the chapter: checks, programs, both simulators, the table (the default)
	$(PYTHON) tools/ch16_run.py

check:  ## compare what the scripts print with the chapter's figures
	$(PYTHON) tools/ch16_check.py

# --- Tests ---

test: setup  ## run every test; exit status 0 only if none failed or was skipped
	$(PYTHON) tools/run_tests.py

test-rtl-full: setup  ## the long RTL tests
	$(PYTHON) tools/rtl_full.py

lint:  ## all warnings of both simulators, and Python's, as errors
	verilator --lint-only -Wall --timing --top-module ga2_tb rtl/*.v tb/*.v
	! iverilog -g2005 -Wall -t null -s ga2 rtl/*.v 2>&1 | grep .
	! iverilog -g2012 -Wall -t null -s ga2_tb rtl/*.v tb/*.v 2>&1 | grep .
	$(PYTHON) -W error -m compileall -q -f model tools

# --- Housekeeping ---

setup:  ## install the simulators if they are missing and we may
	@$(PYTHON) tools/setup.py

clean:  ## remove the built simulators, program images, waves and temporary files
	rm -rf out/build out/*.hex out/*.vcd out/.*.tmp model/__pycache__ tools/__pycache__

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-14s %s\n", $$1, $$2 }' Makefile
