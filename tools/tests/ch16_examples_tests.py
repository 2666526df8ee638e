"""Tests of the running examples: their numbers, and that nothing around them changes a byte."""

import io
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import paths
import ch16_example_a as example_a
import ch16_example_b as example_b
import cli
import spec_lm
import tiny_lm

PRINTED = json.loads((cli.ROOT / "model" / "ch16_figures.json").read_text(encoding="utf-8"))
TOOLS = cli.ROOT / "tools"
ENVIRONMENTS = ({"PYTHONHASHSEED": "0", "LC_ALL": "C"},
                {"PYTHONHASHSEED": "1", "LC_ALL": "de_DE.UTF-8", "LANG": "de_DE.UTF-8"})
# Example B on three points of its grid, the files the same in all else.
SHORT_B = ("import sys; sys.path.insert(0, sys.argv[1]); "
           "import paths, cli; import ch16_example_b as b; "
           "b.NOISES = (0, 3, 4); b.GUESSES = (3,); "
           "sys.exit(cli.run(lambda: b.main(['--out', sys.argv[2]])))")


def run(*arguments, cwd=None, **environment):
    """The ended process of Python with these arguments."""
    return subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True,
                          cwd=cwd, env={**os.environ, **environment}, encoding="utf-8", timeout=600)


def short_b(out, **more):
    return run("-c", SHORT_B, TOOLS, out, **more)


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir())}


class ExampleA(unittest.TestCase):
    """Every number the chapter prints of example A."""

    @classmethod
    def setUpClass(cls):
        cls.data = json.loads(json.dumps(example_a.measure()))
        cls.printed = PRINTED["example_a"]

    def test_the_three_blocks_are_the_chapters(self):
        self.assertEqual(self.data["trace"], self.printed["blocks"])

    def test_the_plain_tokens_are_the_chapters_and_begin_with_the_blocks(self):
        self.assertEqual(self.data["float_tokens"], self.printed["float_tokens"])
        for name in ("trace", "chip_trace"):
            tokens = example_a.tokens_of(self.data[name])
            self.assertEqual(tokens, self.printed["float_tokens"][:len(tokens)])

    def test_the_verifiers_costs_are_the_chapters(self):
        printed = self.printed["verifier_m4_c4"]
        total, matrix, dma, vector, instructions = self.data["verify"]
        self.assertEqual((total, matrix, dma, vector), tuple(
            printed[name] for name in ("cycles", "matrix", "dma", "vector")))
        self.assertEqual(self.data["verify_instructions"], printed["instructions"])
        self.assertEqual(instructions, sum(printed["instructions"].values()) - 1)  # but the HALT
        self.assertEqual(self.data["verify_words_loaded"], printed["words_loaded"])

    def test_the_single_steps_costs_are_the_chapters(self):
        printed = self.printed["single_steps_context_5_to_8"]
        cycles = [five[0] for five in self.data["single"]]
        self.assertEqual(cycles, printed["cycles"])
        self.assertEqual(sum(cycles), printed["sum"])
        self.assertEqual(self.data["single_words_loaded"], printed["words_loaded"])
        self.assertEqual(sum(self.data["single_words_loaded"]), printed["words_sum"])
        self.assertEqual(self.data["contexts"], [5, 6, 7, 8])

    def test_the_ratio_and_the_weights_are_the_chapters(self):
        self.assertIn(f"It costs {self.printed['block_cost_ratio']} of the steps; 2,304 words",
                      example_a.report(self.data))
        self.assertEqual(self.data["weight_words"], self.printed["weight_words"])

    def test_the_integers_of_the_causality_table_are_the_chapters(self):
        self.assertEqual({",".join(map(str, entry["block"])): entry["logits"]
                          for entry in self.data["causality"]},
                         self.printed["causality_first_five_logits"])

    def test_the_table_says_which_rows_differ(self):
        verdicts = [line.split()[-1] for line in example_a.format_causality(self.data).splitlines()]
        self.assertEqual(verdicts[6:], 3 * ["same"] + ["differs"] + 2 * ["same"] + 6 * ["differs"])

    def test_the_mask_is_read_from_the_graphs_slices(self):
        self.assertEqual(self.data["mask"], {"cached": 4, "rows": [
            {"query": [i, 1], "keys": [0, 5 + i], "values": [0, 5 + i]} for i in range(4)]})
        mdl = tiny_lm.make_model("random", 1)
        self.assertEqual(example_a.mask(spec_lm.build_verify(2, 0, mdl)), {"cached": 0, "rows": [
            {"query": [0, 1], "keys": [0, 1], "values": [0, 1]},
            {"query": [1, 1], "keys": [0, 2], "values": [0, 2]}]})


