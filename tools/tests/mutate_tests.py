"""Tests of the mutation engine on a tiny project: nothing but a reported problem is a catch."""

import contextlib
import io
import json
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import paths
import cli
import hw
import mut_ga2
import mutate
from mutate import Equivalent, Mutant

ADDER = """\
LIMIT = 127


def add(a, b):
    total = a + b
    if total > LIMIT:
        return LIMIT
    return total
"""
CHECKS = """\
import adder


def check_small():
    return [] if adder.add(2, 3) == 5 else [f"2 + 3 is {adder.add(2, 3)}"]


def check_large():
    if adder.add(100, 100) != 127:
        yield f"100 + 100 is {adder.add(100, 100)}"


def check_worst():
    return [], 0.5
"""
EXPRESSIONS = ["checks.check_small()", "checks.check_large()", "checks.check_worst()"]

WRONG_SUM = Mutant("model/adder.py", "a + b", "a - b", "a difference", "checks.check_small")
NO_LIMIT = Mutant("model/adder.py", "return LIMIT", "return total", "no limit", "100 + 100 is 200")
RAISES = Mutant("model/adder.py", "a + b", "a + c", "an unknown name", "NameError")
SURVIVES = Mutant("model/adder.py", "total > LIMIT", "total >= LIMIT", "limit itself", "")
STALE = Mutant("model/adder.py", "a * b", "a - b", "a product", "check_small")
TWICE = Mutant("model/adder.py", "LIMIT", "LIMIT", "which one", "check_small")
SYNTAX = Mutant("model/adder.py", "def add(a, b):", "def add(a, b)", "no colon", "check_small")
IMPORT = Mutant("model/adder.py", "LIMIT = 127", "LIMIT = int('x')", "no number", "ValueError")
HANGS = Mutant("model/adder.py", "    total = a + b\n", "    while True:\n        pass\n",
               "an endless loop", "")
SAME = Equivalent("model/adder.py", "total > LIMIT", "total >= LIMIT", "limit itself",
                  "the limit is returned as the limit")


