"""Run the tests: every *_tests.py of the rooms that hold tests, or those named.

    python3 tools/run_tests.py
    python3 tools/run_tests.py spec quant

Each module runs in a process of its own, on all cores. The last line is `N passed, N failed`, with
`, N skipped` after it if any were. The exit status is 0 only if tests ran and every one passed: a
skipped test is a check that was not made.
"""

import paths
import argparse
import json
import os
import sys
import tempfile
import time
import unittest
from collections import namedtuple
from pathlib import Path

import cli
import hw
import proc

ROOMS = ("model", "model/tests", "tools/tests")  # where tests are
SUFFIX = "_tests"
MODULE_SECONDS = 3600  # a module that takes longer hangs
LONGEST = ("studies", "rtl", "ch16_run", "ch16_try", "contract", "readme", "sample_lm", "ch16_check",
           "hw", "exact_lm")                    # first: no core idles then

# failures and skips: (test, text) pairs; output: what the module printed
Module = namedtuple("Module", "name passed failures skips seconds output")


def main(argv=None):
    arguments = parse(argv)
    if arguments.child:
        run_module(arguments.folder[0], arguments.names[0], arguments.child)
        return 0
    modules = []
    for module in run_modules(find_modules(arguments.folder, arguments.names)):
        print(format_module(module), flush=True)
        modules.append(module)
    print(format_end(modules))
    return 0 if all_passed(modules) else 1


def parse(argv):
    parser = argparse.ArgumentParser(description="Run the tests, all or those of some modules.")
    parser.add_argument("names", nargs="*", metavar="module", help="spec for model/spec_tests.py")
    parser.add_argument("--folder", type=Path, action="append",
                        help=f"where the test modules are (default {', '.join(ROOMS)})")
    parser.add_argument("--child", metavar="FILE", help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    folders = arguments.folder or [paths.ROOT / room for room in ROOMS]
    arguments.folder = [folder.resolve() for folder in folders]
    return arguments


def find_modules(folders, wanted):
    """{name: its folder} of the test modules to run, the longest first."""
    found = {path.stem[:-len(SUFFIX)]: folder
             for folder in folders for path in sorted(folder.glob(f"*{SUFFIX}.py"))}
    for name in wanted:
        if name not in found:
            raise cli.UserError(f"no test module {name}; there are: {', '.join(sorted(found))}")
    names = [name for name in LONGEST if name in found]
    names += [name for name in found if name not in names]
    return {name: found[name] for name in names if name in wanted or not wanted}


# In the parent: a child process per module

def run_modules(modules):
    """Yield a Module for each of {name: folder} as they end."""
    def run(name):
        return run_in_child(modules[name], name)

    for _, module in proc.side_by_side(run, modules, cli.cores()):
        yield module


def run_in_child(folder, name):
    """Run one test module in a process of its own, which leaves its results in a file."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="ga2-") as place:
        results = Path(place) / "results.json"
        command = [sys.executable, __file__, "--folder", folder, "--child", results, name]
        env = dict(os.environ, PYTHONOPTIMIZE=str(sys.flags.optimize))
        status, output = proc.execute(command, cli.ROOT, MODULE_SECONDS, env)
        seconds = time.monotonic() - began
        if status != 0 or not results.exists():
            problem = (f"stopped after {MODULE_SECONDS} s" if status == proc.TIMED_OUT else
                       f"ended early, exit status {status}")
            return Module(name, 0, [(name, problem)], [], seconds, output)
        passed, failures, skips = json.loads(results.read_text(encoding="utf-8"))
    if not passed and not failures and not skips:
        failures = [(name, "holds no test")]
    return Module(name, passed, failures, skips, seconds, output)


# In the child: the tests

def run_module(folder, name, path):
    """Run the tests of one module and write (passed, failures, skips) to the file `path`."""
    loader = unittest.TestLoader()
    result = Result()
    loader.discover(str(folder), f"{name}{SUFFIX}.py", top_level_dir=str(folder)).run(result)
    cli.write_json(path, result.verdicts())


class Result(unittest.TestResult):
    """A TestResult that counts a test once, however many of its sub-tests fail or are skipped."""

    def __init__(self):
        super().__init__()
        self.successes = []

    def addSuccess(self, test):
        super().addSuccess(test)
        self.successes.append((test, ""))

    def verdicts(self):
        """(tests passed, failures, skips), the latter two as (test, text) pairs."""
        unexpected = [(test, "passed, but was expected to fail") for test in
                      self.unexpectedSuccesses]
        failures = _by_test(self.failures + self.errors + unexpected)
        skips = _by_test(self.skipped)
        passed = _by_test(self.successes + self.expectedFailures)
        for name in failures:
            skips.pop(name, None)
        passes = [name for name in passed if name not in failures and name not in skips]
        return len(passes), list(failures.items()), list(skips.items())


def _by_test(pairs):
    """{test's name: its texts}, those of a sub-test with those of its test."""
    texts = {}
    for test, text in pairs:
        name = getattr(test, "test_case", test).id()
        texts[name] = f"{texts[name]}\n{text}" if name in texts else text
    return texts


# What is printed

def format_module(module):
    """The module's line; below it, the failures in full and then what the module printed."""
    lines = [f"{module.name:<16} {module.passed:4} passed {len(module.failures):4} failed "
             f"{len(module.skips):4} skipped {module.seconds:7.1f} s"]
    for test, text in module.failures:
        lines += ["", f"FAILED {test}", text.rstrip()]
    if module.failures and module.output.strip():
        lines += ["", f"{module.name} printed:", module.output.rstrip()]
    if module.failures:
        lines.append("")
    return "\n".join(lines)


def format_end(modules):
    """Why tests were skipped, and the totals."""
    reasons = {text: None for module in modules for _, text in module.skips}
    rtl = [reason for reason in reasons if reason.startswith("RTL not checked")]
    lines = [f"skipped: {reason}" for reason in reasons if reason not in rtl]
    if rtl:
        lines.append(f"The RTL was NOT checked: install the simulators with `{hw.INSTALL}`.")
    passed = sum(module.passed for module in modules)
    failed = sum(len(module.failures) for module in modules)
    skipped = sum(len(module.skips) for module in modules)
    lines.append(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return "\n".join(lines)


def all_passed(modules):
    """Whether there was a test and every one passed."""
    return bool(modules) and all(module.passed and not module.failures and not module.skips
                                 for module in modules)


if __name__ == "__main__":
    sys.exit(cli.run(main))
