"""Tests of the tiny language model: its matrices, its step and its decoder on the chip."""

import math
import random
import unittest

import paths
import capra
import ga2_isa
import tiny_lm
from comparing import assert_same
from tiny_lm import D, HID, V


def attention_by_loops(m, tokens):
    """The logits after the last of `tokens`, element by element, straight from the formulas."""
    x = [m["E"][token] for token in tokens]
    q, k, v = ([[math.fsum(row[i] * m[name][i][j] for i in range(D)) for j in range(D)]
                for row in x] for name in ("Wq", "Wk", "Wv"))
    last = len(tokens) - 1
    scores = [math.fsum(q[last][i] * key[i] for i in range(D)) / math.sqrt(D) for key in k]
    weights = [math.exp(score) for score in scores]
    a = [math.fsum(w * row[j] for w, row in zip(weights, v)) / math.fsum(weights) for j in range(D)]
    h = [x[last][j] + math.fsum(a[i] * m["Wo"][i][j] for i in range(D)) for j in range(D)]
    hidden = [max(0, math.fsum(h[i] * m["W1"][i][j] for i in range(D))) for j in range(HID)]
    y = [h[j] + math.fsum(hidden[i] * m["W2"][i][j] for i in range(HID)) for j in range(D)]
    return [math.fsum(y[i] * m["Wout"][i][j] for i in range(D)) for j in range(V)]


class ModelTests(unittest.TestCase):

    def test_the_structured_embedding_is_a_hadamard_matrix_over_4(self):
        E = tiny_lm.make_model()["E"]
        self.assertEqual({abs(value) for row in E for value in row}, {0.25})
        for i in range(V):
            for j in range(V):
                product = math.fsum(p * q for p, q in zip(E[i], E[j]))
                self.assertEqual(product, 1.0 if i == j else 0.0)

    def test_the_rule_visits_every_token(self):
        token = 0
        seen = set()
        for _ in range(V):
            seen.add(token)
            token = tiny_lm.f_next(token)
        self.assertEqual((len(seen), token), (V, 0))
        self.assertEqual([tiny_lm.f_next(t) for t in (0, 1, 2, 15)], [3, 8, 13, 14])

    def test_the_structured_output_matrix_points_at_the_next_token(self):
        m = tiny_lm.make_model()
        for t in range(V):
            logits = [math.fsum(m["E"][t][i] * m["Wout"][i][j] for i in range(D)) for j in range(V)]
            self.assertEqual(logits, [8.0 if j == (5 * t + 3) % 16 else 0.0 for j in range(V)])

    def test_random_matrices_are_drawn_row_by_row_in_order(self):
        m = tiny_lm.make_model("random", seed=5)
        R = random.Random(5)
        order = (("E", V, D, 1.0), ("Wout", D, V, 0.25), ("Wq", D, D, 0.25), ("Wk", D, D, 0.25),
                 ("Wv", D, D, 0.25), ("Wo", D, D, 0.25), ("W1", D, HID, 0.25),
                 ("W2", HID, D, 1 / math.sqrt(HID)))
        for name, rows, columns, sd in order:
            drawn = [[R.gauss(0, sd) for _ in range(columns)] for _ in range(rows)]
            if name == "E":
                drawn = [[value / 4 for value in row] for row in drawn]
            assert_same(self, m[name], drawn, name)

    def test_the_noise_of_the_structured_model_is_045_and_drawn_from_seed_1(self):
        m = tiny_lm.make_model()
        R = random.Random(1)
        drawn = [[R.gauss(0, 0.45 / 4) for _ in range(D)] for _ in range(D)]
        self.assertEqual(m["Wq"], drawn)
        self.assertEqual(m, tiny_lm.make_model("structured", 1, 0.45))

    def test_there_are_2304_weight_words(self):
        m = tiny_lm.make_model()
        self.assertEqual(sum(len(m[name]) * len(m[name][0]) for name in tiny_lm.MATRICES), 2304)

    def test_an_unknown_kind_is_refused(self):
        with self.assertRaises(ValueError) as caught:
            tiny_lm.make_model("learned")
        self.assertEqual(str(caught.exception), "make_model: kind 'learned' is unknown; it is "
                                                "'structured' or 'random'")


