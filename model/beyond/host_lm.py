"""Drafts on the host: no program and no cycles on the chip, and a chance for each guess.

`HostChip` is the decoder for any of them. `TableChip` is a table of the last one or two tokens: the
counts of the target's own runs in floating point, and on top of them, HEARD-fold, of the run being
decoded, since its int8 tokens and its start are what counts here. A guess is the likeliest token,
its chance the probability that the table gives it,

    p_0(j) = 1 / V
    p_o(j) = (count of j behind the last o tokens + PRIORS[o] p_(o-1)(j)) / (their sum + PRIORS[o])

for o up to `order`: 1 is an adaptive bigram, 2 the two-token table of pair_lm (256 rows of small
integers). Where a pair was never met the bigram speaks.
"""

from capra import CompileError
from exact_lm import shared_plan
from fast_lm import FastChip
from policy_lm import follow, planned, prices
from spec_lm import DRAFT_RUN
from tiny_lm import V, check_count, check_starts, float_generate

HEARD = 3                                       # times that a token of the run counts
PRIORS = {1: 0.1 * V, 2: 1.0}                   # observations that the next lower order counts for
LATER = 0.9                                     # chance of guesses in later blocks


class HostChip(FastChip):
    """The batched decoder with a draft on the host and a planned k; `k` is the most it may choose.

    Arguments as ExactChip's, without a draft matrix. A subclass has `ahead()`: a new draft for a
    run, as in policy_lm.
    """

    def __init__(self, mdl, n, k, starts=range(V), share=None):
        check_starts(starts)
        check_count("n", n)
        check_count("k", k)
        self.m = mdl
        self.k = k
        self.batched = True
        self.plan = shared_plan(mdl, n, starts, share)
        self.log = []

    def next_block(self, n):
        return follow(n, self.policy(n), self.ahead())

    def policy(self, n):
        """Planned, but no more guesses than k, nor than the scratchpad has room for."""
        choose = planned(n, prices(self.cost))

        def policy(wanted, chances, later):
            k = choose(wanted, chances[:self.k], later)
            while not self.fits(n - wanted, k + 1):
                k -= 1
            return k

        return policy

    def fits(self, c, m):
        """Whether the scratchpad has room for m rows behind c cached ones; one row always fits."""
        try:
            return m == 1 or self._vprog(c, m) is not None
        except CompileError:
            return False


class TableChip(HostChip):
    """The table above; `fit`: the starts of the floating-point runs it is counted from, or ()."""

    def __init__(self, mdl, n, k, starts=range(V), share=None, order=2, fit=range(V)):
        super().__init__(mdl, n, k, starts, share)
        check_order(order)
        self.order = order
        self.counts = count_runs(fit_runs(mdl, fit), order)

    def ahead(self):
        return table(self.counts, self.order)


def check_order(order):
    """Raise ValueError unless a table looks at one or two tokens."""
    if order not in PRIORS:
        raise ValueError(f"order = {order!r}: a table looks at 1 or 2 tokens")


def fit_runs(mdl, fit):
    """The target's runs of DRAFT_RUN tokens from starts `fit`, in floating point."""
    return [float_generate(mdl, start, DRAFT_RUN) for start in fit]


def count_runs(runs, order):
    """{last tokens: {next: count}} for the last 1 .. order tokens, in `runs`."""
    counts = {}
    for run in runs:
        for i in range(1, len(run)):
            count(counts, run[:i], run[i], order, 1)
    return counts


def count(counts, past, token, order, times):
    """Count `token` behind the last 1 .. order tokens of `past`."""
    for size in range(1, min(order, len(past)) + 1):
        row = counts.setdefault(tuple(past[-size:]), {})
        row[token] = row.get(token, 0) + times


def table(fitted, order):
    """ahead(tokens, most) of the table for one run; `fitted`, of count_runs, is not changed."""
    counts = {last: dict(row) for last, row in fitted.items()}
    known = 1

    def ahead(tokens, most):
        nonlocal known
        for i in range(known, len(tokens)):
            count(counts, tokens[:i], tokens[i], order, HEARD)
        known = len(tokens)
        tokens = list(tokens)
        guesses = []
        for _ in range(most):
            p = probabilities(counts, tokens, order)
            guesses.append((p.index(max(p)), max(p)))
            tokens.append(guesses[-1][0])
        return guesses, LATER

    return ahead


def probabilities(counts, past, order):
    """[p(j) of each token j] behind `past`."""
    p = [1 / V] * V
    for size in range(1, min(order, len(past)) + 1):
        row = counts.get(tuple(past[-size:]), {})
        prior = PRIORS[size]
        total = sum(row.values()) + prior
        p = [(row.get(j, 0) + prior * share) / total for j, share in enumerate(p)]
    return p
