"""Tests of speculate: faults that real implementations of speculative decoding had.

spec_tests holds the chapter's five checks. Here the target is scripted: its choice is a formula of
all tokens it was given, and its cache rows say which token they belong to, so that a dropped,
doubled or stale row shows at once. The draft is scripted, too: it agrees for exactly as many
guesses as a test asks for, block by block.

failures() runs these tests for tools/mut_ch16.py.
"""

import math
import random
import unittest
from collections import Counter

import paths
import spec_lm
from comparing import assert_same
from exact_lm import ExactChip
from tiny_lm import V, float_generate, make_model


def choose(history):
    """The scripted target's token after `history`: each token counts, and so does its place."""
    return sum((3 * i + 1) * (token + 1) for i, token in enumerate(history)) % V


def plain(start, n):
    """[start, n more] of the scripted target."""
    tokens = [start]
    while len(tokens) <= n:
        tokens.append(choose(tokens))
    return tokens


class Target:
    """The scripted target; a cache row is [its token], negated in the values."""

    def __init__(self):
        self.caches = []                        # tokens in the cache, at each block
        self.blocks = []

    def verify(self, c, toks, kc, vc):
        history = [row[0] for row in kc]
        assert c == len(kc) and vc == [[-token] for token in history], (c, kc, vc)
        self.caches.append(history)
        self.blocks.append(list(toks))
        choice = [choose(history + toks[:i + 1]) for i in range(len(toks))]
        return choice, [[token] for token in toks], [[-token] for token in toks]


class Draft:
    """Agrees with the scripted target on the first agree[b] guesses of block b, on no other."""

    def __init__(self, start, k, agree):
        self.k = k
        self.agree = list(agree)
        self.tokens = [start]                   # what the target has put out so far
        self.guesses = []
        self.asked = []                         # the token each guess was asked after

    def guess(self, tok):
        self.asked.append(tok)
        right = choose(self.tokens + self.guesses)
        agree = self.agree[0]
        self.guesses.append(right if len(self.guesses) < agree else (right + 1) % V)
        guess = self.guesses[-1]
        if len(self.guesses) == self.k:         # the block is full: the target's turn
            self.agree.pop(0)
            self.tokens += self.guesses[:agree]
            self.tokens.append(choose(self.tokens))
            self.guesses = []
        return guess


def play(agree, k, start=5, n=None):
    """(tokens, stats, calls, target, draft) of blocks with agree[b] of k guesses accepted."""
    target = Target()
    draft = Draft(start, k, agree)
    n = sum(agree) + len(agree) if n is None else n
    tokens, stats, calls = spec_lm.speculate(None, None, start, n, k, target.verify, draft.guess)
    return tokens, stats, calls, target, draft


def books(blocks, proposed, accepted):
    """The statistics that belong to these three counts."""
    emitted = accepted + blocks
    return {"blocks": blocks, "proposed": proposed, "accepted": accepted, "emitted": emitted,
            "cache": emitted}


def perfect(n, k):
    """What play returns for a draft that agrees always, n tokens asked for."""
    return play([k] * (n + 1), k, n=n)


class Acceptance(unittest.TestCase):
    def test_any_number_of_guesses_is_accepted_two_blocks_running(self):
        for k in range(1, 6):
            for one in range(k + 1):
                for two in range(k + 1):
                    tokens, stats, _, target, _ = play([one, two], k)
                    where = f"{one} then {two} of {k}"
                    self.assertEqual(tokens, plain(5, one + two + 2), where)
                    self.assertEqual(stats, books(2, 2 * k, one + two), where)

    def test_a_long_run_of_mixed_blocks_is_the_targets_own(self):
        R = random.Random(3)
        for k in (1, 2, 4):
            agree = [R.randrange(k + 1) for _ in range(30)]
            tokens, stats, _, _, _ = play(agree, k)
            self.assertEqual(tokens, plain(5, sum(agree) + 30))
            self.assertEqual(stats["accepted"], sum(agree))

    def test_guesses_behind_a_refused_one_are_not_accepted(self):
        # the second and third guess are what the target would choose, had the first been right
        first = choose([5])
        wrong = (first + 1) % V
        second = choose([5, wrong])
        guesses = iter([wrong, second, choose([5, wrong, second])])
        tokens, stats, _ = spec_lm.speculate(None, None, 5, 1, 3, Target().verify,
                                             lambda tok: next(guesses))
        self.assertEqual((tokens, stats["accepted"], stats["emitted"]), ([5, first], 0, 1))

    def test_the_first_block_of_the_random_model_by_hand(self):
        # guesses 5, 3, 13 after 0, as in the chapter's trace: all accepted, and 9 comes free
        mdl = make_model("random", 1)
        guesses = iter([5, 3, 13])
        tokens, stats, _ = spec_lm.speculate(mdl, None, 0, 4, 3, spec_lm.float_verify(mdl),
                                             lambda tok: next(guesses))
        self.assertEqual(tokens, [0, 5, 3, 13, 9])
        self.assertEqual((stats["blocks"], stats["accepted"]), (1, 3))


