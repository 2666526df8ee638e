"""Tests of tools/run_tests.py and .ci/run: nothing that goes wrong may pass for a success."""

import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import paths
import cli
import hw

HEAD = "import os, signal, sys, unittest\n\n\nclass T(unittest.TestCase):\n"
GOOD = HEAD + "    def test_good(self):\n        pass\n"


class Runner(unittest.TestCase):
    def run_modules(self, modules, *names):
        """Run the runner on a folder of these {name: text}: (exit status, lines printed)."""
        with tempfile.TemporaryDirectory() as folder:
            for name, text in modules.items():
                (Path(folder) / f"{name}_tests.py").write_text(text, encoding="utf-8")
            command = [sys.executable, "tools/run_tests.py", "--folder", folder, *names]
            ended = subprocess.run(command, cwd=cli.ROOT, capture_output=True, text=True,
                                   timeout=60)
        self.printed = (ended.stdout + ended.stderr).replace(folder, "FOLDER")
        return ended.returncode, self.printed.splitlines()

    def fails(self, text, passed, failed, skipped=0):
        """A module of this text, beside a good one, makes the run fail with these totals."""
        status, lines = self.run_modules({"it": text, "good": GOOD})
        totals = f"{passed + 1} passed, {failed} failed"
        self.assertEqual((status, lines[-1]),
                         (1, totals + (f", {skipped} skipped" if skipped else "")))

    def test_scripts_and_tests_run_without_docstrings_and_asserts(self):
        for file in ("ch16_run", "ch16_example_a", "ch16_example_b", "ch16_figures", "ch16_check",
                     "beyond/ch16_exact", "tests/rtl_full"):
            ended = subprocess.run([sys.executable, "-OO", f"tools/{file}.py", "--help"],
                                   cwd=cli.ROOT, capture_output=True, text=True)
            self.assertEqual((ended.returncode, ended.stderr), (0, ""), file)
        ended = subprocess.run([sys.executable, "-OO", "tools/run_tests.py", "quant", "spec_lm"],
                               cwd=cli.ROOT, capture_output=True, text=True)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""), ended.stdout)

    def test_all_passed(self):
        status, lines = self.run_modules({"one": GOOD, "two": GOOD})
        shown = sorted(re.sub(r"\d+\.\d s", "N s", " ".join(line.split())) for line in lines[:-1])
        self.assertEqual(shown, ["one 1 passed 0 failed 0 skipped N s",
                                 "two 1 passed 0 failed 0 skipped N s"])
        self.assertEqual((status, lines[-1]), (0, "2 passed, 0 failed"))

    def test_only_the_named_modules_run(self):
        bad = HEAD + "    def test_bad(self):\n        self.fail()\n"
        status, lines = self.run_modules({"one": GOOD, "two": GOOD, "bad": bad}, "two", "one")
        self.assertEqual((status, lines[-1]), (0, "2 passed, 0 failed"))

    def test_an_unknown_module_is_refused(self):
        status, lines = self.run_modules({"one": GOOD, "two": GOOD}, "tow")
        self.assertEqual((status, lines), (2, [
            "error: no test module tow; there are: one, two"]))

    def test_a_failure_is_shown_in_full_with_what_was_printed(self):
        self.fails(GOOD + "    def test_bad(self):\n        print('k was 3')\n"
                   "        self.assertEqual(1, 2, 'accepted')\n", passed=1, failed=1)
        self.assertIn("FAILED it_tests.T.test_bad\nTraceback", self.printed)
        self.assertIn("AssertionError: 1 != 2 : accepted\n\nit printed:\nk was 3\n", self.printed)

    def test_an_error_in_a_test_or_its_set_up_is_a_failure(self):
        self.fails(HEAD + "    def test_bad(self):\n        1 / 0\n", passed=0, failed=1)
        self.fails(GOOD + "    @classmethod\n    def setUpClass(cls):\n        1 / 0\n",
                   passed=0, failed=1)

    def test_sub_tests_count_once(self):
        self.fails(GOOD + "    def test_many(self):\n        for i in range(5):\n"
                   "            with self.subTest(i=i):\n                self.assertEqual(i, 2)\n",
                   passed=1, failed=1)
        self.assertEqual(self.printed.count("FAILED"), 1)
        self.assertIn("AssertionError: 4 != 2", self.printed)

    def test_an_error_at_import_is_a_failure(self):
        self.fails("import no_such_module\n" + GOOD, passed=0, failed=1)
        self.assertIn("No module named 'no_such_module'", self.printed)
        self.fails(GOOD + "this is no Python\n", passed=0, failed=1)

    def test_a_module_that_ends_early_is_a_failure(self):
        self.fails(GOOD + "    def test_end(self):\n        os._exit(0)\n", passed=0, failed=1)
        self.assertIn("FAILED it\nended early, exit status 0\n", self.printed)
        self.fails(GOOD + "    def test_end(self):\n        os.kill(os.getpid(), 9)\n",
                   passed=0, failed=1)
        self.assertIn("FAILED it\nended early, exit status 137\n", self.printed)
        self.fails(GOOD + "\n\nsys.exit(0)\n", passed=0, failed=1)

    def test_a_module_without_a_test_is_a_failure(self):
        self.fails("import unittest\n", passed=0, failed=1)
        self.assertIn("FAILED it\nholds no test\n", self.printed)

    def test_no_module_is_a_failure(self):
        self.assertEqual(self.run_modules({}), (1, ["0 passed, 0 failed"]))

    def test_a_success_that_was_not_expected_is_a_failure(self):
        self.fails(GOOD + "    @unittest.expectedFailure\n    def test_odd(self):\n"
                   "        pass\n", passed=1, failed=1)
        self.assertIn("FAILED it_tests.T.test_odd\npassed, but was expected to fail", self.printed)

    def test_a_skip_fails_the_run_and_tells_its_reason(self):
        self.fails(GOOD + "    @unittest.skip('no time')\n    def test_more(self):\n"
                   "        pass\n", passed=1, failed=0, skipped=1)
        self.assertIn("\nskipped: no time\n", self.printed)
        self.assertNotIn("RTL", self.printed)

    def test_skipped_rtl_tests_are_said_to_be_unchecked(self):
        reason = "RTL not checked: missing iverilog; install with `apt-get`"
        self.fails(GOOD.replace("class T", f"@unittest.skip({reason!r})\nclass T"),
                   passed=0, failed=0, skipped=1)
        self.assertEqual(self.printed.splitlines()[-2],
                         f"The RTL was NOT checked: install the simulators with `{hw.INSTALL}`.")
        self.assertNotIn(reason, self.printed)


class ContinuousIntegration(unittest.TestCase):
    def test_the_status_is_makes_and_the_last_line_the_runners(self):
        for status in (0, 2):
            with self.subTest(status=status), tempfile.TemporaryDirectory() as folder:
                make = Path(folder) / "make"
                make.write_text("#!/bin/sh\n"
                                "echo \"$@ in $PWD\"\n"
                                "echo '3 passed, 1 failed'\n"
                                "echo 'make: *** [Makefile:24: test] Error 1' >&2\n"
                                f"exit {status}\n")
                make.chmod(0o755)
                ended = subprocess.run(["bash", str(cli.ROOT / ".ci" / "run")], cwd="/",
                                       env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"},
                                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                self.assertEqual((ended.returncode, ended.stdout),
                                 (status, f"test in {cli.ROOT}\n3 passed, 1 failed\n"))


if __name__ == "__main__":
    unittest.main()