class ExampleB(unittest.TestCase):
    """Every number the chapter prints of example B, from a run of the script."""

    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            cls.ended = run(TOOLS / "ch16_example_b.py", "--out", folder, cwd=folder,
                            **ENVIRONMENTS[1])
            cls.files = contents(folder)
        cls.data = json.loads(cls.files["ch16_example_b.json"])
        cls.printed = PRINTED["example_b"]

    def test_it_ends_well_and_prints_what_it_writes(self):
        self.assertEqual((self.ended.returncode, self.ended.stderr), (0, ""))
        self.assertEqual(self.ended.stdout.encode("utf-8"), self.files["ch16_example_b_out.txt"])

    def test_the_files_are_those_recorded(self):
        for name, content in self.files.items():
            self.assertEqual(content, (cli.OUT / name).read_bytes(), name)

    def test_acceptance_and_speedup_are_the_chapters(self):
        grid = {}
        for row in self.data["grid"]:
            grid.setdefault(f"noise {row['noise']}", []).append([row["percent"], row["speedup"]])
        self.assertEqual(grid, self.printed["grid_percent_accepted_and_speedup"])
        self.assertEqual(self.data["plain_cycles"], self.printed["plain_cycles"])

    def test_the_tokens_are_the_rules_at_every_point(self):
        self.assertIs(self.data["tokens_equal"], True)
        self.assertIn("Tokens are the rule's in all 25 runs and in the plain one: yes",
                      self.ended.stdout)

    def test_the_statistics_balance(self):
        for row in self.data["grid"]:
            self.assertEqual(row["proposed"], row["blocks"] * row["k"])
            emitted = row["accepted"] + row["blocks"]
            self.assertTrue(32 <= emitted <= 32 + row["k"], row)
            self.assertAlmostEqual(row["tokens_per_block"], emitted / row["blocks"], delta=0.0051)

    def test_the_main_runs_cycles_are_among_the_grids(self):
        grid = {(row["noise"], row["k"]): row["cycles"] for row in self.data["grid"]}
        for row in PRINTED["run"]:
            name, _, noise = row["run"].partition(" noise ")
            if name == "structured: k=3":
                self.assertEqual(grid[int(noise), 3], row["rtl_cycles"])

    def test_unit_costs_are_the_chapters(self):
        model = self.data["model"]
        self.assertEqual(model["draft_step_cycles"], self.printed["draft_step_cycles"])
        self.assertEqual(model["plain_step_cycles_average"],
                         self.printed["plain_step_cycles_average"])
        blocks = {f"cache {entry['cache']}": entry["cycles"] for entry in model["verifier_cycles"]}
        self.assertEqual(blocks, self.printed["verifier_m4_cycles"])

    def test_the_geometric_model_is_the_chapters(self):
        rows = [{name: row[name] for name in ("noise", "alpha", "predicted", "measured")}
                for row in self.data["model"]["rows"]]
        self.assertEqual(rows, self.printed["geometric_model_k3"])

    def test_serving_is_the_chapters_and_marked_as_derived(self):
        printed = {(a, k, c): value for a, k, *values in self.printed["serving"]["rows"]
                   for c, value in zip(self.printed["serving"]["columns_c"], values)}
        self.assertEqual({(row["alpha"], row["k"], row["c"]): row["speedup"]
                          for row in self.data["serve"]["rows"]}, printed)
        self.assertEqual(len(printed), 27)
        self.assertIn("derived, not measured", self.data["serve"]["about"])
        self.assertIn("E / (1 + k c), derived, not measured", self.ended.stdout)

    def test_the_curves_agree_with_the_table_and_rise_and_fall_around_the_best(self):
        table = {(row["alpha"], row["k"]): row["speedup"] for row in self.data["serve"]["rows"]
                 if row["c"] == 0.05}
        for curve in self.data["serve"]["curves"]:
            values = dict(zip(curve["k"], curve["speedup"]))
            for k in (2, 4, 8):
                self.assertAlmostEqual(values[k], table[curve["alpha"], k], delta=0.0056)
            self.assertEqual(max(values, key=values.get), curve["best_k"])
        self.assertEqual([curve["best_k"] for curve in self.data["serve"]["curves"]], [4, 8, 13])


