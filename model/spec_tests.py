"""Tests of spec_lm: five checks, each able to fail (tools/mut_ch16.py breaks spec_lm and looks).

check_all() -> a list of problems, empty when all is well. The checks, in the chapter's order:

1. block_equals_steps      the masked block is the single step, one token at a time
2. exact_in_floating_point the tokens are the target's for every draft, and the books balance
3. causal_on_the_chip      a row's integers do not depend on the rows behind it
4. verifier_means_it       the compiled verifier is its interpretation, and near floating point
5. rule_through_the_chip   the host loop on the chip follows the rule; a perfect draft is accepted
"""

import random
import unittest

import capra
import spec_lm
from capra_graph import mv
from capra_scales import largest
from tiny_lm import V, argmax, f_next, float_generate, float_step, make_model, step_inputs

SHARP_CACHE = (3, 8, 1, 12)
SHARP_BLOCK = (1, 2, 3, 4)
SHARP_SAMPLES = 40


def check_all():
    """The problems of all five checks, as sentences."""
    return [problem for check in CHECKS for problem in check()]


# ---- 1 -------------------------------------------------------------------------------------------

def block_equals_steps():
    """float_block equals float_step one token at a time, to 1e-9."""
    for seed in (1, 2, 3):
        mdl = make_model("random", seed)
        kc, vc = float_cache(mdl, (3, 8, 1, 12))
        for m in (1, 2, 4, 5):
            toks = [(5 * seed + 3 * i) % V for i in range(m)]
            blocks = spec_lm.float_block(mdl, toks, kc, vc)
            steps = float_steps(mdl, toks, kc, vc)
            for name, block, step in zip(("logits", "k", "v"), blocks, steps):
                worst = distance(block, step)
                if worst > 1e-9:
                    yield (f"block_equals_steps: random model {seed}, {m} rows: {name} differ by "
                           f"{worst:.2g}")


def float_steps(mdl, toks, kc, vc):
    """(logits, k, v) rows of single steps over `toks`, behind the cache."""
    rows = ([], [], [])
    for tok in toks:
        step = float_step(mdl, tok, kc, vc)
        kc, vc = kc + [step[1]], vc + [step[2]]
        for column, row in zip(rows, step):
            column.append(row)
    return rows


def float_cache(mdl, toks):
    """(kc, vc) after the tokens `toks`, in floating point."""
    _, k, v = float_steps(mdl, toks, [], [])
    return k, v


def distance(A, B):
    """The largest difference of two matrices; infinite where their shapes differ."""
    if [len(row) for row in A] != [len(row) for row in B]:
        return float("inf")
    return max(abs(p - q) for rows in zip(A, B) for p, q in zip(*rows))


# ---- 2 -------------------------------------------------------------------------------------------

def exact_in_floating_point():
    """Tokens equal the plain ones for every draft, and the books balance."""
    models = {"random 1": make_model("random", 1), "random 2": make_model("random", 2),
              "structured": make_model()}
    for name, mdl in models.items():
        plain = float_generate(mdl, 5, 20)
        verify = spec_lm.float_verify(mdl)
        for draft_name, draft in drafts(mdl):
            for k in (1, 2, 3, 5):
                where = f"exact_in_floating_point: {name}, k = {k}, draft {draft_name}"
                tokens, stats, _ = spec_lm.speculate(mdl, None, 5, 20, k, verify, draft)
                if tokens != plain:
                    yield f"{where}: tokens {tokens}, not {plain}"
                for fault in unbalanced(stats, 20, k):
                    yield f"{where}: {fault} does not hold in {stats}"


def drafts(mdl):
    """(name, draft) of good and bad drafts for `mdl`."""
    R = random.Random(7)
    yield "random tokens", lambda tok: R.randrange(V)
    yield "always 7", lambda tok: 7
    for noise in (0, 3, 100):
        Wd = spec_lm.make_draft(mdl, noise, seed=1)
        guess = [spec_lm.draft_next(mdl, Wd, tok) for tok in range(V)]
        yield f"bigram with noise {noise}", guess.__getitem__


def unbalanced(stats, n, k):
    """The rules of bookkeeping that the statistics of n tokens with k guesses a block break."""
    blocks, proposed, accepted, emitted, cache = (
        stats[name] for name in ("blocks", "proposed", "accepted", "emitted", "cache"))
    rules = {
        "accepted <= proposed": accepted <= proposed,
        "proposed = blocks * k": proposed == blocks * k,
        "emitted = accepted + blocks": emitted == accepted + blocks,
        "cache = emitted": cache == emitted,
        "n <= blocks * (k + 1)": n <= blocks * (k + 1),
        "blocks <= n": blocks <= n,
    }
    return [rule for rule, holds in rules.items() if not holds]


# ---- 3 and 4: a model with sharp attention -------------------------------------------------------

def sharp_model():
    """Random model 2 with Wq and Wk four times as large.

    Its attention picks few rows, so that a row seen or missed shows.
    """
    mdl = make_model("random", 2)
    for name in ("Wq", "Wk"):
        mdl[name] = [[4 * value for value in row] for row in mdl[name]]
    return mdl


def sharp_verifier(mdl):
    """The verifier for 4 rows behind 4, calibrated on 40 random prefixes and blocks of 4 tokens."""
    R = random.Random(9)
    calib = []
    for _ in range(SHARP_SAMPLES):
        prefix = [R.randrange(V) for _ in range(4)]
        block = [R.randrange(V) for _ in range(4)]
        calib.append(block_inputs(mdl, block, *float_cache(mdl, prefix)))
    return capra.compile_graph(spec_lm.build_verify(4, 4, mdl), calib)


