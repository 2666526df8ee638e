"""Tests of sampling: the law by enumeration, the tokens by seeds, the rows on symbols.

Its parts, each of which returns its problems:

1. check_law       both rules' laws of short runs, enumerated, equal plain sampling's: difference 0
2. check_blocks    the same for blocks of made-up weights, with few tokens and every small sum
3. check_seeded    with rule "seeded" tokens and weights of a seed are plain sampling's
4. check_rows      on symbols: each row of a block has the weights of the plain step
5. check_weights   a step's weights are near the softmax of its floating-point logits over T
"""

import math
import random
import unittest
from fractions import Fraction

import paths
import chance
import exact_proof
import sample_law
import sample_lm
import tiny_lm
from sample_lm import SampleChip

SAMPLES = (1000, 10000, 100000)                 # of the chi-square test beside the law
LEVEL = 2.326                                   # normal quantile of its 1 % level


# ---- 1: the law ----------------------------------------------------------------------------------

def drafts(mdl, temperature):
    """{name: Wd}: the fitted bigram, one that contradicts it, one with zeros, the target's own."""
    fitted = sample_lm.fit_draft(mdl, temperature)
    return {"fitted": fitted,
            "hostile": [[-value for value in row] for row in fitted],
            "with zeros": [[9 * value for value in row] for row in fitted]}


def make_chip(rule, k, temperature, draft, target="random 1", n=3, likeliest=False):
    kind, _, seed = target.partition(" ")
    mdl = tiny_lm.make_model(kind, int(seed or 1))
    chip = SampleChip(mdl, drafts(mdl, temperature)[draft], n, k, temperature, rule,
                      likeliest=likeliest)
    chip.table = chip.weight_table()
    return chip


LAWS = (                                        # rule, k, T, draft, start, tokens, likeliest
    ("rejection", 2, 0.15, "fitted", 0, 3, False),
    ("rejection", 2, 0.15, "hostile", 0, 3, False),
    ("rejection", 1, 0.3, "with zeros", 5, 2, False),
    ("rejection", 2, 0.15, "fitted", 3, 3, True),
    ("seeded", 1, 0.08, "fitted", 0, 3, False),
    ("seeded", 1, 0.15, "hostile", 9, 2, False),
)


def check_law(cases=LAWS):
    """What enumeration gives for a run, less what plain sampling gives."""
    for rule, k, temperature, draft, start, n, likeliest in cases:
        chip = make_chip(rule, k, temperature, draft, likeliest=likeliest)
        found = sample_law.law(chip, start, n)
        plain = sample_law.plain_law(chip, start, n)
        if found != plain:
            yield f"{rule}, {draft}: {compare(found, plain)}"


def compare(found, plain):
    """How far two laws are apart, and what a chi-square test would say."""
    return (f"total variation {float(sample_law.variation(found, plain)):.2g}; "
            f"{chi_square(found, plain)}")


def chi_square(found, plain):
    """Which numbers of samples a chi-square test needs to tell `found` from `plain`, at 1 %."""
    R = random.Random(1)
    runs = list(found)
    shares = [float(found[run]) for run in runs]
    told = []
    for count in SAMPLES:
        drawn = {}
        for run in R.choices(runs, shares, k=count):
            drawn[run] = drawn.get(run, 0) + 1
        if statistic(drawn, plain, count):
            told.append(f"{count}")
    return f"chi-square sees it at {', '.join(told)}" if told else "chi-square never sees it"


def statistic(drawn, plain, count):
    """Whether the samples are beyond the 1 % level; runs expected under 5 times are one bin."""
    bins = [(drawn.get(run, 0), float(share) * count) for run, share in plain.items()]
    rare = [pair for pair in bins if pair[1] < 5]
    bins = [pair for pair in bins if pair[1] >= 5]
    odd = count - sum(number for number, _ in bins)
    expected = math.fsum(share for _, share in rare)
    if expected >= 1:
        bins.append((odd, expected))
    elif odd > 10:
        return True
    freedom = len(bins) - 1
    if freedom < 1:
        return False
    value = math.fsum((number - share) ** 2 / share for number, share in bins)
    third = 2 / (9 * freedom)                   # Wilson and Hilferty's cube root
    return value > freedom * (1 - third + LEVEL * math.sqrt(third)) ** 3


# ---- 2: blocks of made-up weights ----------------------------------------------------------------

class MadeUp(SampleChip):
    """A chip without a chip: small weights that depend on the tokens in front, made by a seed."""

    def __init__(self, seed, rule, k, likeliest):
        self.seed, self.rule, self.k, self.likeliest = seed, rule, k, likeliest
        self.table = [self.weights("draft", token) for token in range(tiny_lm.V)]

    def weights(self, *key):
        R = random.Random(str((self.seed, key)))
        few = [R.choice((0, 1, 1, 2, 5)) for _ in range(3)]
        if not any(few):
            few[0] = 1
        return few + [0] * (tiny_lm.V - len(few))

    def plain_weights(self, tokens):
        return self.weights(*tokens)

    def block_weights(self, tokens, guesses):
        return [self.weights(*tokens, *guesses[:i]) for i in range(len(guesses) + 1)]