class Ties(unittest.TestCase):
    """Two equal largest logits: the first counts, in floating point and on the chip."""

    def model(self):
        mdl = make_model()
        for row in mdl["Wout"]:
            row[9] = row[3]
            row[12] = row[3]
        return mdl

    def test_the_target_takes_the_first_largest(self):
        start = 0                               # the rule's next token after 0 is 3
        choice, _, _ = spec_lm.float_verify(self.model())(0, [start], [], [])
        self.assertEqual(choice, [3])
        self.assertEqual(float_generate(self.model(), start, 1), [0, 3])

    def test_the_draft_takes_the_first_largest(self):
        self.assertEqual(spec_lm.draft_next(make_model(), [[0.0] * V] * V, 7), 0)

    def test_the_chip_takes_the_first_largest(self):
        mdl = self.model()
        Wd = [[row[3] if j in (3, 9) else 0.0 for j in range(V)] for row in mdl["Wout"]]
        chip = spec_lm.SpecChip(mdl, Wd, 1, 1, starts=(0,))
        self.assertEqual(chip.generate(0, 1)[0], [0, 3])
        self.assertEqual(chip.draft(0), 3)


class Amount(unittest.TestCase):
    """As many tokens as asked for, in as few blocks as possible."""

    def test_never_more_or_fewer_tokens_than_asked_for(self):
        for k in range(6):
            for n in range(14):
                self.assertEqual(perfect(n, k)[0], plain(5, n), f"n = {n}, k = {k}")
                self.assertEqual(play([0] * (n + 1), k, n=n)[0], plain(5, n), f"n = {n}, k = {k}")

    def test_a_perfect_draft_needs_the_fewest_passes(self):
        for k in range(6):
            for n in range(30):
                _, stats, calls, _, _ = perfect(n, k)
                fewest = math.ceil(n / (k + 1))
                passes = [call for call in calls if call[0] == "verify"]
                self.assertEqual((stats["blocks"], len(passes)), (fewest, fewest), f"{n}, {k}")

    def test_a_draft_that_is_always_wrong_costs_a_pass_a_token(self):
        _, stats, _, _, _ = play([0] * 8, 3, n=7)
        self.assertEqual((stats["blocks"], stats["accepted"]), (7, 0))

    def test_more_guesses_than_tokens_left(self):
        tokens, stats, calls, _, _ = perfect(2, 5)
        self.assertEqual(tokens, plain(5, 2))
        self.assertEqual(stats, books(blocks=1, proposed=5, accepted=5))
        self.assertEqual(calls, [("draft",)] * 5 + [("verify", 0, 6)])

    def test_no_guesses_is_plain_decoding(self):
        tokens, stats, calls, _, _ = play([0] * 4, 0)
        self.assertEqual(tokens, plain(5, 4))
        self.assertEqual(stats, books(blocks=4, proposed=0, accepted=0))
        self.assertEqual(calls, [("verify", c, 1) for c in range(4)])

    def test_no_tokens_asked_for_is_no_work(self):
        self.assertEqual(play([], 3, n=0)[:3], ([5], books(0, 0, 0), []))

    def test_a_block_shape_that_calibration_never_met_is_noted(self):
        mdl = make_model()
        chip = spec_lm.SpecChip(mdl, spec_lm.make_draft(mdl, 0), 4, 1, starts=(0,))
        def notes(c, m):
            return [note for note in chip._vprog(c, m).notes if note.startswith("no calibration")]
        self.assertEqual(notes(2, 2), [])
        self.assertEqual(notes(3, 2), [
            "no calibration run met 2 rows behind 3 cached ones: calibrated on plain runs of 5 "
            "tokens from 1 starts"])

    def test_no_tokens_asked_for_on_the_chip(self):
        mdl = make_model()
        chip = spec_lm.SpecChip(mdl, spec_lm.make_draft(mdl, 0), 0, 3, starts=(0,))
        chip.generate(0, 1)                     # whose log ends with it
        tokens, stats, log = chip.generate(0, 0)
        self.assertEqual((tokens, stats["blocks"], log, spec_lm.cycles_of(log)), ([0], 0, [], 0))


