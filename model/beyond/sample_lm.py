"""Sampling on the chip, exact twice over: the distribution is integers, and so is every choice.

A step ends in the chip's own softmax. Its scores are the logits divided by the temperature T (the
requantizer does it), its raw words are the weights: V integers w_j from 0 to 65536. The
distribution is *defined* as w_j / sum(w); the sum is near 65536 and seldom equal to it.

Rule "seeded": the target's choice at a position is the draw with that position's darts, and a guess
is kept if it equals the choice. A choice is a function of the row's integers, the seed and the
position. The row's integers are the plain step's (exact_lm), so for every seed the tokens are those
of plain sampling with that seed, for every draft, k and start.

Rule "rejection" (Leviathan et al. 2023; Chen et al. 2023), in integers: for target weights w (sum
W) and draft weights u (sum U), guess x is kept with chance min(1, w_x U / (u_x W)); a refused one
is replaced by a draw from max(0, w_j U - u_j W); behind the last guess comes a draw from w. It
keeps more guesses, but only the law is plain sampling's: the tokens of one seed are not.

sample_law counts all outcomes of both. m rows behind c cached ones, V tokens, D columns.
"""

import math

import capra
from capra_graph import is_number, softmax_row
from chance import Seeded, check_weights, darts, draw
from exact_lm import ExactChip, shared_plan
from quant import INT8_MAX
from sample_law import law, plain_law
from spec_lm import count_block, new_stats, solve
from softmax_gold import ONE
from tiny_lm import (D, V, append_to_cache, check_context, check_count, check_model, check_starts,
                     check_token, float_step, last_hidden, project, step_inputs)

__all__ = ["SampleChip", "build_sampler", "build_weight_table", "darts", "draw", "fit_draft", "law",
           "plain_law", "rejection", "residual", "seeded"]

MOST = INT8_MAX / 16                            # the largest score that the softmax unit takes
FIT_RUN = 24                                    # tokens of each run that a draft is fitted to
FIT_SEEDS = range(1000, 1004)                   # of these runs: no seed that is measured
PRIOR = 0.5                                     # of a token in the fitted sums


# ---- the programs --------------------------------------------------------------------------------

def build_sampler(m, c, temperature, mdl):
    """The target on a block of m rows behind c cached rows, ending in the sampler's weights.

    Inputs as build_verify's; outputs weights (m x V, words of 65536), k_new, v_new (m x D).
    """
    check_context(c + m)
    g = capra.Graph()
    W, x, q, k_new, v_new = project(g, mdl, m)
    keys, values = append_to_cache(g, c, k_new, v_new)
    scores = g.matmul(q, keys, transpose_b=True, scale=1 / math.sqrt(D))
    attn = g.tag(g.matmul(g.causal_softmax(scores, c + 1), values), "attn")
    y = last_hidden(g, W, x, attn)
    g.output(g.probabilities(g.matmul(y, W["Wout"], scale=1 / temperature)), "weights")
    g.output(k_new, "k_new")
    g.output(v_new, "v_new")
    return g


def build_weight_table(Wd, temperature):
    """The bigram draft for all tokens: x (V x D) times Wd (D x V) / T; output weights (V x V)."""
    g = capra.Graph()
    scores = g.matmul(g.input("x", (V, D)), g.weight("Wd", Wd), scale=1 / temperature)
    g.output(g.probabilities(scores), "weights")
    return g


# ---- the rules -----------------------------------------------------------------------------------

def seeded(position, guesses, targets, drafts, chance):
    """The new tokens of a block under rule "seeded"; `position` is that of the first guess.

    targets: the target's weights, a row per row of the block; drafts: the draft's, a row per guess.
    """
    new = []
    for i, weights in enumerate(targets):
        new.append(chance.draw(position + i, weights))
        if new[:i + 1] != guesses[:i + 1]:      # a refused guess, or none left to compare with
            break
    return new


