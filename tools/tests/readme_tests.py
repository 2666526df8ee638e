"""Tests of README.md: every command runs, every name is there, every artefact is written."""

import os
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

import paths
import ch16_check
import cli

README = (cli.ROOT / "README.md").read_text(encoding="utf-8")
PAGES = ("README.md", "rtl/README.md", "model/ANSWERS.md", "model/beyond/README.md")
COMMAND = re.compile(r"(?:make|python3)(?: [\w./=-]+)+|make")
NAMED = re.compile(r"`((?:model|rtl|tb|tools)/[\w./]+\.(?:py|v|md|json))`"
                   r"((?::? ?,? ?`[A-Za-z_]\w*`)*)")

# Commands that take minutes, or run the tests themselves: what stands for them here.
SHORTER = {
    "make": "make -n all",                      # the script itself: ch16_run_tests
    "make test": "make -n test",                # it is running now
    "make check": "python3 tools/ch16_check.py --only example_a",
    "python3 tools/ch16_run.py": "python3 tools/ch16_run.py --sim none",
    "python3 tools/ch16_run.py --vcd": "python3 tools/ch16_run.py --help",      # ch16_run_tests
    "python3 tools/mut_ch16.py": "python3 tools/mut_ch16.py --list",         # ch16_check_tests
    "python3 tools/mut_ch16_compiler.py": "python3 tools/mut_ch16_compiler.py --list",
    "python3 tools/mut_ga2.py": "python3 tools/mut_ga2.py --list",
    "python3 model/tests/spec_lm_tests.py": "python3 model/tests/spec_lm_tests.py -v",
}


def commands():
    """The commands of the README, in its order: indented lines and inline code."""
    found = {}
    for line in re.findall(r"^ {4}((?:make|python3)\b.*)$", README, re.MULTILINE):
        found[line.partition("#")[0].strip()] = None
    for code in re.findall(r"`([^`\n]+)`", README):
        if COMMAND.fullmatch(code):
            found[code] = None
    return list(found)


def map_rows():
    """(section, code, test, command, artefact) of the map's rows that have a command."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")]
            for line in README.splitlines() if line.startswith("| ")]
    return [row for row in rows if len(row) == 5 and row[3].startswith("`")]


class Readme(unittest.TestCase):
    def test_every_command_runs(self):
        self.assertGreaterEqual(len(commands()), 12)
        for command in commands():
            with self.subTest(command=command), tempfile.TemporaryDirectory() as folder:
                words = shlex.split(SHORTER.get(command, command))
                if words[0] == "python3":
                    words[0] = sys.executable
                    if "beyond" in command:     # minutes each: their own tests, `make check-all`
                        words.append("--help")
                    elif "--help" not in words and "_tests" not in command:
                        words += ["--out", folder]
                done = subprocess.run(words, cwd=cli.ROOT, env=dict(os.environ, MAKEFLAGS=""),
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                      encoding="utf-8")
                self.assertEqual(done.returncode, 0, done.stdout)

    def test_no_shorter_form_is_left_over(self):
        self.assertEqual([command for command in SHORTER if command not in commands()], [])

    def test_every_row_of_the_map_leads_to_code_test_command_and_artefact(self):
        self.assertGreaterEqual(len(map_rows()), 16)
        written = {f"python3 tools/{script.file}": script.outputs
                   for script in ch16_check.SCRIPTS.values()}
        for section, code, test, command, artefact in map_rows():
            with self.subTest(section=section):
                self.assertRegex(code, NAMED)
                self.assertRegex(test, NAMED)
                self.assertIn(artefact.strip("`"), written[command.strip("`")])
                self.assertTrue((cli.OUT / artefact.strip("`")).exists())

    def test_every_name_is_defined_where_it_says(self):
        count = 0
        for page in PAGES:
            text = (cli.ROOT / page).read_text(encoding="utf-8")
            for path, names in re.findall(NAMED, text):
                self.assertTrue((cli.ROOT / path).exists(), f"{page}: {path}")
                source = (cli.ROOT / path).read_text(encoding="utf-8")
                for name in re.findall(r"`(\w+)`", names):
                    count += 1
                    self.assertRegex(source, rf"(?m)^ *(?:def|class) {name}\b|^{name} = ",
                                     f"{page}: {path}")
        self.assertGreater(count, 20)

    def test_every_link_and_picture_is_there(self):
        for page in PAGES:
            place = (cli.ROOT / page).parent
            text = (cli.ROOT / page).read_text(encoding="utf-8")
            for target in re.findall(r"\]\(([\w./]+)\)", text):
                self.assertTrue((place / target).exists(), f"{page}: {target}")

    def test_the_table_is_the_recorded_one(self):
        recorded = (cli.OUT / "ch16_run_out.txt").read_text(encoding="utf-8")
        rows = [line for line in recorded.splitlines()
                if re.match(r"(run|---|structured|random)", line)]
        self.assertEqual(len(rows), 9)
        for row in rows:
            self.assertIn(f"\n{row}\n", README)

    def test_the_batterys_worst_error_is_the_recorded_one(self):
        recorded = (cli.OUT / "ch16_battery.txt").read_text(encoding="utf-8")
        worst = re.search(r"graphs around slices .* (0\.\d+) +0\.40", recorded).group(1)
        self.assertIn(f"the bound 0.40 (worst: ours {worst}, the chapter's 0.28)", README)

    def test_the_scopes_for_the_waves_are_those_of_the_design(self):
        self.assertIn("`ga2_tb`, `dut`, `sm_i`", README)
        for path, instance in (("tb/ga2_tb.v", "ga2 dut ("), ("rtl/ga2.v", "ga2_sm sm_i (")):
            self.assertIn(instance, (cli.ROOT / path).read_text(encoding="utf-8"))


if __name__ == "__main__":
    unittest.main()