class Rounds(unittest.TestCase):
    """What target and draft are given, in every block and not only in the first."""

    def test_the_cache_holds_every_token_but_the_last(self):
        agree = [2, 0, 3, 1, 3, 0, 0, 2]
        _, _, _, target, _ = play(agree, 3)
        tokens = plain(5, 40)
        done = 0
        for block, accepted in enumerate(agree):
            self.assertEqual(target.caches[block], tokens[:done], f"block {block}")
            self.assertEqual(target.blocks[block][0], tokens[done], f"block {block}")
            done += accepted + 1

    def test_each_guess_is_asked_after_the_one_before(self):
        _, _, _, target, draft = play([3, 0, 2, 3, 1], 3)
        fed = [token for block in target.blocks for token in block[:-1]]
        self.assertEqual(draft.asked, fed)

    def test_acceptance_does_not_decay(self):
        _, stats, _, target, _ = perfect(200, 4)
        self.assertEqual(stats["accepted"], stats["proposed"])
        self.assertEqual([len(cache) for cache in target.caches], list(range(0, 200, 5)))

    def test_calls_are_listed_in_order(self):
        _, _, calls, _, _ = play([1, 2, 0], 2)
        guesses = [("draft",), ("draft",)]
        self.assertEqual(calls, guesses + [("verify", 0, 3)] + guesses + [("verify", 2, 3)]
                         + guesses + [("verify", 5, 3)])

    def test_counts_by_hand(self):
        _, stats, _, _, _ = play([3, 0, 2], 3)
        self.assertEqual(stats, {"blocks": 3, "proposed": 9, "accepted": 5, "emitted": 8,
                                 "cache": 8})


class Refusals(unittest.TestCase):
    def refused(self, message, *arguments, **more):
        with self.assertRaises(ValueError) as caught:
            spec_lm.speculate(None, None, *arguments, Target().verify, **more)
        self.assertEqual(str(caught.exception), message)

    def test_a_draft_outside_the_vocabulary(self):
        for token in (16, -1, None, True, 3.0):
            self.refused(f"the draft's guess {token} is not a token; tokens are 0 to 15", 5, 4, 2,
                         draft=lambda tok: token)

    def test_a_start_outside_the_vocabulary(self):
        for start in (16, -1, True, 3.0):
            self.refused(f"start {start} is not a token; tokens are 0 to 15", start, 4, 2,
                         draft=lambda tok: 0)

    def test_a_verify_that_answers_for_too_few_rows(self):
        for cut in range(3):
            def short(c, toks, kc, vc):
                answer = list(Target().verify(c, toks, kc, vc))
                answer[cut] = answer[cut][:2]
                return answer
            sizes = [2 if part == cut else 3 for part in range(3)]
            with self.assertRaises(ValueError) as caught:
                spec_lm.speculate(None, None, 5, 4, 2, short, lambda tok: 0)
            self.assertEqual(str(caught.exception), f"verify gave {sizes} choices, k rows and v "
                                                    "rows for 3 rows; it must give one of each a "
                                                    "row")

    def test_a_verify_outside_the_vocabulary(self):
        for token in (-1, 16, True):
            def wrong(c, toks, kc, vc):
                return [token] * len(toks), [[0]] * len(toks), [[0]] * len(toks)
            with self.assertRaises(ValueError) as caught:
                spec_lm.speculate(None, None, 5, 4, 2, wrong, lambda tok: 0)
            self.assertEqual(str(caught.exception),
                             f"verify's choice {token} is not a token; tokens are 0 to 15")

    def test_numbers_that_are_no_count(self):
        for count in (2.0, -1, True, "4", None):
            self.refused(f"n = {count!r} must be an integer, 0 or more", 5, count, 2)
            self.refused(f"k = {count!r} must be an integer, 0 or more", 5, 4, count)

    def test_a_chip_without_a_start_or_from_what_is_no_token(self):
        mdl = make_model()
        Wd = spec_lm.make_draft(mdl, 0)
        for starts, message in (((), "there is no start to calibrate on; give at least one token"),
                                ((1, 16), "start 16 is not a token; tokens are 0 to 15")):
            with self.assertRaises(ValueError) as caught:
                spec_lm.SpecChip(mdl, Wd, 4, 1, starts)
            self.assertEqual(str(caught.exception), message)

    def test_a_draft_that_is_no_matrix(self):
        shape = "matrix Wd of the draft must be 16 rows of 16 numbers"
        entry = "matrix Wd of the draft holds {!r:.40}; every entry must be a finite number"
        for Wd, message in ((None, shape), (5, shape), ([[1.0] * 16] * 3, shape),
                            ([[1.0] * 3] * 16, shape), ([["a"] * 16] * 16, entry.format("a")),
                            ([[math.inf] * 16] * 16, entry.format(math.inf))):
            for chip in (spec_lm.SpecChip, ExactChip):
                with self.assertRaises(ValueError) as caught:
                    chip(make_model(), Wd, 4, 1)
                self.assertEqual(str(caught.exception), message)

    def test_a_noise_that_is_no_size(self):
        for noise in (math.nan, math.inf, -1, "3", 10 ** 400):
            with self.assertRaises(ValueError) as caught:
                spec_lm.make_draft(make_model(), noise)
            self.assertEqual(str(caught.exception),
                             f"noise = {noise!r} must be a finite number, 0 or more")

    def test_what_is_no_model(self):
        mdl = make_model()
        del mdl["Wo"]
        for refused in (lambda: spec_lm.make_draft(mdl, 0),
                        lambda: spec_lm.SpecChip(mdl, [[0.0] * V] * V, 4, 1)):
            with self.assertRaises(ValueError) as caught:
                refused()
            self.assertEqual(str(caught.exception), "the model has no matrix Wo; it takes E, Wq, "
                                                    "Wk, Wv, Wo, W1, W2, Wout")


