"""Tests of a reader's own run, through the command line: its numbers are the recorded ones."""

import contextlib
import io
import json
import os
import re
import tempfile
import unittest
from pathlib import Path
from unittest import mock
from xml.etree import ElementTree

import paths
import ch16_try
import cli
import hw
import spec_lm
import tiny_lm

RECORDED = {name: json.loads((cli.OUT / f"{name}.json").read_text(encoding="utf-8"))
            for name in ("ch16_run", "ch16_fast", "ch16_example_a", "ch16_exact", "ch16_best_k",
                         "ch16_policy")}


def call(line):
    """(exit status, stdout, stderr) of the script with the options of `line`."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = cli.run(lambda: ch16_try.main(line.split()))
        except SystemExit as end:               # argparse
            status = end.code
    return status, out.getvalue(), err.getvalue()


def tried(line):
    """The data of the options' runs."""
    status, out, err = call(line + " --json")
    if status:
        raise AssertionError(err)
    return json.loads(out)


class Recorded(unittest.TestCase):
    """The same runs as in the recorded tables have the same tokens, blocks and cycles."""

    def test_the_chapters_runs(self):
        rows = {row["run"]: row for row in RECORDED["ch16_run"]}
        for options, name in (("--target structured", "structured: k=3 noise 0"),
                              ("--target structured --draft noise:3", "structured: k=3 noise 3"),
                              ("--target structured --draft noise:4", "structured: k=3 noise 4"),
                              ("--k 1", "random 1: k=1"), ("", "random 1: k=3")):
            data = tried(options + " --tokens 32")
            plain, row = data["rows"]
            for key in ("tokens_equal", "accepted", "proposed", "blocks", "programs",
                        "model_cycles", "speedup"):
                self.assertEqual(row[key], rows[name][key], f"{name}: {key}")
            self.assertEqual(plain["model_cycles"], rows["random 1: plain"]["model_cycles"])

    def test_the_fast_decoders_runs(self):
        rows = {row["run"]: row for row in RECORDED["ch16_fast"]["runs"]}
        for options, name in (("--target structured --k 7", "structured: k=7 noise 0"),
                              ("--target structured --draft noise:4", "structured: k=3 noise 4"),
                              ("", "random 1: k=3"), ("--k 7", "random 1: k=7")):
            row = tried(options + " --decoder fast --tokens 32")["rows"][1]
            recorded = rows[name]
            self.assertEqual(
                (row["accepted"], row["blocks"], row["model_cycles"], row["speedup"]),
                (recorded["accepted"], recorded["blocks"], recorded["units"]["all"]["total"],
                 recorded["speedup"]["all"]))
            self.assertAlmostEqual(row["of the limit"],
                                   recorded["limit"] / recorded["units"]["all"]["total"])

    def test_hindsight_is_the_studys_where_blocks_have_prices_of_their_own(self):
        for target in ("random 1", "random 22", "random 23"):
            recorded = next(row for row in RECORDED["ch16_policy"]["targets"]
                            if row["target"] == target)["lookup"]["hindsight"]
            run = tried(f"--target {target.replace(' ', ':')} --decoder fast --draft lookup "
                        "--k 15 --tokens 32")["runs"][0]
            self.assertEqual(round(run["plain_cycles"] / run["hindsight"], 2), recorded, target)
            self.assertLessEqual(run["hindsight"], run["cycles"])

    def test_the_two_token_draft(self):
        recorded = next(row for row in RECORDED["ch16_fast"]["pairs"]
                        if row["draft"] == "two-token" and row["k"] == 7
                        and row["way"] == "each answer once")
        row = tried("--decoder fast --draft pair --k 7 --tokens 32")["rows"][1]
        self.assertEqual((row["accepted"], row["model_cycles"]),
                         (recorded["accepted"], recorded["cycles"]))

    def test_a_run_that_differs_names_the_token(self):
        options = "--target random:4 --start 9 --k 1 --tokens 32"
        found = next(row for row in RECORDED["ch16_exact"]["slice"]["differing"]
                     if (row["target"], row["start"], row["k"]) == ("random 4", 9, 1))
        run = tried(options)["runs"][0]
        self.assertEqual(run["first_difference"],
                         [found[key] for key in ("position", "speculative", "plain")])
        self.assertFalse(run["tokens_equal"])
        self.assertIn("token 22 is 9, plain decoding says 3", call(options)[1])
        self.assertIsNone(tried(options + " --decoder exact")["runs"][0]["first_difference"])

    def test_the_best_k_of_the_sweep(self):
        sweep = RECORDED["ch16_best_k"]
        rows = tried("--decoder fast --k 3,7,15 --tokens 32")["rows"][1:]
        recorded = {row["k"]: row for row in find_sweep(sweep, "random model 1, bigram")}
        for k, row in zip((3, 7, 15), rows):
            self.assertEqual((row["model_cycles"], row["accepted"]),
                             (recorded[k]["cycles"], recorded[k]["accepted"]))


