"""Faster on the same chip: the chapter's decoder with three better programs, each an option.

    batched  the verifier multiplies all query rows at once instead of one after the other
    table    the draft answers for all 16 tokens in one program; the host looks the answers up
    clip     a block guesses no further than the tokens still wanted

The chapter's verifier takes each query row by itself, so every tile of four keys is staged m times
and three of the array's four rows idle. Batched, the scores of all rows are one product, the
causal rule is a softmax over each row's own prefix, and the results are one product again:

    S = Q K^T       m x (c + m)
    P = causal_softmax(S, c + 1): row i is a softmax over columns 0 .. c + i, exactly 0 behind
    attn = P V      m x D

Same numbers bit for bit: row i's scores and its softmax are those of the chapter's slice, and a
zero adds nothing to an integer sum. So the reasons in exact_lm hold unchanged (exact_proof_tests
proves them for these programs, too), and with them its result: the tokens are those of `plain`, for
every draft.

c cached rows, m = k + 1 rows of the block, n tokens wanted, V tokens, D columns, as in spec_lm.
"""

import math

import capra
from exact_lm import ExactChip
from ga2_isa import K_MAX, cycle_counts
from policy_lm import clipped, fixed
from spec_lm import build_verify, count_block, new_stats, one_block
from tiny_lm import (D, V, append_to_cache, check_context, check_count, check_token, feed_forward,
                     outputs, project)


# ---- the programs --------------------------------------------------------------------------------

def build_batched(m, c, mdl):
    """The target on a block of m rows behind c cached rows, its attention in two products.

    Inputs as build_verify's; outputs tok (m x 1), logits (m x V), k_new, v_new (m x D), as a plain
    step's: attn, which only the chapter's tests read, is not stored.
    """
    check_context(c + m)
    g = capra.Graph()
    W, x, q, k_new, v_new = project(g, mdl, m)
    keys, values = append_to_cache(g, c, k_new, v_new)
    scores = g.matmul(q, keys, transpose_b=True, scale=1 / math.sqrt(D))
    attn = g.tag(g.matmul(g.causal_softmax(scores, c + 1), values), "attn")
    outputs(g, feed_forward(g, W, x, attn), k_new, v_new)
    return g


def build_draft_table(Wd):
    """The bigram draft for all tokens: x (V x D) times Wd (D x V); output tok (V x 1)."""
    g = capra.Graph()
    logits = g.matmul(g.input("x", (V, D)), g.weight("Wd", Wd))
    g.output(g.argmax(logits), "tok")
    return g


def compile_draft_table(mdl, Wd):
    """The table's program, its scales those of the draft's own program on the whole vocabulary."""
    return capra.compile_graph(build_draft_table(Wd), [{"x": mdl["E"]}])


# ---- the host loop -------------------------------------------------------------------------------

def decode(start, n, verify, next_block):
    """(tokens, stats) as spec_lm.speculate, its guesses chosen anew for each block.

    next_block(tokens) -> (k, draft): how many guesses the block makes, and who makes them.
    """
    check_token("start", start)
    check_count("n", n)
    tokens = [start]
    kc, vc = [], []
    stats = new_stats()
    while len(tokens) <= n:
        k, draft = next_block(tokens)
        guesses, accepted, new, k_rows, v_rows = one_block(tokens[-1], k, kc, vc, verify, draft)
        tokens = tokens + new
        kc, vc = kc + k_rows, vc + v_rows
        count_block(stats, len(guesses), accepted, len(new), len(kc))
    return tokens[:n + 1], stats


def unweighed(n, policy, draft_after):
    """next_block for a draft that states no chances: it makes as many guesses as are asked for.

    policy: as in policy_lm; draft_after(tokens) -> the draft for the block behind `tokens`.
    """
    return lambda tokens: (policy(n + 1 - len(tokens), (), 0), draft_after(tokens))


def guess_block(last, k, draft):
    """The block of the last token and the draft's k guesses behind it."""
    block = [last]
    for _ in range(k):
        block.append(draft(block[-1]))
    return block


# ---- the chip ------------------------------------------------------------------------------------

class FastChip(ExactChip):
    """The host loop on the chip with one scale plan and the options above.

    Arguments as ExactChip's.
    """

    def __init__(self, mdl, Wd, n, k, starts=range(V), share=None, batched=True, table=True,
                 clip=True):
        super().__init__(mdl, Wd, n, k, starts, share)
        self.batched = batched
        self.table = table
        self.clip = clip

    def _vprog(self, c, mm):
        """The verifier program for mm rows behind c cached ones.

        Raises CompileError naming the tokens where the chip has no room for the block.
        """
        check_context(c + mm)
        build = build_batched if self.batched else build_verify
        try:
            return self.plan.program(build, mm, c)
        except capra.CompileError as error:
            raise capra.CompileError(f"tokens {c + 1} to {c + mm}: {error} (guess fewer than "
                                     f"{mm - 1} in this block)") from None

    def cost(self, c, m):
        """Cycles of the verifier for m rows behind c cached ones."""
        return cycle_counts(self._vprog(c, m).code)[0]

    def generate(self, start, n):
        """(tokens, stats, log) as SpecChip.generate; with `table` the log starts with its program.

        Raises CompileError, before any work, where n is past the chip's limit.
        """
        check_count("n", n)
        check_context(min(n, K_MAX + 1))
        self.log = []
        tokens, stats = decode(start, n, self.verify, self.next_block(n))
        return tokens, stats, self.log

    def next_block(self, n):
        """A new next_block, for `decode`, of a run of n tokens."""
        policy = clipped(self.k) if self.clip else fixed(self.k)
        return unweighed(n, policy, self.drafts())

    def drafts(self):
        """For a run: draft_after(tokens) -> the draft for the block behind `tokens`."""
        draft = self.draft_table().__getitem__ if self.table else self.draft
        return lambda tokens: draft

    def draft_table(self):
        """[the draft's guess after each token], from one program on the chip."""
        P = compile_draft_table(self.m, self.Wd)
        ext = capra.ext_image(P, {"x": self.m["E"]})
        self.log.append({"kind": "table", "code": P.code, "ext": ext})
        return [row[0] for row in capra.run_image(P, ext)["tok"][0]]