def rejection(position, guesses, targets, drafts, chance):
    """The new tokens of a block under rule "rejection"; arguments as of `seeded`.

    Raises ValueError where the draft gives its own guess no weight.
    """
    for i, (guess, w, u) in enumerate(zip(guesses, targets, drafts)):
        if u[guess] == 0:
            raise ValueError(f"the draft guessed token {guess} and gives it weight 0; a guess must "
                             "be drawn from the draft's weights")
        share, whole = w[guess] * sum(u), u[guess] * sum(w)
        if not chance.below(position + i, "accept", share, whole):
            return guesses[:i] + [chance.pick(position + i, "recover", residual(w, u))]
    last = position + len(guesses)
    return guesses + [chance.pick(last, "free", targets[len(guesses)])]


def residual(w, u):
    """What is left of target weights w where draft weights u have been tried: max(0, p - q)."""
    return [max(0, w_j * sum(u) - u_j * sum(w)) for w_j, u_j in zip(w, u)]


RULES = {"seeded": seeded, "rejection": rejection}


# ---- the draft -----------------------------------------------------------------------------------

def fit_draft(mdl, temperature):
    """Wd (D x V) of a bigram of distributions, fitted to sampled floating-point runs.

    q(j | t) is the mean of the target's probabilities after token t. Wd's logits are T ln q, moved
    into the middle of what the scores can hold, so that the chip's softmax of them is q.
    """
    check_model(mdl)
    check_temperature(temperature)
    total = [[PRIOR] * V for _ in range(V)]
    for seed in FIT_SEEDS:
        chance = Seeded(seed)
        for start in range(V):
            tok = start
            kc, vc = [], []
            for position in range(1, FIT_RUN + 1):
                logits, k, v, _ = float_step(mdl, tok, kc, vc)
                kc, vc = kc + [k], vc + [v]
                p = softmax_row([logit / temperature for logit in logits])
                total[tok] = [old + new for old, new in zip(total[tok], p)]
                tok = chance.draw(position, [round(ONE * share) for share in p])
    return solve(mdl["E"], [scores_of(row, temperature) for row in total])


def scores_of(row, temperature):
    """T ln of a row of sums, moved so that its ends are as far above 0 as below, within MOST."""
    logs = [math.log(value) for value in row]
    top = min(MOST, (max(logs) - min(logs)) / 2)
    return [temperature * max(value - max(logs) + top, -MOST) for value in logs]


# ---- the chip ------------------------------------------------------------------------------------

