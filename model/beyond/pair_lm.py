"""A draft that sees the last two tokens: a bigram matrix for each token before the last.

The target's own runs are counted in triples (before, last, next). Where a pair was met seldom or
never the bigram speaks: its probabilities count as PRIOR more observations,

    p(next | before, last) = (count + PRIOR * p(next | last)) / (total + PRIOR)

so that an unknown pair has the bigram's answer. Each token before the last then has a matrix W of
its own, found as the bigram's is, E W = L. A guess is the chapter's draft program with that matrix
loaded, at the same cost; 16 such matrices are the 256 entries.

What runs where: counting and solving is done on the host, once per target, as for the chapter's
bigram. The chip computes x W and takes the argmax. A host that may keep 256 small integers needs
no chip for that: the program stands for a draft that is a network.
"""

import math

import capra
from fast_lm import FastChip
from spec_lm import DRAFT_RUN, bigram_table, build_draft, solve
from tiny_lm import V, float_generate

PRIOR = 1                                       # observations that the bigram counts for


def pair_tables(mdl):
    """{before: L}, L[t][j] = 4 ln(V p(j | before, t)), V x V; before None: the bigram's."""
    bigram = bigram_table(mdl)
    count = [[[0] * V for _ in range(V)] for _ in range(V)]
    for start in range(V):
        run = float_generate(mdl, start, DRAFT_RUN)
        for before, t, j in zip(run, run[1:], run[2:]):
            count[before][t][j] += 1
    tables = {before: [blend(*rows) for rows in zip(count[before], bigram)]
              for before in range(V)}
    tables[None] = bigram                       # behind the first token, which has none before it
    return tables


def blend(counts, logits):
    """The logits of a row of counts, with the bigram's row of logits as PRIOR observations."""
    total = sum(counts) + PRIOR
    return [4 * math.log((V * number + PRIOR * math.exp(logit / 4)) / total)
            for number, logit in zip(counts, logits)]


def make_pair_draft(mdl):
    """{before: Wd (D x V)}: a draft's matrix for each token before the last, None where none is."""
    return {before: solve(mdl["E"], L) for before, L in pair_tables(mdl).items()}


class PairChip(FastChip):
    """FastChip with the two-token draft; the host keeps a run's answers and asks for none twice.

    `matrices`: as of make_pair_draft, to which it defaults.
    """

    def __init__(self, mdl, n, k, starts=range(V), share=None, matrices=None):
        self.matrices = matrices or make_pair_draft(mdl)
        super().__init__(mdl, self.matrices[None], n, k, starts, share)
        self.draft_programs = {}

    def drafts(self):
        """draft_after(tokens) -> a draft that knows the token before the first it is asked."""
        answers = {}

        def draft_after(tokens):
            before = tokens[-2] if len(tokens) > 1 else None

            def draft(tok):
                nonlocal before
                if (before, tok) not in answers:
                    answers[before, tok] = self.ask(before, tok)
                guess = answers[before, tok]
                before = tok
                return guess

            return draft

        return draft_after

    def ask(self, before, tok):
        """The guess after the tokens `before`, `tok`, from the chip."""
        P = self.draft_program(before)
        ext = capra.ext_image(P, {"x": [self.m["E"][tok]]})
        self.log.append({"kind": "draft", "code": P.code, "ext": ext, "before": before,
                         "last": tok})
        return capra.run_image(P, ext)["tok"][0][0][0]

    def draft_program(self, before):
        """The draft's program with the matrix for `before`, compiled once."""
        if before not in self.draft_programs:
            self.draft_programs[before] = capra.compile_graph(
                build_draft(self.matrices[before]), [{"x": [row]} for row in self.m["E"]])
        return self.draft_programs[before]
