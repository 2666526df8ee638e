"""Tests of tools/ch16_run.py: the chapter's table, and what is said when things go wrong."""

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import paths
import ch16_run
import cli
import ga2_progs
import hw

CHAPTER = json.loads((cli.ROOT / "model" / "ch16_figures.json").read_text(encoding="utf-8"))


def run_script(*args, root=cli.ROOT, **env):
    """(status, stdout, stderr) of the script in a process of its own."""
    done = subprocess.run([sys.executable, str(root / "tools" / "ch16_run.py"), *map(str, args)],
                          env=dict(os.environ, **env), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, encoding="utf-8")
    return done.returncode, done.stdout, done.stderr


def run_main(*args):
    """(status, stdout, stderr) of main() in this process, where a test can break things."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = cli.run(lambda: ch16_run.main([str(arg) for arg in args]))
    return status, out.getvalue(), err.getvalue()


class InFolder(unittest.TestCase):
    """A test with a folder of its own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="ga2-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def rows(self):
        return json.loads((self.folder / "ch16_run.json").read_text(encoding="utf-8"))

    def first_runs(self, count):
        """Let this test measure the first runs of the table only."""
        patch = mock.patch.object(ch16_run, "RUNS", ch16_run.RUNS[:count])
        patch.start()
        self.addCleanup(patch.stop)


class TableTests(InFolder):

    @unittest.skipIf(hw.not_checked(), hw.not_checked())
    def test_every_number_is_the_chapters_in_both_simulators(self):
        status, text, _ = run_script("--out", self.folder)
        self.assertEqual(status, 0, text)
        self.assertEqual(len(CHAPTER["run"]), 7)
        for row, printed in zip(self.rows(), CHAPTER["run"]):
            self.assertEqual({key: row[key] for key in printed}, printed)
            self.assertEqual(row["model_cycles"], printed["rtl_cycles"])
        self.assertIn("RTL: 266 programs replayed in icarus and verilator;", text)
        self.assertEqual((self.folder / "ch16_run_out.txt").read_text(encoding="utf-8"), text)
        recorded = cli.OUT / "ch16_run_out.txt"
        self.assertEqual(recorded.read_text(encoding="utf-8"), text, f"{recorded} is out of date")

    def test_without_simulators_the_model_is_run_and_the_gap_is_said(self):
        # Only the interpreter itself is on this PATH.
        status, text, _ = run_script("--out", self.folder, PATH=str(self.folder))
        self.assertEqual(status, 1)
        self.assertIn("The RTL was NOT checked (missing iverilog, verilator", text)
        for row, printed in zip(self.rows(), CHAPTER["run"]):
            self.assertIsNone(row["rtl_cycles"])
            self.assertEqual(row["model_cycles"], printed["rtl_cycles"])

    def test_sim_none_says_that_nothing_was_checked_and_succeeds(self):
        self.first_runs(1)
        status, text, _ = run_main("--sim", "none", "--out", self.folder)
        self.assertEqual(status, 0)
        self.assertIn("The RTL was NOT checked (asked for with --sim none)", text)

    def test_wrong_tokens_are_a_failure(self):
        self.first_runs(1)
        with mock.patch.object(ch16_run, "rule_tokens", lambda: [0, 3, 2] + 30 * [13]):
            status, text, _ = run_main("--sim", "none", "--out", self.folder)
        self.assertEqual(status, 1)
        self.assertFalse(self.rows()[0]["tokens_equal"])
        self.assertRegex(text, r"structured: plain  NO ")

    def test_a_software_check_that_fails_is_a_failure(self):
        self.first_runs(1)

        def broken():
            yield "row 3 is off"
        with mock.patch.object(ch16_run.spec_tests, "CHECKS", (broken,)):
            status, text, _ = run_main("--sim", "none", "--out", self.folder)
        self.assertEqual(status, 1)
        self.assertIn("broken                     row 3 is off", text)


@unittest.skipIf(hw.not_checked(), hw.not_checked())
class ReplayTests(InFolder):

    def test_a_word_the_chip_does_not_write_is_an_error_and_nothing_is_recorded(self):
        self.first_runs(1)
        real = ga2_progs.record

        def wrong(code, ext, **sizes):
            words = real(code, ext, **sizes)
            words[-6] ^= 1                      # the last expected word, before the five counters
            return words
        with mock.patch.object(ch16_run.ga2_progs, "record", wrong):
            status, text, err = run_main("--sim", "icarus", "--out", self.folder)
        self.assertEqual((status, text), (2, ""))
        self.assertIn("error: the RTL differs from the model in icarus:", err)
        self.assertIn("MISMATCH", err)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_vcd_shows_the_softmax_unit_at_work(self):
        self.first_runs(2)
        status, text, _ = run_main("--sim", "none", "--vcd", "--out", self.folder)
        self.assertEqual(status, 0)
        path = (self.folder / "ch16_run.vcd").resolve()
        self.assertIn(f"waves: {path}\n", text)
        self.assertRegex(path.read_text(encoding="utf-8"), r"\$scope module sm_i \$end")

    def test_a_checkout_with_a_space_and_two_runs_at_once_give_the_same_bytes(self):
        root = self.folder / "a check out"
        for name in ("model", "rtl", "tb", "tools", "out/build"):   # hw_tests builds in such a path
            if (cli.ROOT / name).exists():
                shutil.copytree(cli.ROOT / name, root / name, symlinks=True,
                                ignore=shutil.ignore_patterns("__pycache__"))
        command = [sys.executable, str(root / "tools" / "ch16_run.py"), "--sim", "verilator"]
        both = [subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE,
                                 encoding="utf-8") for _ in range(2)]
        texts = [process.communicate()[0] for process in both]
        self.assertEqual([process.returncode for process in both], [0, 0])
        self.assertEqual(texts[0], texts[1])
        self.assertEqual((root / "out" / "ch16_run_out.txt").read_text(encoding="utf-8"), texts[0])
        recorded = (cli.OUT / "ch16_run.json").read_text(encoding="utf-8")
        self.assertEqual((root / "out" / "ch16_run.json").read_text(encoding="utf-8"), recorded)
        self.assertEqual(sorted(path.name for path in (root / "out").iterdir()),
                         ["build", "ch16_run.json", "ch16_run_out.txt"])


class MistakeTests(InFolder):

    def test_a_folder_that_cannot_be_written_is_one_sentence(self):
        self.first_runs(1)
        blocked = self.folder / "file"
        blocked.write_text("")
        status, _, err = run_main("--sim", "none", "--out", blocked)
        self.assertEqual(status, 2)
        self.assertRegex(err, r"^error: cannot write .*ch16_run.json: .*\n$")

    def test_an_unknown_simulator_is_refused(self):
        status, _, err = run_script("--sim", "spice")
        self.assertEqual(status, 2)
        self.assertIn("invalid choice: 'spice'", err)


if __name__ == "__main__":
    unittest.main()