class Calibration(unittest.TestCase):
    def test_ranges_are_the_largest_numbers_seen_however_small(self):
        mdl = make_model("random", 1)
        small = {**mdl, "E": [[value / 1000 for value in row] for row in mdl["E"]]}
        chip = spec_lm.SpecChip(small, spec_lm.make_draft(mdl, 0), 3, 1, starts=(0, 5))
        seen = {"x": small["E"], "k": [], "v": []}
        for start in (0, 5):
            run = float_generate(small, start, 3)
            _, k, v = spec_lm.float_block(small, run[:3], [], [])
            seen["k"] += k
            seen["v"] += v
        for tag, rows in seen.items():
            largest = max(abs(value) for row in rows for value in row)
            self.assertGreaterEqual(chip.ranges[tag], largest)
            self.assertLess(chip.ranges[tag], 0.01)

    def test_the_draft_is_calibrated_on_the_tokens_it_was_fed(self):
        mdl = make_model()
        chip = spec_lm.SpecChip(mdl, spec_lm.make_draft(mdl, 0), 4, 1, starts=(0,))
        run = float_generate(mdl, 0, 4)
        self.assertEqual([sample["x"] for sample in chip.dcalib],
                         [[mdl["E"][token]] for token in sorted({run[0], run[2]})])


class DraftTable(unittest.TestCase):
    """A draft cannot change a token, so its quality has to be looked at by itself."""

    def test_the_bigram_draft_knows_how_often_each_token_comes_next(self):
        mdl = make_model("random", 1)
        after = [Counter() for _ in range(V)]
        for start in range(V):
            run = float_generate(mdl, start, 24)
            for before, token in zip(run, run[1:]):
                after[before][token] += 1
        Wd = spec_lm.make_draft(mdl, 0)
        table = spec_lm.bigram_table(mdl)
        for token in range(V):
            guess = spec_lm.draft_next(mdl, Wd, token)
            self.assertEqual(after[token][guess], max(after[token].values()), f"after {token}")
            seen = V / 2 + sum(after[token].values())
            for j, logit in enumerate(table[token]):
                share = (after[token][j] + 0.5) / seen
                self.assertAlmostEqual(logit, 4 * math.log(16 * share), delta=1e-12)

    def test_noise_comes_from_the_seed(self):
        mdl = make_model()
        assert_same(self, spec_lm.make_draft(mdl, 3, 1), spec_lm.make_draft(mdl, 3, 1))
        self.assertNotEqual(spec_lm.make_draft(mdl, 3, 1), spec_lm.make_draft(mdl, 3, 2))

    def test_solve_exchanges_rows_where_the_pivot_is_0(self):
        # A X = B by hand, in numbers that every division leaves exact
        A = [[0.0, 2.0], [4.0, 1.0]]
        X = [[3.0, -0.5], [5.0, 8.0]]
        B = [[10.0, 16.0], [17.0, 6.0]]
        self.assertEqual(spec_lm.solve(A, B), X)

    def test_a_singular_matrix_is_refused(self):
        with self.assertRaises(ValueError) as caught:
            spec_lm.solve([[1.0, 2.0], [2.0, 4.0]], [[1.0], [2.0]])
        self.assertEqual(str(caught.exception), "solve: the matrix is singular (no pivot in "
                         "column 1)")


def failures():
    """"test: what went wrong" of the tests above that fail."""
    result = unittest.TestResult()
    loader = unittest.TestLoader()
    for case in (Acceptance, Ties, Amount, Rounds, Refusals, Calibration, DraftTable):
        loader.loadTestsFromTestCase(case).run(result)
    return [f"{test.id().rpartition('.')[2]}: {error_line(text)}"
            for test, text in result.failures + result.errors]


def error_line(text):
    """The line of a traceback that names the error: the first one behind the indented ones."""
    lines = text.strip().splitlines()
    return next((line for line in lines[1:] if not line.startswith(" ")), lines[-1])


if __name__ == "__main__":
    unittest.main()