class Story(unittest.TestCase):
    """What is printed without options is example A's run on the chip."""

    def test_the_first_blocks_are_example_as(self):
        run = tried("")["runs"][0]
        wanted = RECORDED["ch16_example_a"]["chip_trace"]
        self.assertEqual([{key: block[key] for key in wanted[0]}
                          for block in run["blocks"][:len(wanted)]], wanted)

    def test_a_block_is_told_line_by_line(self):
        status, out, err = call("")
        self.assertEqual((status, err), (0, ""))
        self.assertIn("block 2: last token 9, 4 rows cached\n"
                      "  guesses           10  9 10\n"
                      "  target's choices   1 11 10 11\n"
                      "  kept 0 of 3; the free token is 1; the cache keeps rows 4 to 4\n"
                      "  2,430 cycles to guess, 12,330 to verify 4 rows\n", out)
        self.assertIn("The RTL was NOT checked", out)

    def test_blocks_add_up_to_the_run(self):
        for options in ("", "--decoder exact --k 2", "--decoder fast --k 7 --draft noise:3",
                        "--decoder fast --draft pair", "--decoder sampled",
                        "--decoder sampled --rule rejection --seed 4", "--k 0",
                        "--decoder fast --draft lookup", "--decoder tree --draft noise:4",
                        "--decoder tree --rows 5 --target structured --draft noise:6"):
            run = tried(options + " --tokens 12")["runs"][0]
            new = [token for block in run["blocks"] for token in block["new"]]
            self.assertEqual([run["start"]] + new[:12], run["said"], options)
            self.assertEqual(run["before"] + sum(block["draft_cycles"] + block["verify_cycles"]
                                                 for block in run["blocks"]), run["cycles"])
            self.assertEqual(sum(block["accepted"] for block in run["blocks"]), run["accepted"])

    def test_quiet_leaves_the_table(self):
        out = call("--quiet --tokens 8")[1]
        self.assertNotIn("block", out.replace("tokens/block", "").replace("blocks", ""))
        self.assertTrue(out.startswith("run "))

    def test_several_values_give_a_row_each_and_the_fastest(self):
        status, out, _ = call("--draft bigram,worst,random:3 --k 0-1 --tokens 6")
        self.assertEqual(status, 0)
        self.assertEqual(out.count("random 1: chapter, "), 1 + 6 + 1)
        self.assertIn("Fastest: random 1: chapter, bigram, k=1", out)

    def test_colours_are_for_a_terminal_without_no_color(self):
        class Terminal(io.StringIO):
            def isatty(self):
                return True

        for environment, stream, coloured in (({}, Terminal(), True), ({}, io.StringIO(), False),
                                              ({"NO_COLOR": "1"}, Terminal(), False)):
            with mock.patch.dict(os.environ, environment):
                if not environment:
                    os.environ.pop("NO_COLOR", None)
                self.assertEqual("\033[" in ch16_try.painter(stream)("7", "32"), coloured)

    def test_the_picture_has_every_block(self):
        with tempfile.TemporaryDirectory() as folder:
            status, _, err = call(f"--tokens 16 --svg --out {folder}")
            self.assertEqual((status, err), (0, ""))
            picture = ElementTree.parse(Path(folder) / "ch16_try.svg").getroot()
            words = [element.text for element in picture.iter() if element.text]
            blocks = len(tried("--tokens 16")["runs"][0]["blocks"])
            for number in range(1, blocks + 1):
                self.assertTrue(any(word.startswith(f"Block {number}:") for word in words))
            self.assertEqual(os.listdir(folder), ["ch16_try.svg"])

    def test_the_verilog_counts_the_same(self):
        if hw.not_checked(["icarus"]):
            self.skipTest(hw.not_checked(["icarus"]))
        status, out, _ = call("--tokens 4 --k 1 --sim icarus --quiet")
        self.assertEqual(status, 0)
        self.assertIn("programs replayed in icarus; every word of external memory", out)