class Project(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.out = self.root / "out"
        (self.root / "model").mkdir()
        (self.root / "model" / "adder.py").write_text(ADDER, encoding="utf-8")
        (self.root / "model" / "checks.py").write_text(CHECKS, encoding="utf-8")

    def run_script(self, mutants, equivalents=(), argv=(), expressions=tuple(EXPRESSIONS)):
        """(exit status, lines printed) of a mutation script with these tables."""
        text = io.StringIO()
        with contextlib.redirect_stdout(text):
            status = mutate.run("mut_adder", mutants, equivalents, ["model"],
                                mutate.python_checks(expressions),
                                ["--out", str(self.out), *argv], root=self.root)
        return status, text.getvalue().splitlines()


class Verdicts(Project):
    def says(self, mutant, line, last="0 of 1 caught"):
        """A script with this mutant alone prints these lines, and fails unless it is caught."""
        status, lines = self.run_script([mutant])
        self.assertEqual(lines[0], "the unbroken copy passes")
        self.assertEqual(" ".join(lines[1].split()), f"1 {line}")
        self.assertEqual((status, lines[-1]), (int(last[0] == "0"), last))

    def test_a_reported_problem_is_a_catch(self):
        self.says(WRONG_SUM, "caught a difference [checks.check_small]", "1 of 1 caught")

    def test_a_later_check_catches_what_the_first_lets_pass(self):
        self.says(NO_LIMIT, "caught no limit [checks.check_large]", "1 of 1 caught")

    def test_an_exception_in_a_check_is_a_catch_that_names_its_type(self):
        self.says(RAISES, "crash an unknown name [checks.check_small: NameError]", "1 of 1 caught")

    def test_a_survivor_makes_the_script_fail(self):
        self.says(SURVIVES, "survived limit itself [no check noticed]")

    def test_a_mutant_that_cannot_be_put_in_is_no_catch(self):
        self.says(STALE, "broken run a product [the old text is in model/adder.py 0 times, not "
                  "once: a * b]")
        self.says(TWICE, "broken run which one [the old text is in model/adder.py 3 times, not "
                  "once: LIMIT]")
        self.says(WRONG_SUM._replace(file="rtl/adder.v"),
                  "broken run a difference [there is no file rtl/adder.v in the copied folders]")
        self.says(WRONG_SUM._replace(new="a + b"),
                  "broken run a difference [the new text equals the old one: a + b]")

    def test_a_syntax_error_is_never_a_catch(self):
        for expect in (None, "crash"):
            status, lines = self.run_script([SYNTAX._replace(expect=expect, where="")])
            self.assertEqual((status, lines[-1]), (1, "0 of 1 caught"))
            self.assertIn("  1  broken run  no colon [SyntaxError: ", lines[1])

    def test_an_exception_at_import_is_a_catch_only_where_declared(self):
        self.says(IMPORT, "broken run no number [ValueError: invalid literal for int() with base "
                  "10: 'x']")
        self.says(IMPORT._replace(expect="crash"),
                  "crash no number [checks.check_small: ValueError]", "1 of 1 caught")

    def test_a_time_out_is_a_catch_only_where_declared(self):
        with mock.patch.object(mutate, "limit", lambda seconds: 0.6):
            self.says(HANGS, "broken run an endless loop [stopped without an end]")
            self.says(HANGS._replace(expect="time-out"),
                      "caught an endless loop [stopped without an end]", "1 of 1 caught")

    def test_a_run_that_ends_without_a_result_is_no_catch(self):
        dies = Mutant("model/adder.py", "a + b", "__import__('os')._exit(0)", "dies", "")
        self.says(dies, "broken run dies [exit status 0 without a result]")

    def test_a_catch_elsewhere_than_the_table_says_makes_the_script_fail(self):
        status, lines = self.run_script([WRONG_SUM._replace(where="check_large")])
        self.assertEqual(status, 1)
        self.assertEqual(lines[1:], [
            "  1  caught      a difference [checks.check_small; the table says check_large]",
            "1 caught elsewhere than the table says",
            "1 of 1 caught"])


class Further(Project):
    def test_they_are_counted_apart(self):
        status, lines = self.run_script([WRONG_SUM, NO_LIMIT._replace(further=True)])
        self.assertEqual(status, 0)
        self.assertEqual(lines[2:], [
            "  2  caught      no limit [checks.check_large]",
            "1 of 1 further mutants caught",
            "1 of 1 caught"])

    def test_alone_they_have_the_last_line(self):
        status, lines = self.run_script([WRONG_SUM, NO_LIMIT._replace(further=True)],
                                        argv=["--only", "2"])
        self.assertEqual((status, lines[2:]), (0, ["1 of 1 further mutants caught"]))

    def test_one_that_survives_makes_the_script_fail(self):
        status, lines = self.run_script([WRONG_SUM, SURVIVES._replace(further=True)])
        self.assertEqual((status, lines[-2:]), (
            1, ["0 of 1 further mutants caught", "1 of 1 caught"]))


class Equivalents(Project):
    def test_one_that_survives_is_not_counted(self):
        status, lines = self.run_script([WRONG_SUM], [SAME])
        self.assertEqual(status, 0)
        self.assertEqual(lines[2:], [
            "  2  survived    limit itself [equivalent: the limit is returned as the limit]",
            "1 of 1 equivalents survived",
            "1 of 1 caught"])

    def test_one_that_is_caught_makes_the_script_fail(self):
        status, lines = self.run_script([WRONG_SUM], [SAME._replace(new="total < LIMIT")])
        self.assertEqual(status, 1)
        self.assertEqual(lines[2:], [
            "  2  caught      limit itself [listed as equivalent, but checks.check_small "
            "2 + 3 is 127]",
            "0 of 1 equivalents survived",
            "1 of 1 caught"])

    def test_a_stale_one_makes_the_script_fail(self):
        status, lines = self.run_script([WRONG_SUM], [SAME._replace(old="total == LIMIT")])
        self.assertEqual((status, lines[-2]), (1, "0 of 1 equivalents survived"))


class Script(Project):
    def test_an_unbroken_copy_that_fails_stops_it(self):
        status, lines = self.run_script([WRONG_SUM], expressions=["checks.check_none()"])
        self.assertEqual(status, 1)
        self.assertEqual(lines, [
            "the unbroken copy fails: checks.check_none: AttributeError: module 'checks' has no "
            "attribute 'check_none'; no mutant was run"])
        self.assertFalse(self.out.exists())

    def test_it_leaves_the_project_as_it_was(self):
        self.run_script([WRONG_SUM, SYNTAX])
        self.assertEqual((self.root / "model" / "adder.py").read_text(encoding="utf-8"), ADDER)
        self.assertEqual(sorted(path.name for path in (self.root / "model").iterdir()),
                         ["adder.py", "checks.py"])

    def test_lines_keep_the_order_of_the_table_and_files_their_bytes(self):
        mutants = [NO_LIMIT, WRONG_SUM, RAISES]
        texts = []
        for _ in range(2):
            status, lines = self.run_script(mutants, [SAME])
            self.assertEqual(status, 0)
            self.assertEqual([line[:3] for line in lines[1:5]], ["  1", "  2", "  3", "  4"])
            written = (self.out / "mut_adder.txt").read_text(encoding="utf-8")
            self.assertEqual(written.splitlines(), lines)
            texts.append((written, (self.out / "mut_adder.json").read_text(encoding="utf-8")))
        self.assertEqual(texts[0], texts[1])

    def test_the_json_holds_what_was_reported(self):
        self.run_script([WRONG_SUM])
        written = (self.out / "mut_adder.json").read_text(encoding="utf-8")
        self.assertEqual(json.loads(written), [{
            "number": 1, "file": "model/adder.py", "fault": "a difference", "equivalent": None,
            "further": False, "where": "checks.check_small", "verdict": "caught",
            "check": "checks.check_small",
            "report": "2 + 3 is -1", "as declared": True}])

    def test_only_runs_the_chosen_mutants_and_writes_nothing(self):
        status, lines = self.run_script([SURVIVES, WRONG_SUM], argv=["--only", "2"])
        self.assertEqual(status, 0)
        self.assertEqual(lines[1:], ["  2  caught      a difference [checks.check_small]",
                                     "1 of 1 caught"])
        self.assertFalse(self.out.exists())

    def test_only_refuses_a_number_that_is_not_in_the_table(self):
        with self.assertRaises(cli.UserError) as caught:
            self.run_script([WRONG_SUM], argv=["--only", "2"])
        self.assertEqual(str(caught.exception), "--only 2: there are mutants 1 to 1")

    def test_list_prints_the_table_and_runs_nothing(self):
        with mock.patch.object(mutate, "try_unbroken") as never:
            status, lines = self.run_script([WRONG_SUM, HANGS._replace(expect="time-out")], [SAME],
                                            ["--list"])
        never.assert_not_called()
        self.assertEqual(status, 0)
        self.assertEqual(lines, [
            "  1  model/adder.py: a difference [checks.check_small]",
            "  2  model/adder.py: an endless loop [a time-out]",
            "  3  model/adder.py: limit itself [equivalent: the limit is returned as the limit]"])


class Chip(unittest.TestCase):
    """What mut_ga2 reads in the output of a simulation."""

    NAMES = ["HALT alone", "LD and ST"]

    def finding(self, status, text):
        return mut_ga2.read(status, text, self.NAMES)

    def test_a_pass_is_no_catch(self):
        self.assertEqual(self.finding(0, "PASS 2 programs, 9 cycles\n"), ("passed", "", ""))

    def test_the_first_mismatch_names_its_program(self):
        text = ("MISMATCH program 1: counter dma is 3, expected 4\n"
                "MISMATCH program 0: counter total is 3, expected 4\n"
                "FAIL 2 of 2 programs, 2 mismatches\n")
        self.assertEqual(self.finding(1, text), (
            "problem", "LD and ST", "MISMATCH program 1: counter dma is 3, expected 4"))

    def test_a_chip_that_hangs_is_caught_by_the_testbench(self):
        text = "FAIL program 0: stuck at pc 0, opcode 1\nFATAL: ...\n"
        self.assertEqual(self.finding(1, text), (
            "problem", "HALT alone", "FAIL program 0: stuck at pc 0, opcode 1"))

    def test_a_simulator_that_does_not_end_is_a_time_out(self):
        self.assertEqual(self.finding(124, "icarus: stopped after 9 s without an end\n"),
                         ("time-out", "", "stopped without an end"))

    def test_what_does_not_compile_is_a_broken_run(self):
        text = ("rtl/dma.v:7: syntax error\n"
                "icarus: the sources do not compile (exit status 1)\n")
        self.assertEqual(self.finding(1, text), (
            "broken run", "", "icarus: the sources do not compile (exit status 1)"))

    def test_every_file_has_mutants_whose_text_is_there_once(self):
        files = set()
        for entry in mut_ga2.MUTANTS + mut_ga2.EQUIVALENTS:
            text = (cli.ROOT / entry.file).read_text(encoding="utf-8")
            self.assertEqual(text.count(entry.old), 1, entry)
            files.add(entry.file)
        self.assertEqual(sorted(files), sorted(hw.RTL))
        self.assertGreaterEqual(len(mut_ga2.MUTANTS), 40)


if __name__ == "__main__":
    unittest.main()
