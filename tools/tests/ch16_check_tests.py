"""Tests of tools/ch16_check.py: it passes on what is recorded, and on nothing else."""

import copy
import json
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import paths
import ch16_check
import cli
import hw
import mut_sample

PRINTED = json.loads((cli.ROOT / "model" / "ch16_figures.json").read_text(encoding="utf-8"))
NAMES = list(ch16_check.CHAPTER)
FILES = [name for script in ch16_check.CHAPTER.values() for name in script.outputs]


class Folder(unittest.TestCase):
    """A copy of the recorded files, to be damaged."""

    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.folder = Path(place.name)
        for name in FILES:
            shutil.copy(cli.OUT / name, self.folder)

    def damage(self, name, change):
        path = self.folder / name
        path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")

    def check(self, names=NAMES, fresh=None, recorded=None, printed=PRINTED, rtl=True):
        """(lines, well) of a comparison of the recorded files with themselves, but for ..."""
        results = ch16_check.compare(names, fresh or cli.OUT, recorded or cli.OUT, printed, rtl)
        return ch16_check.report(list(results), [], "")


class Passes(Folder):
    def test_on_the_recorded_files(self):
        lines, well = self.check(fresh=self.folder)
        self.assertTrue(well, "\n".join(lines))
        self.assertEqual(lines[-1], "everything is as printed and as recorded")
        self.assertEqual(lines[-3], "325 of 325 of the chapter's numbers equal")

    def test_with_a_line_for_every_table_and_every_file(self):
        lines, _ = self.check()
        tables = [line for line in lines if re.match(r"(chapter|record), .* numbers equal$", line)]
        self.assertEqual(len(tables), len(ch16_check.TABLES) + len(FILES))
        self.assertEqual(lines[0].split("  ")[0], "chapter, the seven runs")
        self.assertTrue(lines[0].endswith("  49 of   49 numbers equal"))

    def test_every_number_of_the_chapters_data_belongs_to_a_table(self):
        counted = sum(table.count for table in ch16_check.TABLES)
        names = 1 + len(PRINTED["run"])         # what the file is about; the runs' names
        self.assertEqual(counted, len(list(ch16_check.leaves(PRINTED))) - names)


