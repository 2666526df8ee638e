"""Tests of the study ch16_exact and of exact_runs: what they count, and that they run the chips."""

import json
import unittest

import paths
import ch16_exact
import cli
import exact_runs
import holed_lm
import spec_lm
import tiny_lm
from runs import make_draft, make_target
from exact_lm import ExactChip


def made(target="random 1", k=1, per_shape=None, one_plan=None, logits=True, unmet=False,
         real=(24, 24, 24), cycles=None):
    """A row of the grid or slice."""
    return {"target": target, "draft": "noise 0", "k": k, "start": 0, "per_shape": per_shape,
            "one_plan": one_plan, "logits_equal": logits, "unmet": unmet, "float": list(real),
            "cycles": cycles}


class Comparing(unittest.TestCase):

    def test_the_first_difference_is_position_token_own(self):
        self.assertIsNone(exact_runs.difference([5, 1, 2], [5, 1, 2]))
        self.assertEqual(exact_runs.difference([5, 1, 9, 9], [5, 1, 2, 3]), [2, 9, 2])

    def test_tokens_before_a_difference_do_not_count_the_start(self):
        self.assertEqual(exact_runs.before([5, 1, 2], [5, 1, 2]), 2)
        self.assertEqual(exact_runs.before([5, 1, 9], [5, 1, 2]), 1)
        self.assertEqual(exact_runs.before([5, 9, 2], [5, 1, 2]), 0)


class Decoding(unittest.TestCase):

    def test_a_decoder_does_what_its_chip_does(self):
        mdl = make_target("random 4")
        Wd = make_draft(mdl, "noise 3")
        exact = ExactChip(mdl, Wd, 10, 3)
        plain = tiny_lm.Chip(mdl, 10)
        for generate, step, chip in (
                (plain.generate, plain.program, spec_lm.SpecChip(mdl, Wd, 10, 3)),
                (exact.plain, exact.plan.step, exact)):
            tokens, records = generate(9, 10)
            own, logits = exact_runs.Decoder(mdl, step).plain(9, 10)
            self.assertEqual(own, tokens)
            self.assertEqual([row.index(max(row)) for row in logits], tokens[1:])
            decoder = exact_runs.spec_decoder(chip)
            tokens, _, log = chip.generate(9, 10)
            cycles = spec_lm.cycles_of(log)
            again, logits, calls = decoder.speculate(9, 10)
            self.assertEqual(again, tokens)
            self.assertEqual([row.index(max(row)) for row in logits], tokens[1:])
            self.assertEqual(decoder.cycles(calls), cycles)

    def test_the_worst_draft_is_never_right_about_a_rule(self):
        mdl = make_target("structured")
        Wd = make_draft(mdl, "worst")
        for tok in range(tiny_lm.V):
            self.assertNotEqual(spec_lm.draft_next(mdl, Wd, tok), tiny_lm.f_next(tok))


class Measuring(unittest.TestCase):
    """The measurements against the chips' own host loops, on a few short runs."""

    def test_a_row_is_what_the_chips_generate(self):
        n, k = 12, 3
        part = ch16_exact.Part(("sharp",), (("worst", 1), ("noise 0", k)), (2, 3), n)
        rows = exact_runs.measure_runs("sharp", part)
        self.assertEqual([(row["draft"], row["k"], row["start"]) for row in rows],
                         [("worst", 1, 2), ("worst", 1, 3), ("noise 0", k, 2), ("noise 0", k, 3)])
        mdl = make_target("sharp")
        Wd = make_draft(mdl, "noise 0")
        shapes, exact = spec_lm.SpecChip(mdl, Wd, n, k), ExactChip(mdl, Wd, n, k)
        for row in rows[2:]:
            start = row["start"]
            real = tiny_lm.float_generate(mdl, start, n)
            plain, own = tiny_lm.Chip(mdl, n).generate(start, n)[0], exact.plain(start, n)[0]
            (spoken, _, log), (tokens, _, exact_log) = [chip.generate(start, n)
                                                        for chip in (shapes, exact)]
            wrong = [i for i in range(n + 1) if spoken[i] != plain[i]][:1]
            self.assertEqual(row["per_shape"],
                             [wrong[0], spoken[wrong[0]], plain[wrong[0]]] if wrong else None)
            self.assertEqual((tokens, row["one_plan"], row["logits_equal"]), (own, None, True))
            self.assertEqual(row["float"], [exact_runs.before(made, real)
                                            for made in (plain, spoken, tokens)])
            if not wrong:
                self.assertEqual(row["cycles"], [spec_lm.cycles_of(log),
                                                 spec_lm.cycles_of(exact_log)])
        self.assertEqual([row["per_shape"] is None for row in rows[2:]], [False, True])

    def test_a_run_counts_where_its_tokens_or_its_logits_are_equal(self):
        part = ch16_exact.Part(("random 2",), (("noise 0", 3),), (0, 1), 6)
        counts = exact_runs.measure_tags("random 2", part)
        self.assertEqual(list(counts), [None, *holed_lm.TAGS])
        self.assertEqual(counts[None], [2, 2, 2])
        self.assertEqual(counts["logits"], [2, 2, 0])   # one scale for all: the order stays
        chip = holed_lm.holed_chips(make_target("random 2"), 9, (0, 1))["proj"]
        chip.k = 3
        equal = sum(chip.generate(start, 6)[0] == chip.plain(start, 6)[0] for start in (0, 1))
        self.assertEqual((counts["proj"], equal), ([2, equal, 0], 1))


