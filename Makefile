# make [PYTHON=python3.12] [GA2_EXT=16384] [GA2_SETUP=no] [target]: `make help` lists the targets.
# The simulators are the `iverilog` and `verilator` found on PATH.

PYTHON ?= python3

SHELL := /bin/sh
.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.PHONY: all test test-rtl-full check check-all mutants lint setup clean help

# --- The chapter ---

all: setup  ## run the chapter: checks, programs, both simulators, the table (the default)
	$(PYTHON) tools/ch16_run.py

check: setup  ## run the chapter's scripts anew; compare with its figures and with out/
	$(PYTHON) tools/ch16_check.py

check-all: setup  ## the same, and all that is beyond the chapter (about ten minutes)
	$(PYTHON) tools/ch16_check.py --all

# --- Tests ---

test: setup  ## run every test; exit status 0 only if none failed or was skipped
	$(PYTHON) tools/run_tests.py

test-rtl-full: setup  ## the whole program suite on the RTL, at three latencies
	$(PYTHON) tools/tests/rtl_full.py

mutants: setup  ## put faults in on purpose: do the tests notice?
	$(PYTHON) tools/mut_ch16.py
	$(PYTHON) tools/mut_ch16_compiler.py
	$(PYTHON) tools/beyond/mut_causal.py
	$(PYTHON) tools/beyond/mut_tree.py
	$(PYTHON) tools/beyond/mut_sample.py
	$(PYTHON) tools/beyond/mut_batch.py
	$(PYTHON) tools/mut_ga2.py

lint:  ## all warnings of both simulators, and Python's, as errors
	verilator --lint-only -Wall --timing --top-module ga2_tb rtl/*.v tb/*.v
	! iverilog -g2005 -Wall -t null -s ga2 rtl/*.v 2>&1 | grep .
	! iverilog -g2012 -Wall -t null -s ga2_tb rtl/*.v tb/*.v 2>&1 | grep .
	$(PYTHON) -W error -m compileall -q -f model tools

# --- Housekeeping ---

setup:  ## install the simulators if they are missing and we may
	@GA2_SETUP=$(GA2_SETUP) $(PYTHON) tools/lib/setup.py

clean:  ## remove the built simulators, program images, waves and temporary files
	rm -rf out/build out/*.hex out/*.vcd out/.*.tmp 
	find model tools -name __pycache__ -prune -exec rm -rf {} +

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-14s %s\n", $$1, $$2 }' Makefile