def check_blocks(seeds=range(6)):
    """Laws of runs of 4 tokens with up to 3 guesses, over 3 tokens: zeros in either's weights."""
    for seed in seeds:
        for rule, k, likeliest in (("rejection", 3, False), ("rejection", 2, True),
                                   ("seeded", 2, False), ("seeded", 3, True)):
            chip = MadeUp(seed, rule, k, likeliest)
            n = 4 if k == 3 else 3
            found, plain = sample_law.law(chip, 0, n), sample_law.plain_law(chip, 0, n)
            if found != plain:
                yield f"made-up weights {seed}, {rule}, k = {k}: {compare(found, plain)}"


# ---- 3: the tokens of a seed ---------------------------------------------------------------------

def check_seeded(cases=tuple(range(16)), n=10):
    """With rule "seeded", tokens and the weights of kept rows are plain sampling's."""
    plans = {}
    for case in cases:
        R = random.Random(case)
        target = R.choice(("random 1", "random 2", "structured"))
        temperature = R.choice((0.3, 0.15, 0.08))
        k, draft, likeliest = R.randint(0, 4), R.choice(("fitted", "hostile")), R.random() < 0.3
        if (target, temperature) not in plans:
            plans[target, temperature] = make_chip("seeded", 1, temperature, "fitted", target, n)
        share = plans[target, temperature]
        Wd = share.Wd if draft == "fitted" else [[-value for value in row] for row in share.Wd]
        chip = SampleChip(share.m, Wd, n, k, temperature, share=share, likeliest=likeliest)
        start, seed = R.randrange(tiny_lm.V), R.randrange(1000)
        plain, records = chip.plain(start, n, seed)
        tokens, stats, log = chip.generate(start, n, seed)
        if tokens != plain:
            yield f"case {case}: tokens {tokens}, plain sampling says {plain}"
        rows = {}
        for entry in log:
            if entry["kind"] == "verify":
                rows.update({entry["c"] + i: row for i, row in enumerate(entry["weights"])})
        for position, record in enumerate(records):
            if rows[position] != record["weights"][0]:
                yield f"case {case}: other weights at position {position}"


# ---- 4: on symbols -------------------------------------------------------------------------------

def check_rows(shapes=((0, 1), (0, 4), (3, 2), (5, 4), (12, 8))):
    """Each row of a sampler's block has the terms of the plain step at its position."""
    chip = make_chip("seeded", 1, 0.15, "fitted", n=20)
    return exact_proof.unproved(chip, shapes, 20, lambda L: chip._vprog(L - 1, 1),
                                ("weights", "k_new", "v_new"))


# ---- 5: near floating point ----------------------------------------------------------------------

def check_weights(temperatures=(0.3, 0.15, 0.08), bound=0.25):
    """Along a floating-point run, the mean total variation from the real distribution."""
    for temperature in temperatures:
        chip = make_chip("seeded", 1, temperature, "fitted", n=8)
        tokens = tiny_lm.float_generate(chip.m, 0, 8)
        kc, vc = [], []
        away = []
        for i, token in enumerate(tokens[:8]):
            logits, k, v, _ = tiny_lm.float_step(chip.m, token, kc, vc)
            kc, vc = kc + [k], vc + [v]
            weights = chip.plain_weights(tokens[:i + 1])
            exact = [math.exp((logit - max(logits)) / temperature) for logit in logits]
            away.append(sum(abs(w / sum(weights) - p / sum(exact))
                            for w, p in zip(weights, exact)) / 2)
        if sum(away) / len(away) > bound:
            yield f"T = {temperature}: {sum(away) / len(away):.3f} from floating point"


# ---- the tests -----------------------------------------------------------------------------------

class Laws(unittest.TestCase):
    def test_the_law_is_plain_samplings(self):
        self.assertEqual(list(check_law()), [])

    def test_it_is_for_any_weights(self):
        self.assertEqual(list(check_blocks()), [])

    def test_plain_law_is_the_product_of_the_steps_shares(self):
        chip = MadeUp(1, "seeded", 1, False)
        law = sample_law.plain_law(chip, 0, 2)
        one, two = chip.weights(0), {t: chip.weights(0, t) for t in range(3)}
        for (_, a, b), share in law.items():
            self.assertEqual(share, Fraction(one[a], sum(one)) * Fraction(two[a][b], sum(two[a])))
        self.assertEqual(sum(law.values()), 1)

    def test_thrown_again_darts_have_the_counted_law(self):
        """`sample_law.again` against all darts of a small board."""
        first, second, heights = [3, 0, 2], [1, 2, 2], 4
        board = [(token, height) for token in range(3) for height in range(heights)]
        lands = [[token if height < weights[token] else None for token, height in board]
                 for weights in (first, second)]
        for token in (0, 2):
            # The first dart that either board takes decides; the other's darts go on afresh.
            joint = dict.fromkeys(range(3), Fraction(0))
            either = [pair for pair in zip(*lands) if pair != (None, None)]
            for one, two in either:
                for other in range(3):
                    share = Fraction(1, len(either))
                    share *= Fraction(first[token], 5) if one is None else int(one == token)
                    share *= Fraction(second[other], 5) if two is None else int(two == other)
                    joint[other] += share
            known = Fraction(first[token], 5)
            self.assertEqual(sample_law.again(second, first, token),
                             [(other, share / known) for other, share in joint.items()])

    def test_the_test_statistic_sees_a_coin_that_is_not_fair(self):
        fair = {(0,): Fraction(1, 2), (1,): Fraction(1, 2)}
        bent = {(0,): Fraction(9, 16), (1,): Fraction(7, 16)}
        self.assertEqual(chi_square(fair, fair), "chi-square never sees it")
        self.assertIn("100000", chi_square(bent, fair))