class FloatTests(unittest.TestCase):

    def test_a_step_is_the_formula(self):
        m = tiny_lm.make_model("random", 3)
        tokens = [4, 4, 15, 0, 9]
        kc, vc = [], []
        for position, token in enumerate(tokens):
            logits, k, v, _ = tiny_lm.float_step(m, token, kc, vc)
            kc, vc = kc + [k], vc + [v]
            for got, wanted in zip(logits, attention_by_loops(m, tokens[:position + 1])):
                self.assertAlmostEqual(got, wanted, delta=1e-12)

    def test_a_step_leaves_the_cache_alone(self):
        m = tiny_lm.make_model("random", 3)
        _, k, v, _ = tiny_lm.float_step(m, 1, [], [])
        kc, vc = [list(k)], [list(v)]
        tiny_lm.float_step(m, 2, kc, vc)
        self.assertEqual((kc, vc), ([k], [v]))

    def test_generation_is_greedy_and_starts_with_the_start(self):
        m = tiny_lm.make_model("random", 1)
        # The chapter's example A prints these tokens of random model 1.
        self.assertEqual(tiny_lm.float_generate(m, 0, 13),
                         [0, 5, 3, 13, 9, 1, 11, 11, 11, 11, 11, 11, 11, 11])
        self.assertEqual(tiny_lm.float_generate(m, 6, 0), [6])

    def test_the_first_of_equal_logits_is_chosen(self):
        self.assertEqual(tiny_lm.argmax([1.0, 3.0, 3.0, 2.0]), 1)

    def test_the_structured_model_follows_its_rule(self):
        m = tiny_lm.make_model()
        for start in range(V):
            run = tiny_lm.float_generate(m, start, 40)
            self.assertEqual(run[1:], [(5 * token + 3) % 16 for token in run[:-1]])


