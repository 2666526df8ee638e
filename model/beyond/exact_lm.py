"""Exact in int8, for every input: one scale plan for all program shapes.

The chapter calibrates each program shape on its own, so the verifier's tensors have other scales
than the single step's, and rounding may choose another token.  Here every tensor of the step has
one range, measured once over plain float runs, and every shape is compiled with those ranges.

Why the tokens then are the plain chip's own, for every draft, k and start:

1. Same constants.  A scale is the range of a tag / 127 (of a sum: the largest of its own range and
   its operands'), fixed by the chip beside a softmax, or a weight's own largest value / 127: none
   depends on the shape (m, c).  Requantizers are ratios of scales.  So all programs of a model
   hold the same int8 weights and the same (mantissa, shift) at each tensor.
2. Same integers per row.  Each instruction computes a row of its result from one row of its first
   operand and from what all rows share:
       MM       sums int8 products in int32, exactly (64 * 127 * 127 < 2**31), so tiles and their
                order do not matter; C's row i reads A's row i and the shared B
       RQ, VADD word by word
       SM, AMAX row by row
   In the attention, B is the keys or values: row i takes the first c + i + 1 of them, in a view.
   Those are the rows a single step at that position would find in its cache, by 3.
3. Same cache.  A key or value row leaves the chip as integers q, is kept as the float q * s, and
   comes back as round(q * s / s) = q, since the scale s of k_new is that of kc (one tag), and two
   roundings of a float are far too small to reach q + 1/2.  Row i of a block is computed from the
   token at its position and the rows before it, whichever program computes it.
4. Induction over positions.  If the tokens so far are the plain ones, then so are the integers of
   row 0, hence its logits and its choice (AMAX: the first largest, the same words).  A guess is
   kept only where it equals that choice, so row 1 then stands for the plain next token, and so
   on; the rows behind the first refused guess are dropped, cache included.

Nothing here asks how good the plan is: with bad ranges the tokens are bad, and still the plain
ones.  What would break it: a tensor whose range depends on the shape (leave a tag out of the
plan), an operation that mixes rows (a normalisation over the block), a sum that rounds (int32
overflow, floats), a cache kept with other scales than it was made with.

Points 1 to 3 need not be believed: exact_proof runs every program on symbols and compares.
exact_lm_tests holds them against numbers, and 4 against runs, and takes each tag out of the plan to
see it missed.
"""

import capra
import spec_lm
import tiny_lm
from capra_scales import largest
from tiny_lm import V, argmax, float_step


def position_ranges(mdl, steps, starts=range(V)):
    """[{tag: largest absolute value}] at each position of plain float runs of `steps` tokens.

    The tags are those of build_graph and build_verify: every tensor of a step except the scores and
    their softmax, whose scales the chip fixes.  Raises ValueError where there is nothing to run.
    """
    if steps < 1 or not starts:
        raise ValueError(f"a scale plan from {len(starts)} starts and {steps} tokens each: both "
                         "must be 1 or more")
    ranges = [{} for _ in range(steps)]
    for start in starts:
        tok = start
        kc, vc = [], []
        for here in ranges:
            logits, k, v, parts = float_step(mdl, tok, kc, vc)
            for tag, row in parts.items():
                here[tag] = max(here.get(tag, 0.0), largest([row]))
            kc, vc = kc + [k], vc + [v]
            tok = argmax(logits)
    return ranges


def scale_plan(mdl, steps, starts=range(V)):
    """{tag: range} for every shape: the largest over all positions of plain runs.

    A draft may guess any token, so x covers the whole embedding.
    """
    ranges = position_ranges(mdl, steps, starts)
    plan = {tag: max(here[tag] for here in ranges) for tag in ranges[0]}
    plan["x"] = largest(mdl["E"])
    return plan


class PlanChip(tiny_lm.Chip):
    """The plain decoder with the ranges of a plan; any context the chip can hold compiles."""

    def __init__(self, mdl, plan):
        self.model = mdl
        self.ranges = plan
        self.programs = {}

    def compile(self, L):
        return capra.compile_graph(tiny_lm.build_graph(self.model, L), (), ranges=self.ranges)


class ExactChip(spec_lm.SpecChip):
    """The host loop on the chip with one scale plan: tokens are those of `.plain`, always.

    Arguments as SpecChip's; the plan comes from plain runs of n tokens from `starts`.  The
    programs depend neither on the draft nor on k: `share`, another ExactChip of the same model,
    lends its plan and its programs.  A block must end within the chip's 64 tokens, as all do with
    n + k up to 64, and fit its scratchpad, as up to 11 rows do.
    Raises ValueError where `share` is of another model.
    """

    def __init__(self, mdl, Wd, n, k, starts=range(V), share=None):
        if share and share.model != mdl:
            raise ValueError("ExactChip: share is a chip of another model; its programs hold other "
                             "weights")
        self.model = mdl
        self.Wd = Wd
        self.k = k
        self.ranges = share.ranges if share else scale_plan(mdl, max(n, 1), starts)
        self.programs = share.programs if share else {}
        self.plain_chip = share.plain_chip if share else PlanChip(mdl, self.ranges)
        self.dprog = spec_lm.compile_draft(mdl, Wd)
        self.log = []

    def compile(self, c, m):
        return capra.compile_graph(spec_lm.build_verify(m, c, self.model), (), ranges=self.ranges)

    def plain(self, start, n):
        """(tokens, records) of plain decoding under the same plan, as Chip.generate."""
        return self.plain_chip.generate(start, n)