class Seeds(unittest.TestCase):
    def test_the_tokens_of_a_seed_are_plain_samplings(self):
        self.assertEqual(list(check_seeded()), [])

    def test_another_seed_gives_other_tokens(self):
        chip = make_chip("seeded", 3, 0.3, "fitted", n=12)
        self.assertEqual(len({tuple(chip.generate(0, 12, seed)[0]) for seed in range(6)}), 6)

    def test_with_rejection_they_are_not_and_nobody_says_so(self):
        chip = make_chip("rejection", 3, 0.3, "fitted", n=12)
        self.assertNotEqual(chip.generate(0, 12, 1)[0], chip.plain(0, 12, 1)[0])

    def test_every_row_has_the_plain_steps_terms(self):
        self.assertEqual(check_rows(), [])

    def test_the_weights_are_those_of_the_temperature(self):
        self.assertEqual(list(check_weights()), [])

    def test_stats_add_up_and_nothing_is_guessed_past_the_end(self):
        for rule in sample_lm.RULES:
            chip = make_chip(rule, 4, 0.15, "fitted", n=9)
            tokens, stats, log = chip.generate(2, 9, 5)
            self.assertEqual(stats["emitted"], stats["accepted"] + stats["blocks"])
            self.assertEqual((stats["emitted"], stats["cache"], len(tokens)), (9, 9, 10))
            self.assertEqual([entry["kind"] for entry in log][0], "table")
        self.assertEqual(chip.generate(2, 0, 5)[0], [2])


class Refusals(unittest.TestCase):
    def setUp(self):
        self.mdl = tiny_lm.make_model("random")
        self.Wd = [[0.0] * tiny_lm.V for _ in range(tiny_lm.D)]

    def refused(self, words, *arguments, **options):
        with self.assertRaises(ValueError) as caught:
            SampleChip(self.mdl, self.Wd, *arguments, **options)
        self.assertRegex(str(caught.exception), words)

    def test_a_temperature_that_is_none(self):
        for bad in (0, -1, math.nan, math.inf, "1", None):
            self.refused(f"^temperature {bad!r} must be a finite number above 0$", 4, 1, bad)

    def test_a_temperature_at_which_everything_saturates(self):
        self.refused("^temperature 1e-06 is too low: every logit but 0 would saturate the softmax; "
                     r"give more than 0\.00\d+$", 4, 1, 1e-6)

    def test_a_rule_a_seed_a_start_and_a_count_that_are_none(self):
        self.refused("^rule 'best' must be one of seeded, rejection$", 4, 1, 0.3, "best")
        self.refused("k", 4, -1, 0.3)
        self.refused("n", -1, 1, 0.3)
        chip = SampleChip(self.mdl, self.Wd, 4, 1, 0.3, starts=(0,))
        for run in (chip.plain, chip.generate):
            for start, n, seed in ((16, 4, 1), (0, -1, 1), (0, 4, 1.5)):
                with self.assertRaises(ValueError):
                    run(start, n, seed)

    def test_a_draft_that_gives_its_own_guess_no_weight(self):
        w = [1] * 16
        with self.assertRaises(ValueError) as caught:
            sample_lm.rejection(1, [3], [w, w], [[1] * 3 + [0] * 13], chance.Seeded(1))
        self.assertEqual(str(caught.exception),
                         "the draft guessed token 3 and gives it weight 0; a guess must be drawn "
                         "from the draft's weights")


class Draft(unittest.TestCase):
    def test_the_chips_softmax_of_the_fitted_draft_is_the_fitted_distribution(self):
        """Within int8's error: the mean over all rows of the total variation."""
        mdl = tiny_lm.make_model("random")
        chip = make_chip("seeded", 1, 0.15, "fitted")
        away = []
        for token, words in enumerate(chip.table):
            row = [sum(mdl["E"][token][d] * chip.Wd[d][j] for d in range(tiny_lm.D)) / 0.15
                   for j in range(tiny_lm.V)]
            top = max(row)
            real = [math.exp(value - top) for value in row]
            away.append(sum(abs(word / sum(words) - value / sum(real))
                            for word, value in zip(words, real)) / 2)
        self.assertLess(sum(away) / len(away), 0.1)
        self.assertGreater(min(map(max, chip.table)), 8000)     # and they do prefer some tokens


if __name__ == "__main__":
    unittest.main()