class SampleChip(ExactChip):
    """The sampling host loop on the chip with one scale plan.

    rule: "seeded" or "rejection"; likeliest=True guesses the draft's likeliest token instead of a
    drawn one. Other arguments as ExactChip's; Wd's logits are divided by the temperature, too. A
    block guesses no further than the tokens still wanted.
    Raises ValueError for a rule that is none and for a temperature that is not a positive number or
    so low that one step of the logits already saturates the softmax.
    """

    def __init__(self, mdl, Wd, n, k, temperature, rule="seeded", starts=range(V), share=None,
                 likeliest=False):
        check_temperature(temperature)
        if rule not in RULES:
            raise ValueError(f"rule {rule!r} must be one of {', '.join(RULES)}")
        check_starts(starts)
        check_count("n", n)
        check_count("k", k)
        self.m = mdl
        self.Wd = Wd
        self.k = k
        self.temperature = temperature
        self.rule = rule
        self.likeliest = likeliest
        self.plan = shared_plan(mdl, n, starts, share)
        lowest = self.plan.ranges["logits"] / INT8_MAX / MOST
        if temperature <= lowest:
            raise ValueError(f"temperature {temperature} is too low: every logit but 0 would "
                             f"saturate the softmax; give more than {lowest:.2g}")
        self.table = []                         # the draft's weights after each token
        self.log = []

    def _vprog(self, c, mm):
        return self.plan.program(build_sampler, mm, c, self.temperature)

    # ---- plain sampling ----

    def plain(self, start, n, seed):
        """(tokens, log) of plain sampling; a log entry as of `generate`, its blocks of one row."""
        check_token("start", start)
        check_count("n", n)
        chance = Seeded(seed)
        self.log = []
        tokens = [start]
        kc, vc = [], []
        for position in range(1, n + 1):
            (weights,), k, v = self.run_block(tokens[-1:], kc, vc)
            kc, vc = kc + k, vc + v
            tokens.append(chance.draw(position, weights))
        return tokens, self.log

    def run_block(self, toks, kc, vc):
        """(weights, k rows, v rows) of a block behind the cache, from the chip."""
        c, m = len(kc), len(toks)
        P = self._vprog(c, m)
        ext = capra.ext_image(P, step_inputs([self.m["E"][token] for token in toks], kc, vc))
        out = capra.run_image(P, ext)
        weights = out["weights"][0]
        self.log.append({"kind": "verify", "code": P.code, "ext": ext, "c": c, "m": m,
                         "weights": weights})
        return weights, out["k_new"][1], out["v_new"][1]

    # ---- in blocks ----

    def generate(self, start, n, seed):
        """(tokens, stats, log) as SpecChip.generate, sampled with `seed`.

        A block's log entry has its rows' weights, too.
        """
        check_token("start", start)
        check_count("n", n)
        chance = Seeded(seed)
        self.log = []
        self.table = self.weight_table()
        tokens = [start]
        kc, vc = [], []
        stats = new_stats()
        while len(tokens) <= n:
            k_rows, v_rows = [], []

            def targets(tokens, guesses):
                nonlocal k_rows, v_rows
                weights, k_rows, v_rows = self.run_block(tokens[-1:] + guesses, kc, vc)
                return weights

            new = self.block(tokens, n, chance, targets)
            kc, vc = kc + k_rows[:len(new)], vc + v_rows[:len(new)]
            count_block(stats, len(k_rows) - 1, len(new) - 1, len(new), len(kc))
            tokens = tokens + new
        return tokens[:n + 1], stats, self.log

    def block(self, tokens, n, chance, targets):
        """The new tokens of the block behind `tokens`, n wanted in all.

        targets(tokens, guesses) -> the target's weights for each row of the block.
        """
        position = len(tokens)
        block = tokens[-1:]
        drafts = []
        for i in range(min(self.k, n - position)):
            weights = self.table[block[-1]]
            if self.likeliest:
                guess = weights.index(max(weights))
                weights = [ONE if token == guess else 0 for token in range(V)]
            else:
                guess = self.guess(position + i, weights, chance)
            drafts.append(weights)
            block.append(guess)
        guesses = block[1:]
        return RULES[self.rule](position, guesses, targets(tokens, guesses), drafts, chance)

    def guess(self, position, weights, chance):
        """A guess drawn from the draft's weights: with the target's darts, where these decide."""
        if self.rule == "seeded":
            return chance.draw(position, weights)
        return chance.pick(position, "guess", weights)

    def weight_table(self):
        """[the draft's weights after each token], from one program on the chip."""
        P = capra.compile_graph(build_weight_table(self.Wd, self.temperature), [{"x": self.m["E"]}])
        ext = capra.ext_image(P, {"x": self.m["E"]})
        self.log.append({"kind": "table", "code": P.code, "ext": ext})
        return capra.run_image(P, ext)["weights"][0]

    # ---- what the laws ask ----

    def plain_weights(self, tokens):
        """The weights of the plain step behind `tokens`, start included."""
        return self.cache_behind(tokens)[0]

    def block_weights(self, tokens, guesses):
        """The weights of the block of the last token and `guesses`, a row each."""
        _, kc, vc = self.cache_behind(tokens[:-1])
        return self.run_block([*tokens[-1:], *guesses], kc, vc)[0]

    def cache_behind(self, tokens):
        """(weights, kc, vc) after plain steps over `tokens`."""
        weights, kc, vc = None, [], []
        for token in tokens:
            (weights,), k, v = self.run_block([token], kc, vc)
            kc, vc = kc + k, vc + v
        return weights, kc, vc


def check_temperature(temperature):
    """Raise ValueError unless `temperature` is a positive finite number."""
    if not (is_number(temperature) and temperature > 0):
        raise ValueError(f"temperature {temperature!r} must be a finite number above 0")
