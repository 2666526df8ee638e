"""An adaptive k: how many guesses the next block makes, from what was accepted so far.

The host knows two things: what a block costs, cost(c, m) cycles for m rows behind c cached ones,
and how the draft did: `a` guesses accepted and `r` refused (one in each block that refused any;
those behind it were never looked at).  It takes every guess to be right with one unknown chance,
which from these counts it expects to be

    chance(a, r) = (a + 1/2) / (a + r + 1)                      (Krichevsky and Trofimov, 1981)

With w of n tokens still wanted (so c = n - w), the k to choose is the one with the fewest expected
cycles to the end, what later blocks learn included:

    T(0, a, r) = 0
    T(w, a, r) = min over k < w of cost(n - w, k + 1)
                 + sum over i < k of P(i) * (1 - chance(a + i, r)) * T(w - 1 - i, a + i, r + 1)
                 + P(k) * T(w - 1 - k, a + k, r)
    P(i) = chance(a, r) * chance(a + 1, r) * .. * chance(a + i - 1, r): the first i are right

The row tiles of 4 are in the costs and the end of the run is in w: both shape the choice.

`play` tries a policy on a target whose tokens are known, without a chip: under one scale plan the
tokens do not depend on the draft, so they decide what is accepted.
"""

import math

from capra import CompileError
from fast_lm import FastChip, decode

MOST = 15                                       # guesses in a block: four full row tiles


def chance(a, r):
    """The chance that the next guess is right, after `a` accepted and `r` refused ones."""
    return (a + 0.5) / (a + r + 1)


def planner(n, cost, most=MOST):
    """best(w, a, r) -> (T, k), as above, for runs of n tokens and blocks of at most `most` guesses.

    The smallest k of equals.  Each state is worked out once and kept for the planner's life.
    """
    known = {}

    def best(w, a, r):
        if w == 0:
            return 0.0, 0
        if (w, a, r) not in known:
            known[w, a, r] = min(options(w, a, r))
        return known[w, a, r]

    def options(w, a, r):
        """(expected cycles, k) for every k."""
        refused = 0.0                           # the sum over i < k
        right = 1.0                             # P(k)
        for k in range(min(most, w - 1) + 1):
            yield cost(n - w, k + 1) + refused + right * best(w - 1 - k, a + k, r)[0], k
            now = chance(a + k, r)
            refused += right * (1 - now) * best(w - 1 - k, a + k, r + 1)[0]
            right *= now

    return best


class Adaptive:
    """guesses(wanted, stats) for one run, by a planner's `best`."""

    def __init__(self, best):
        self.best = best
        self.proposed = 0                       # up to the last block seen
        self.accepted = 0
        self.refused = 0

    def __call__(self, wanted, stats):
        self.learn(stats)
        return self.best(wanted, self.accepted, self.refused)[1]

    def learn(self, stats):
        """Take in the block since the last call, if there was one."""
        proposed = stats["proposed"] - self.proposed
        accepted = stats["accepted"] - self.accepted
        self.refused += accepted < proposed
        self.proposed = stats["proposed"]
        self.accepted = stats["accepted"]


class AdaptiveChip(FastChip):
    """FastChip whose k adapts within each run; `k` is the most it may choose."""

    def policy(self, n):
        return Adaptive(planner(n, self.price, self.k))

    def price(self, c, m):
        """The cost of a block; infinite where the chip has no room for it."""
        try:
            return self.cost(c, m)
        except CompileError:
            return math.inf


# ---- without a chip ----------------------------------------------------------------------------

def known_verify(tokens):
    """A verify, for `speculate`, of a target whose tokens from the start on are `tokens`.

    A row behind a wrong guess gets the choice at its position, which nobody looks at; the key and
    value rows are empty.  `tokens` must reach as far as the blocks do.
    """
    def verify(c, toks, kc, vc):
        rows = [[] for _ in toks]
        return tokens[c + 1:c + 1 + len(toks)], rows, rows
    return verify


def play(tokens, n, policy, draft_after, cost):
    """(stats, cycles of the verifier) of n tokens of a known target under a policy.

    policy: guesses(wanted, stats); draft_after(tokens) -> the draft of a block; see FastChip.
    """
    known = known_verify(tokens)
    cycles = 0

    def verify(c, toks, kc, vc):
        nonlocal cycles
        cycles += cost(c, len(toks))
        return known(c, toks, kc, vc)

    def next_block(so_far, stats):
        return policy(n + 1 - len(so_far), stats), draft_after(so_far)

    _, stats = decode(tokens[0], n, verify, next_block)
    return stats, cycles
