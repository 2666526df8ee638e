"""Tests of README.md: every command in it runs, every file it names is there."""

import os
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

import paths
import cli

README = (cli.ROOT / "README.md").read_text(encoding="utf-8")
COMMAND = re.compile(r"(?:make|python3)(?: [\w./=-]+)*")

# Commands that take minutes, or run the tests themselves: what stands for them here.
SHORTER = {
    "make": "make -n all",                      # the script itself: ch16_run_tests
    "make test": "make -n test",                # it is running now
    "make test-rtl-full": "python3 tools/tests/rtl_full.py --help",       # measured by rtl_tests
    "make check": "python3 tools/ch16_check.py --only example_a",
    "python3 tools/ch16_run.py": "python3 tools/ch16_run.py --sim none",
    "python3 tools/ch16_run.py --vcd": "python3 tools/ch16_run.py --help",      # ch16_run_tests
    "python3 tools/beyond/ch16_fast.py": "python3 tools/beyond/ch16_fast.py --help",          # fast_lm_tests
    "python3 tools/beyond/ch16_best_k.py": "python3 tools/beyond/ch16_best_k.py --help",      # fast_lm_tests
    "python3 tools/beyond/ch16_exact.py --quick": "python3 tools/beyond/ch16_exact.py --help",    # its own tests
    "python3 tools/mut_ch16.py": "python3 tools/mut_ch16.py --only 1",
    "python3 tools/mut_ch16_compiler.py": "python3 tools/mut_ch16_compiler.py --only 1",
    "python3 tools/beyond/mut_causal.py": "python3 tools/beyond/mut_causal.py --list",
    "python3 tools/mut_ga2.py": "python3 tools/mut_ga2.py --list",
    "python3 tools/run_tests.py capra": "python3 tools/run_tests.py --help",    # running now
    "python3 tools/run_tests.py spec": "python3 tools/run_tests.py --help",
}


def commands():
    """The commands of the README, in its order: indented lines and inline code."""
    found = {}
    for line in re.findall(r"^ {4}((?:make|python3)\b.*)$", README, re.MULTILINE):
        found[line.partition("#")[0].strip()] = None
    for code in re.findall(r"`([^`\n]+)`", README):
        if COMMAND.fullmatch(code) and code not in ("python3",):
            found[code] = None
    return list(found)


class ReadmeTests(unittest.TestCase):

    def test_every_command_runs(self):
        self.assertGreaterEqual(len(commands()), 15)
        for command in commands():
            with self.subTest(command=command), tempfile.TemporaryDirectory() as folder:
                words = shlex.split(SHORTER.get(command, command))
                if words[0] == "python3":
                    words[0] = sys.executable
                    if "--help" not in words and "run_tests" not in command:
                        words += ["--out", folder]
                done = subprocess.run(words, cwd=cli.ROOT, env=dict(os.environ, MAKEFLAGS=""),
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                      encoding="utf-8")
                self.assertEqual(done.returncode, 0, done.stdout)

    def test_no_shorter_form_is_left_over(self):
        self.assertEqual([command for command in SHORTER if command not in commands()], [])

    def test_every_file_it_names_is_there(self):
        paths = re.findall(r"`((?:model|rtl|tb|tools)/[\w.]+)`", README)
        paths += re.findall(r"\((out/[\w.]+)\)", README)
        paths += [f"out/{name}" for name in re.findall(r"`((?:ch16|fig16|mut)_\w+\.\w+)`", README)]
        self.assertGreater(len(paths), 40)
        missing = [path for path in paths if not (cli.ROOT / path).exists()
                   and not (cli.ROOT / path.replace("out/", "tools/")).exists()]
        self.assertEqual(missing, [])

    def test_every_name_of_the_map_is_defined_where_it_says(self):
        for path, names in re.findall(r"`(model/\w+\.py)`: ((?:`\w+`(?:, )?)+)", README):
            text = (cli.ROOT / path).read_text(encoding="utf-8")
            for name in re.findall(r"`(\w+)`", names):
                self.assertRegex(text, rf"(?m)^ *(?:def|class) {name}\b|^{name} = ", path)

    def test_the_table_is_the_recorded_one(self):
        recorded = (cli.OUT / "ch16_run_out.txt").read_text(encoding="utf-8")
        rows = [line for line in recorded.splitlines()
                if re.match(r"(run|---|structured|random)", line)]
        self.assertEqual(len(rows), 9)
        for row in rows:
            self.assertIn(f"\n{row}\n", README)

    def test_the_scopes_for_the_waves_are_those_of_the_design(self):
        self.assertIn("`ga2_tb`, `dut`, `sm_i`", README)
        for path, instance in (("tb/ga2_tb.v", "ga2 dut ("), ("rtl/ga2.v", "ga2_sm sm_i (")):
            self.assertIn(instance, (cli.ROOT / path).read_text(encoding="utf-8"))


if __name__ == "__main__":
    unittest.main()