class ChipTests(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.model = tiny_lm.make_model("random", 1)
        cls.chip = tiny_lm.Chip(cls.model, 8, starts=range(0, V, 5))

    def test_calibration_covers_every_length_and_start(self):
        self.assertEqual(list(self.chip.calib), list(range(1, 9)))
        for L, samples in self.chip.calib.items():
            self.assertEqual(len(samples), 4)
            for sample in samples:
                self.assertEqual(len(sample["x"]), 1)
                self.assertEqual(len(sample.get("kc", ())), L - 1)

    def test_ranges_are_the_largest_values_of_the_runs(self):
        largest = {"x": 0.0, "k": 0.0, "v": 0.0}
        for start in range(0, V, 5):
            for token in tiny_lm.float_generate(self.model, start, 8)[:8]:
                x = self.model["E"][token]
                for tag, row in (("x", x),
                                 ("k", [math.fsum(x[i] * self.model["Wk"][i][j] for i in range(D))
                                        for j in range(D)]),
                                 ("v", [math.fsum(x[i] * self.model["Wv"][i][j] for i in range(D))
                                        for j in range(D)])):
                    largest[tag] = max([largest[tag]] + [abs(value) for value in row])
        for tag, value in largest.items():
            self.assertAlmostEqual(self.chip.ranges[tag], value, delta=1e-12)

    def test_records_hold_what_was_run(self):
        tokens, records = self.chip.generate(0, 6)
        self.assertEqual(len(tokens), 7)
        self.assertEqual([record["L"] for record in records], [1, 2, 3, 4, 5, 6])
        self.assertEqual([record["tok"] for record in records], tokens[1:])
        for record in records:
            self.assertEqual(len(record["ext"]), ga2_isa.EXT)
            after = ga2_isa.Machine(record["ext"]).run(record["code"]).ext
            entry = self.chip.program(record["L"]).ext["tok"]
            self.assertEqual(after[entry["addr"]], record["tok"])
            self.assertEqual(record["logits"].index(max(record["logits"])), record["tok"])

    def test_the_chip_is_near_floating_point(self):
        tokens, records = self.chip.generate(0, 6)
        kc, vc = [], []
        for token, record in zip(tokens, records):
            P = self.chip.program(record["L"])
            for name, rows in (("kc", kc), ("vc", vc)) if kc else ():
                entry = P.ext[name]
                for i, value in enumerate(value for row in rows for value in row):
                    held = record["ext"][entry["addr"] + i] * P.scale[entry["node"]]
                    self.assertAlmostEqual(held, value, delta=0.1 * self.chip.ranges[name[0]])
            logits, k, v, _ = tiny_lm.float_step(self.model, token, kc, vc)
            kc, vc = kc + [k], vc + [v]
            worst = max(abs(p - q) for p, q in zip(logits, record["logits"]))
            self.assertLess(worst, 0.1 * max(abs(value) for value in logits))

    def test_a_program_is_compiled_once(self):
        self.assertIs(self.chip.program(3), self.chip.program(3))

    def test_a_context_beyond_the_calibration_is_refused(self):
        with self.assertRaises(capra.CompileError) as caught:
            self.chip.program(9)
        self.assertEqual(str(caught.exception), "context 9: this chip was calibrated for 1 to 8 "
                                                "tokens; make it with more steps")

    def test_a_context_beyond_the_chip_is_refused(self):
        with self.assertRaises(capra.CompileError) as caught:
            tiny_lm.build_graph(self.model, 65)
        self.assertEqual(str(caught.exception),
                         "token 65: its attention would sum over 65 rows of values; the chip "
                         "multiplies at most 64 (end the run at 64 tokens)")

    def test_a_start_that_is_no_token_is_refused(self):
        for start in (16, -1, 3.0, "3", True, None):
            for generate in (self.chip.generate,
                             lambda start, n: tiny_lm.float_generate(self.model, start, n)):
                with self.assertRaises(ValueError) as caught:
                    generate(start, 2)
                self.assertEqual(str(caught.exception),
                                 f"start {start!r} is not a token; tokens are 0 to 15")

    def test_a_calibration_on_nothing_or_from_what_is_no_token_is_refused(self):
        for steps, starts, message in (
                (-1, (0,), "steps = -1 must be an integer, 0 or more"),
                (2, (), "there is no start to calibrate on; give at least one token"),
                (2, (1, True), "start True is not a token; tokens are 0 to 15")):
            with self.assertRaises(ValueError) as caught:
                tiny_lm.Chip(self.model, steps, starts)
            self.assertEqual(str(caught.exception), message)

    def test_a_number_of_tokens_that_is_no_count_is_refused(self):
        for n in (-1, 2.0, True, "2"):
            for generate in (self.chip.generate,
                             lambda start, n: tiny_lm.float_generate(self.model, start, n)):
                with self.assertRaises(ValueError) as caught:
                    generate(0, n)
                self.assertEqual(str(caught.exception), f"n = {n!r} must be an integer, 0 or more")

    def test_no_tokens_are_no_programs(self):
        self.assertEqual(self.chip.generate(7, 0), ([7], []))


class Models(unittest.TestCase):
    """One check of a model, wherever one comes in."""

    def refused(self, message, change):
        mdl = tiny_lm.make_model("random", 1)
        change(mdl)
        for use in (lambda: tiny_lm.float_generate(mdl, 0, 1), lambda: tiny_lm.Chip(mdl, 1)):
            with self.assertRaises(ValueError) as caught:
                use()
            self.assertEqual(str(caught.exception), message)

    def test_a_matrix_that_is_missing(self):
        for name in tiny_lm.SHAPES:
            self.refused(f"the model has no matrix {name}; it takes E, Wq, Wk, Wv, Wo, W1, W2, "
                         "Wout", lambda mdl: mdl.pop(name))

    def test_a_matrix_of_another_shape(self):
        for array in ([[0.0] * 16] * 15, [[0.0] * 15] * 16, [[0.0] * 16] * 15 + [[0.0]], [], 5,
                      None, "W2", [[]] * 16):
            self.refused("matrix Wo of the model must be 16 rows of 16 numbers",
                         lambda mdl: mdl.update(Wo=array))

    def test_an_entry_that_is_no_finite_number(self):
        for value in (math.nan, math.inf, "0.5", None, 10 ** 400):
            def put(mdl):
                mdl["W1"][3][7] = value
            self.refused(f"matrix W1 of the model holds {value!r:.40}; every entry must be a "
                         "finite number", put)


if __name__ == "__main__":
    unittest.main()