class Counting(unittest.TestCase):

    def test_a_summary_counts_runs(self):
        rows = [made(), made(per_shape=[3, 1, 2]), made(k=3, one_plan=[3, 1, 2], logits=False),
                made(k=3, unmet=True)]
        self.assertEqual(ch16_exact.summary(rows),
                         {"runs": 4, "per_shape_equal": 3, "per_shape_unmet": 1,
                          "one_plan_equal": 3, "one_plan_logits_equal": 3})
        self.assertEqual([(row["k"], row["runs"]) for row in ch16_exact.by(rows, "k")],
                         [(1, 2), (3, 2)])

    def test_agreement_with_floating_point_is_in_percent(self):
        rows = [made(real=(24, 12, 0)), made(real=(24, 24, 12))]
        self.assertEqual([(row["runs_equal"], row["tokens_before"])
                          for row in ch16_exact.float_rows(rows, 24)],
                         [(100.0, 100.0), (50.0, 75.0), (0.0, 25.0)])

    def test_cycles_are_compared_where_the_calls_are_alike(self):
        rows = [made(cycles=[1000, 1000]), made(), made(cycles=[1000, 1010])]
        self.assertEqual(ch16_exact.cost_row(rows),
                         {"runs": 2, "equal": 1, "per_shape_cycles": 2000, "one_plan_cycles": 2010,
                          "least_percent": 0.0, "most_percent": 1.0})

    def test_one_wrong_run_logit_or_proof_is_a_failure(self):
        whole = ch16_exact.summary([made(), made()])
        good = {"grid": {"total": whole}, "slice": {"total": whole}, "proof": [{"faults": []}]}
        self.assertTrue(ch16_exact.all_exact(good))
        for wrong in (made(one_plan=[3, 1, 2]), made(logits=False)):
            total = ch16_exact.summary([made(), wrong])
            self.assertFalse(ch16_exact.all_exact({**good, "slice": {"total": total}}))
        self.assertFalse(ch16_exact.all_exact({**good, "proof": [{"faults": ["a fault"]}]}))

    def test_what_was_not_replayed_is_told(self):
        self.assertEqual(ch16_exact.format_rtl({"simulators": []}, "no icarus"),
                         ["7. The Verilog", "NOT checked on all simulators: no icarus."])

    def test_the_quick_study_is_a_share_of_the_whole(self):
        quick = ch16_exact.quick_parts()
        for name, whole in (("grid", ch16_exact.GRID), ("slice", ch16_exact.SLICE),
                            ("tags", ch16_exact.TAGS)):
            for some, all_ in zip(quick[name][:3], whole[:3]):
                self.assertLessEqual(set(some), set(all_))

    def test_the_grid_is_5120_runs_and_the_slice_144(self):
        for part, runs in ((ch16_exact.GRID, 5120), (ch16_exact.SLICE, 144)):
            targets, pairs, starts, _ = part
            self.assertEqual(len(targets) * len(pairs) * len(starts), runs)

    def test_the_record_is_of_these_parts(self):
        recorded = json.loads((cli.OUT / "ch16_exact.json").read_text(encoding="utf-8"))
        for name, part in (("grid", ch16_exact.GRID), ("slice", ch16_exact.SLICE)):
            runs = len(part.targets) * len(part.pairs) * len(part.starts)
            self.assertEqual((recorded[name]["tokens"], recorded[name]["total"]["runs"]),
                             (part.n, runs))
            self.assertEqual(recorded[name]["total"]["one_plan_logits_equal"], runs)


if __name__ == "__main__":
    unittest.main()