class Sampled(unittest.TestCase):
    def test_seeded_tokens_are_plain_samplings_and_rejections_are_not(self):
        for options, equal in (("", True), ("--seed 7 --temperature 0.3", True),
                               ("--rule rejection", False)):
            row = tried(f"--decoder sampled {options} --tokens 16")["rows"][1]
            self.assertEqual(row["tokens_equal"], equal, options)

    def test_every_temperature_gets_a_row(self):
        rows = tried("--decoder fast,sampled --temperature 0.3,0.15 --tokens 6")["rows"]
        self.assertEqual(len(rows), 2 + 3)


class Repeat(unittest.TestCase):
    def test_targets_are_random_1_to_n(self):
        data = json.loads(call("--decoder fast --k 3 --tokens 12 --repeat 3 --json")[1])
        many, = data.values()
        alone = [tried(f"--target random:{seed} --decoder fast --k 3 --tokens 12")["rows"][1]
                 for seed in (1, 2, 3)]
        self.assertEqual(many["rows"], alone)
        self.assertEqual(many["least"], min(row["speedup"] for row in alone))

    def test_how_speedups_spread(self):
        rows = [{"speedup": speedup} for speedup in (1.0, 4.0, 2.0, 2.0, 1.0)]
        self.assertEqual(ch16_try.spread(rows), {
            "least": 1.0, "1st quartile": 1.0, "median": 2.0, "3rd quartile": 2.0, "most": 4.0,
            "geometric mean": 2 ** 0.8})
        self.assertEqual(set(ch16_try.spread(rows[:1]).values()), {1.0})


class Refusals(unittest.TestCase):
    BAD = {
        "--target x": "argument --target: 'x': give structured, sharp or random:SEED",
        "--target random:": "argument --target: 'random:': give structured, sharp or random:SEED",
        "--draft noise:x": "argument --draft: 'noise:x': give bigram, noise:X as noise:3, pair, "
                           "lookup, worst or random:SEED as random:7",
        "--draft noise:nan": "argument --draft: 'noise:nan': give bigram",
        "--decoder quick": "argument --decoder: 'quick': give chapter, exact, fast, tree, sampled",
        "--k x": "argument --k: 'x': give a whole number from 0 to 63, or a range as 1-15",
        "--k 5-2": "argument --k: '5-2': give a whole number from 0 to 63, or a range as 1-15",
        "--k 64": "argument --k: '64': give a whole number from 0 to 63, or a range as 1-15",
        "--tokens 0": "argument --tokens: '0': give a whole number, from 1 to 64",
        "--tokens 65": "argument --tokens: '65': give a whole number, from 1 to 64",
        "--start 16": "argument --start: '16': give a whole number, from 0 to 15",
        "--repeat 0": "argument --repeat: '0': give a whole number, 1 or more",
        "--temperature 0": "argument --temperature: '0': give a number above 0, as 0.15",
        "--rule best": "argument --rule: 'best': give seeded or rejection",
        "--seed -1": "argument --seed: '-1': give a whole number, 0 or more",
        "--draft pair": "--decoder chapter cannot take --draft pair; give --decoder fast, or one "
                        "of the drafts bigram, noise, worst, random",
        "--decoder sampled --rule rejection --svg --tokens 2":
            "--svg draws chains of guesses and the target's choices; --decoder tree and --rule "
            "rejection have none, leave one of them out",
        "--rows 0": "argument --rows: '0': give a whole number, from 1 to 16",
        "--decoder tree --draft lookup": "--decoder tree cannot take --draft lookup",
        "--tokens 64 --k 7": "token 70: its attention would sum over 70 rows of values",
    }

    def test_each_is_one_sentence_and_status_2(self):
        for options, words in self.BAD.items():
            status, out, err = call(options.replace("--seed -1", "--seed=-1"))
            self.assertEqual((status, out), (2, ""), options)
            self.assertTrue(err.startswith(f"error: {words}"), f"{options}: {err}")
            self.assertEqual(err.count("\n"), 1)


class Help(unittest.TestCase):
    def test_every_example_of_the_help_runs(self):
        examples = re.findall(r"python3 tools/ch16_try\.py (.*)", ch16_try.EXAMPLES)
        self.assertGreaterEqual(len(examples), 5)
        for options in examples:
            for long, short in (("--repeat 24", "--repeat 2"), ("1-15", "1-2"),
                                ("--tokens 32", "--tokens 8")):
                options = options.replace(long, short)
            if "--sim" in options and hw.not_checked(["icarus"]):
                continue
            status, out, err = call(options)
            self.assertEqual((status, err), (0, ""), options)
            self.assertIn("random" if "random" in options else " ", out)


def find_sweep(data, title):
    """The rows of one sweep of ch16_best_k."""
    return next(sweep for name, sweep in data["sweeps"].items() if name.startswith(title))


if __name__ == "__main__":
    unittest.main()