def block_inputs(mdl, toks, kc, vc):
    """The verifier's inputs for the block `toks` behind a cache."""
    return step_inputs([mdl["E"][tok] for tok in toks], kc, vc)


def sharp_logits(mdl, P, block):
    """The verifier's integer logits (4 x V) for a block behind the cache SHARP_CACHE."""
    kc, vc = float_cache(mdl, SHARP_CACHE)
    return capra.run(P, block_inputs(mdl, block, kc, vc))["logits"][0]


def causal_on_the_chip():
    """In integers: changing a token changes its row and later ones, never an earlier one."""
    mdl = sharp_model()
    P = sharp_verifier(mdl)
    before = sharp_logits(mdl, P, SHARP_BLOCK)
    for position, token, must_change in ((3, 12, (3,)), (2, 9, (2, 3)), (0, 5, (0, 1, 2, 3))):
        block = list(SHARP_BLOCK)
        block[position] = token
        after = sharp_logits(mdl, P, block)
        where = f"causal_on_the_chip: token {position} of the block changed from " \
                f"{SHARP_BLOCK[position]} to {token}"
        for row in range(position):
            if after[row] != before[row]:
                yield f"{where}: row {row} changed, which must not see it"
        for row in must_change:
            if after[row] == before[row]:
                yield f"{where}: row {row} did not change, though it sees it"


def verifier_means_it():
    """The compiled verifier equals the interpreter; it is near floating point."""
    mdl = sharp_model()
    P = sharp_verifier(mdl)
    kc, vc = float_cache(mdl, SHARP_CACHE)
    inputs = block_inputs(mdl, SHARP_BLOCK, kc, vc)
    out = capra.run(P, inputs)
    meant = capra.interpret(P, inputs)
    for name, (ints, _) in out.items():
        if ints != meant[P.ext[name]["node"]]:
            yield f"verifier_means_it: output {name} differs from the interpreter's"

    logits, k, v = float_steps(mdl, SHARP_BLOCK, kc, vc)
    attn = [parts["attn"] for parts in step_parts(mdl, SHARP_BLOCK, kc, vc)]
    aux = {}
    spec_lm.float_block(mdl, SHARP_BLOCK, kc, vc, aux)
    if distance(aux["attn"], attn) > 1e-9:
        yield "verifier_means_it: float_block's attention rows differ from float_step's"
    for name, real, bound in (("logits", logits, 0.15), ("attn", attn, 0.12), ("k_new", k, 0.12),
                              ("v_new", v, 0.12)):
        error = distance(out[name][1], real) / largest(real)
        if error > bound:
            yield (f"verifier_means_it: {name} is off floating point by {100 * error:.1f} %, more "
                   f"than {100 * bound:.0f} %")


def step_parts(mdl, toks, kc, vc):
    """The parts of single steps over `toks`, behind the cache."""
    for tok in toks:
        _, k, v, parts = float_step(mdl, tok, kc, vc)
        kc, vc = kc + [k], vc + [v]
        yield parts


# ---- 5 -------------------------------------------------------------------------------------------

def rule_through_the_chip():
    """16 tokens of the structured model through the chip's loop follow the rule for every draft."""
    mdl = make_model()
    start, n = 0, 16
    for noise in (0, 3, 12):
        Wd = spec_lm.make_draft(mdl, noise, seed=1)
        for k in (1, 2, 4):
            where = f"rule_through_the_chip: k = {k}, noise {noise}"
            chip = spec_lm.SpecChip(mdl, Wd, n, k, starts=(start,))
            tokens, stats, _ = chip.generate(start, n)
            if tokens[0] != start or len(tokens) != n + 1:
                yield f"{where}: {tokens} are not {n} tokens after {start}"
            for before, after in zip(tokens, tokens[1:]):
                if after != f_next(before):
                    yield f"{where}: {after} after {before}; the rule says {f_next(before)}"
            for fault in unbalanced(stats, n, k):
                yield f"{where}: {fault} does not hold in {stats}"
            if noise == 0 and stats["accepted"] != stats["proposed"]:
                yield f"{where}: of a perfect draft's guesses some were refused: {stats}"
        for tok in range(V):
            guess = argmax(mv(mdl["E"][tok], Wd))
            if chip.draft(tok) != guess:
                yield (f"rule_through_the_chip: noise {noise}: the draft's program guesses "
                       f"{chip.draft(tok)} after {tok}, in floating point it is {guess}")


CHECKS = (block_equals_steps, exact_in_floating_point, causal_on_the_chip, verifier_means_it,
          rule_through_the_chip)


class SpecTests(unittest.TestCase):
    """check_all() by parts."""

    def test_the_masked_block_is_the_single_step(self):
        self.assertEqual(list(block_equals_steps()), [])

    def test_tokens_are_the_targets_for_every_draft_in_floating_point(self):
        self.assertEqual(list(exact_in_floating_point()), [])

    def test_no_row_depends_on_a_later_row_on_the_chip(self):
        self.assertEqual(list(causal_on_the_chip()), [])

    def test_the_compiled_verifier_is_its_interpretation_and_near_floating_point(self):
        self.assertEqual(list(verifier_means_it()), [])

    def test_the_chips_loop_follows_the_rule_and_a_perfect_draft_is_accepted(self):
        self.assertEqual(list(rule_through_the_chip()), [])


if __name__ == "__main__":
    unittest.main()
