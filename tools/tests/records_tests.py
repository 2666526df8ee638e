"""Tests of what out/ records of the studies beyond the chapter, besides `make check-all`.

Text and picture are drawn anew from the recorded numbers, and a share of the numbers is measured
anew, so that a change which moves them does not wait for the long run.
"""

import json
import unittest

import paths
import ch16_batch
import ch16_best_k
import ch16_fast
import ch16_fast_figures
import ch16_policy
import ch16_sample
import ch16_serve
import ch16_tree
import cli
from comparing import assert_same
from ga2_isa import cycle_counts

PICTURES = {                                    # how a study's picture is drawn from its data
    ch16_fast: lambda data: ch16_fast_figures.bars(data["runs"]),
    ch16_best_k: lambda data: ch16_fast_figures.sweeps(data["sweeps"]),
    ch16_policy: lambda data: ch16_policy.picture(data["means"]),
    ch16_sample: lambda data: ch16_sample.figure(data["table"]),
    ch16_batch: lambda data: ch16_batch.figure(data["table"]),
    ch16_serve: lambda data: ch16_serve.figure(data["chip"]),
}


def recorded(study):
    return json.loads((cli.OUT / f"{study}.json").read_text(encoding="utf-8"))


def as_json(data):
    """What is left of data that is written as JSON and read again."""
    return json.loads(json.dumps(data))


class Drawn(unittest.TestCase):
    def test_text_and_picture_are_drawn_from_the_recorded_numbers(self):
        for study, picture in PICTURES.items():
            name = study.__name__
            with self.subTest(study=name):
                data = recorded(name)
                for drawn, kind in ((study.format_text(data), "txt"),
                                    (picture(data).render(), "svg")):
                    old = (cli.OUT / f"{name}.{kind}").read_text(encoding="utf-8")
                    assert_same(self, drawn.splitlines(), old.splitlines(), f"{name}.{kind}")


class Measured(unittest.TestCase):
    def test_a_target_of_best_k(self):
        rows = {row["name"]: row for row in recorded("ch16_best_k")["targets"]}
        for job in (("noise 5", "structured", 1, 5), ("random 22", "random", 22, 0)):
            row = ch16_best_k.target_row(ch16_best_k.measure_target(job))
            self.assertEqual(as_json(row), rows[job[0]])

    def test_a_run_with_trees(self):
        rows = {row["draft"]: row for row in recorded("ch16_tree")["replayed"]}
        row, _ = ch16_tree.run_on_chip(("structured", "noise 6"))
        self.assertEqual(as_json(row), rows["noise 6"])

    def test_the_table_of_batches(self):
        data = recorded("ch16_batch")
        entries, refusals = ch16_batch.measure_table(0)
        cycles = {shape: cycle_counts(entry["code"])[0] for shape, entry in entries.items()}
        self.assertEqual({f"B={B} k={k}": total for (B, k), total in cycles.items()},
                         data["cycles"])
        self.assertEqual({f"B={B} k={k}": why for (B, k), why in refusals.items()},
                         data["refusals"])
        self.assertEqual(as_json(ch16_batch.table_rows(cycles, ch16_batch.CHANCES)), data["table"])
        self.assertEqual(ch16_batch.measure_histories(0), data["company"]["histories"])

    def test_drafts_that_cost_nothing_on_fresh_models(self):
        rows = {row["draft"]: row for row in recorded("ch16_policy")["fresh"]}
        for draft, least in (("lookup", 1.85), ("two-token", 2.3)):
            self.assertEqual(rows[draft]["runs"], 144)
            self.assertGreaterEqual(rows[draft]["planned"]["speedup"], least)
        self.assertGreaterEqual(rows["lookup"]["planned"]["share"], 0.9)

    def test_the_queue_of_theory(self):
        self.assertEqual(as_json(ch16_serve.measure(("theory", 1))),
                         recorded("ch16_serve")["theory"])


if __name__ == "__main__":
    unittest.main()