class Fails(Folder):
    def test_on_any_changed_number_of_the_chapter(self):
        places = [place for place in paths(PRINTED) if place[0] != "about"]
        self.assertEqual(len(places), 325 + 7)
        for place in places:
            printed = copy.deepcopy(PRINTED)
            entry = printed
            for key in place[:-1]:
                entry = entry[key]
            entry[place[-1]] = other(entry[place[-1]])
            found = [ch16_check.compare_table(table, cli.OUT, printed, True)
                     for table in ch16_check.TABLES]
            self.assertTrue(any(differences for _, _, differences in found), place)

    def test_on_any_changed_digit_of_a_scripts_output(self):
        for name in FILES:
            old = (self.folder / name).read_text(encoding="utf-8")
            spots = [spot.start() for spot in re.finditer(r"\d", old)]
            for spot in {spots[0], spots[len(spots) // 2], spots[-1]}:
                self.damage(name, lambda text: change_digit(old, spot))
                lines, well = self.check(fresh=self.folder)
                self.assertFalse(well, f"{name}, character {spot}")
                self.assertEqual(lines[-1], "NOT as printed and recorded")
            (self.folder / name).write_text(old, encoding="utf-8")

    def test_on_a_changed_digit_of_the_record(self):
        for name in FILES:
            old = (self.folder / name).read_text(encoding="utf-8")
            self.damage(name, lambda text: change_digit(text, re.search(r"\d", text).start()))
            lines, well = self.check(recorded=self.folder)
            self.assertFalse(well, name)
            self.assertIn(f"    --- {name} as recorded", "\n".join(lines))
            (self.folder / name).write_text(old, encoding="utf-8")

    def test_on_a_missing_file(self):
        for name in FILES:
            (self.folder / name).unlink()
            for sides in ({"fresh": self.folder}, {"recorded": self.folder}):
                lines, well = self.check(**sides)
                self.assertFalse(well, name)
                self.assertIn(f"    missing: {self.folder / name}", "\n".join(lines))
            shutil.copy(cli.OUT / name, self.folder)

    def test_on_empty_tables(self):
        for name in FILES:
            if name.endswith(".json"):
                for empty in ("[]", "{}", "null", "", '[{"run": "x"}]'):
                    self.damage(name, lambda text: empty)
                    lines, well = self.check(fresh=self.folder)
                    self.assertFalse(well, f"{name}: {empty}")
                shutil.copy(cli.OUT / name, self.folder)

    def test_on_empty_files_that_equal_each_other(self):
        for name in FILES:
            self.damage(name, lambda text: "")
        lines, well = self.check(fresh=self.folder, recorded=self.folder)
        self.assertFalse(well)
        self.assertIn("    there is not one number in", "\n".join(lines))

    def test_on_empty_data_of_the_chapter(self):
        for printed in ({}, {name: {} for name in PRINTED}, []):
            lines, well = self.check(printed=printed)
            self.assertFalse(well)
            self.assertIn("0 of 325 of the chapter's numbers equal", lines)

    def test_on_a_number_too_few_on_both_sides(self):
        printed = copy.deepcopy(PRINTED)
        printed["run"].pop()
        rows = json.loads((self.folder / "ch16_run.json").read_text(encoding="utf-8"))
        cli.write_json(self.folder / "ch16_run.json", rows[:-1])
        lines, well = self.check(["run"], self.folder, self.folder, printed)
        self.assertFalse(well)
        self.assertIn("    the chapter's figures hold 42 numbers here, not 49", lines)

    def test_on_a_row_too_many(self):
        rows = json.loads((self.folder / "ch16_run.json").read_text(encoding="utf-8"))
        cli.write_json(self.folder / "ch16_run.json", rows + [{**rows[0], "run": "an eighth"}])
        lines, well = self.check(["run"], self.folder, self.folder)
        self.assertFalse(well)
        self.assertIn("an eighth, programs: the chapter prints nothing, this is 32",
                      "\n".join(lines))

    def test_with_the_first_lines_of_a_long_difference(self):
        lines = ch16_check.diff("x", "", "a\n" * 30)     # below the names and the place
        self.assertEqual((len(lines), lines[-1]), (25, "... and 9 lines more"))

    def test_when_there_is_nothing_to_compare(self):
        self.assertFalse(ch16_check.report([], [], "")[1])

    def test_on_true_for_one(self):
        self.assertFalse(ch16_check.same(1, True))
        self.assertTrue(ch16_check.same(1, 1.0))


class WithoutSimulators(Folder):
    def test_it_compares_the_models_cycles_says_so_and_does_not_pass(self):
        rows = json.loads((self.folder / "ch16_run.json").read_text(encoding="utf-8"))
        cli.write_json(self.folder / "ch16_run.json", [{**row, "rtl_cycles": None} for row in rows])
        results = list(ch16_check.compare(["run"], self.folder, cli.OUT, PRINTED, rtl=False))
        self.assertEqual(results, [("chapter, the seven runs", 49, 49, [])])
        lines, well = ch16_check.report(results, [], "RTL not checked: missing iverilog")
        self.assertFalse(well)
        self.assertEqual(lines[-2].partition("\n")[0], "RTL not checked: missing iverilog")
        self.assertEqual(lines[-1], "NOT as printed and recorded")

    def test_the_main_run_is_made_without_them(self):
        for rtl, options in ((True, []), (False, ["--sim", "none"])):
            with mock.patch("proc.execute", return_value=(1, "")) as execute:
                failures = list(ch16_check.regenerate(["run"], self.folder, cli.OUT, rtl))
            self.assertEqual(execute.call_args[0][0][4:], options)
            self.assertEqual(len(failures), 1 if rtl else 0)


class Record(unittest.TestCase):
    def test_every_file_in_out_has_a_script_that_makes_it_anew(self):
        listed = subprocess.run(["git", "ls-files", "out"], cwd=cli.ROOT, capture_output=True,
                                text=True).stdout.split()
        made = {f"out/{name}" for script in ch16_check.SCRIPTS.values() for name in script.outputs}
        if not listed:
            self.assertTrue(all((cli.ROOT / name).exists() for name in made))  # no git here
        else:
            self.assertEqual(set(listed), made)

    def test_the_faults_put_in_on_purpose_are_reported_as_recorded(self):
        # A few of the quick scripts' faults, and all scripts' lists; `make check-all` runs all.
        for script, numbers in (("mut_ch16", (4, 20)), ("mut_ch16_compiler", (2, 11)),
                                ("mut_causal", ()), ("mut_tree", ()), ("mut_sample", ()),
                                ("mut_batch", ()), ("mut_ga2", (40,))):
            with self.subTest(script=script):
                recorded = (cli.OUT / f"{script}.txt").read_text(encoding="utf-8").splitlines()
                command = [sys.executable, *(cli.ROOT / "tools").glob(f"**/{script}.py")]
                rows = json.loads((cli.OUT / f"{script}.json").read_text(encoding="utf-8"))
                listed = subprocess.run([*command, "--list"], capture_output=True, text=True)
                self.assertEqual(len(listed.stdout.splitlines()), len(rows))
                if script == "mut_sample":
                    self.assertIn(f"\n{mut_sample.closing(rows)}\n", "\n".join(recorded))
                if not numbers:
                    continue
                if script == "mut_ga2" and hw.not_checked(["icarus"]):
                    self.skipTest(hw.not_checked(["icarus"]))
                ended = subprocess.run([*command, "--only", *map(str, numbers)],
                                       capture_output=True, text=True, timeout=600)
                self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
                self.assertEqual(ended.stdout.splitlines()[:len(numbers) + 1],
                                 [recorded[number] for number in (0, *numbers)])


class Regenerate(Folder):
    def test_a_script_that_fails_is_reported_and_its_old_files_do_not_count(self):
        with mock.patch("proc.execute", return_value=(1, "Traceback\nboom\n")):
            failures = list(ch16_check.regenerate(["example_a"], self.folder, cli.OUT))
        self.assertEqual(failures, ["ch16_example_a.py ended with exit status 1:\n    Traceback\n"
                                    "    boom"])
        lines, well = self.check(["example_a"], fresh=self.folder)
        self.assertFalse(well)
        self.assertIn("   0 of   50 numbers equal", lines[0])

    def test_a_failure_alone_is_enough_to_fail(self):
        results = list(ch16_check.compare(["example_a"], cli.OUT, cli.OUT, PRINTED))
        self.assertTrue(ch16_check.report(results, [], "")[1])
        self.assertFalse(ch16_check.report(results, ["mut_ch16.py ended with status 1"], "")[1])


class Script(unittest.TestCase):
    def start(self, *arguments):
        return subprocess.run([sys.executable, cli.ROOT / "tools" / "ch16_check.py", *arguments],
                              capture_output=True, text=True, cwd="/", timeout=600)

    def test_it_runs_the_scripts_and_keeps_the_files_where_it_is_told(self):
        with tempfile.TemporaryDirectory() as folder:
            ended = self.start("--only", "example_a", "figures", "--out", folder)
            self.assertEqual((ended.returncode, ended.stderr), (0, ""))
            lines = ended.stdout.splitlines()
            self.assertEqual(lines[-1], "everything is as printed and as recorded")
            self.assertEqual(lines[-3], "155 of 155 of the chapter's numbers equal")
            self.assertEqual(len(lines), 3 + 2 + 6 + 3)
            self.assertTrue((Path(folder) / "ch16_example_a_out.txt").exists())

    def test_the_record_cannot_be_overwritten(self):
        ended = self.start("--only", "figures", "--out", str(cli.OUT))
        self.assertEqual(ended.returncode, 2)
        self.assertIn("--out: out/ holds the record; give another folder", ended.stderr)


def paths(value, place=()):
    """The place of every number, word or nothing in nested dicts and lists."""
    if isinstance(value, (dict, list)):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        return [path for key, inner in items for path in paths(inner, place + (key,))]
    return [place]


def other(value):
    """Another value of the kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, str):
        return value + "!"
    return 1 if value is None else value + 1


def change_digit(text, spot):
    """The text with one digit changed."""
    return text[:spot] + str((int(text[spot]) + 1) % 10) + text[spot + 1:]


if __name__ == "__main__":
    unittest.main()