class PartsOfExampleB(unittest.TestCase):
    def test_tokens_a_block_are_the_closed_form(self):
        for a in (0.0, 0.4, 0.9):
            for k in (1, 2, 5):
                self.assertAlmostEqual(example_b.expected_tokens(a, k),
                                       (1 - a ** (k + 1)) / (1 - a))
        self.assertEqual(example_b.expected_tokens(1.0, 3), 4)

    def test_where_there_is_nothing_to_divide_stands_a_dash(self):
        nothing = {"stats": dict.fromkeys(("blocks", "proposed", "accepted", "emitted"), 0),
                   "cycles": 0}
        row = example_b.grid_row(0, 0, nothing, 100)
        line = example_b.format_statistics({"grid": [row]}).splitlines()[-1]
        self.assertEqual(line.split(), ["0", "0", "0", "0", "-", "0", "-", "0", "-"])

    def test_a_wrong_token_is_said_and_fails_the_script(self):
        recorded = json.loads((cli.OUT / "ch16_example_b.json").read_text(encoding="utf-8"))
        recorded["tokens_equal"] = False
        with tempfile.TemporaryDirectory() as folder, \
                mock.patch.object(example_b, "measure", return_value=()), \
                mock.patch.object(example_b, "make_rows", return_value=recorded), \
                mock.patch("sys.stdout", io.StringIO()) as stdout:
            self.assertEqual(example_b.main(["--out", folder]), 1)
        self.assertIn("and in the plain one: NO", stdout.getvalue())


class Surroundings(unittest.TestCase):
    """Hash seed, locale, working directory, a reader that leaves, a folder that is none."""

    def both(self, start):
        """What `start` writes in the two environments, which must be the same bytes."""
        results = []
        for environment in ENVIRONMENTS:
            with tempfile.TemporaryDirectory() as folder:
                ended = start(Path(folder) / "out", cwd=folder, **environment)
                self.assertEqual((ended.returncode, ended.stderr), (0, ""))
                results.append((ended.stdout, contents(Path(folder) / "out")))
        self.assertEqual(results[0], results[1])
        return results[0]

    def test_example_a_is_the_same_bytes_everywhere_and_those_recorded(self):
        stdout, files = self.both(lambda out, **more: run(TOOLS / "ch16_example_a.py", "--out", out,
                                                          **more))
        self.assertEqual(sorted(files), ["ch16_example_a.json", "ch16_example_a_out.txt"])
        for name, content in files.items():
            self.assertEqual(content, (cli.OUT / name).read_bytes(), name)
        self.assertEqual(stdout.encode("utf-8"), files["ch16_example_a_out.txt"])

    def test_example_b_is_the_same_bytes_everywhere(self):
        _, files = self.both(short_b)
        grid = json.loads(files["ch16_example_b.json"])["grid"]
        self.assertEqual([row["speedup"] for row in grid], [1.93, 1.69, 1.01])

    def test_a_reader_that_leaves_early_is_no_traceback(self):
        with tempfile.TemporaryDirectory() as folder:
            ended = subprocess.run(
                ["bash", "-c", '"$0" "$1" --out "$2" | true; exit ${PIPESTATUS[0]}', sys.executable,
                 TOOLS / "ch16_example_a.py", folder], capture_output=True, text=True, timeout=60)
            self.assertEqual((ended.returncode, ended.stderr), (141, ""))

    def test_a_file_where_the_folder_should_be_is_one_sentence(self):
        with tempfile.TemporaryDirectory() as folder:
            blocked = Path(folder) / "out"
            blocked.write_text("a file")
            ended = run(TOOLS / "ch16_example_a.py", "--out", blocked)
            self.assertEqual((ended.returncode, ended.stdout), (2, ""))
            self.assertEqual(ended.stderr, self.refusal(blocked, "error: ", "a") + "\n")
            recorded = json.loads((cli.OUT / "ch16_example_b.json").read_text(encoding="utf-8"))
            with mock.patch.object(example_b, "measure", return_value=()), \
                    mock.patch.object(example_b, "make_rows", return_value=recorded), \
                    self.assertRaises(cli.UserError) as caught:
                example_b.main(["--out", str(blocked)])
            self.assertEqual(str(caught.exception), self.refusal(blocked, "", "b"))

    def refusal(self, folder, before, example):
        return (f"{before}cannot write {folder}/ch16_example_{example}.json: File exists; make the "
                f"folder {folder} writable and run again")


if __name__ == "__main__":
    unittest.main()
