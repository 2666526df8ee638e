"""Exact in int8, for every input: one scale plan for all program shapes.

The chapter calibrates each program shape on its own, so the verifier's tensors have other scales
than the single step's, and rounding may choose another token. Here every tensor of the step has
one range, measured once over plain float runs, and every shape is compiled with those ranges.

Why the tokens then are the plain chip's own, for every draft, k and start:

1. Same constants. A scale is the range of a tag / 127 (of a sum: the largest of its own range and
   its operands'), fixed by the chip beside a softmax, or a weight's own largest value / 127: none
   depends on the shape (m, c). Requantizers are ratios of scales. So all programs of a model
   hold the same int8 weights and the same (mantissa, shift) at each tensor.
2. Same integers per row. Each instruction computes a row of its result from one row of its first
   operand and from what all rows share:
       MM       sums int8 products in int32, exactly (64 * 127 * 127 < 2**31), so tiles and their
                order do not matter; C's row i reads A's row i and the shared B
       RQ, VADD word by word
       SM, AMAX row by row
   In the attention, B is the keys or values: row i takes the first c + i + 1 of them, in a view.
   Those are the rows a single step at that position would find in its cache, by 3.
3. Same cache. A key or value row leaves the chip as integers q, is kept as the float q * s, and
   comes back as round(q * s / s) = q, since the scale s of k_new is that of kc (one tag), and two
   roundings of a float are far too small to reach q + 1/2. Row i of a block is computed from the
   token at its position and the rows before it, whichever program computes it.
4. Induction over positions. If the tokens so far are the plain ones, then so are the integers of
   row 0, hence its logits and its choice (AMAX: the first largest, the same words). A guess is
   kept only where it equals that choice, so row 1 then stands for the plain next token, and so
   on; the rows behind the first refused guess are dropped, cache included.

Nothing here asks how good the plan is: with bad ranges the tokens are bad, and still the plain
ones. What would break it: a tensor whose range depends on the shape (leave a tag out of the
plan), an operation that mixes rows (a normalisation over the block), a sum that rounds (int32
overflow, floats), a cache kept with other scales than it was made with.

Points 1 to 3 need not be believed: exact_proof runs every program on symbols and compares.
exact_lm_tests holds them against numbers, and 4 against runs; holed_lm takes each tag out of the
plan, to see it missed.
"""

import capra
import spec_lm
import tiny_lm
from capra_scales import largest
from tiny_lm import V, argmax, check_count, check_model, check_starts, float_step


def position_ranges(mdl, steps, starts=range(V)):
    """[{tag: largest absolute value}] at each position of plain float runs of `steps` tokens.

    The tags are those of build_graph and build_verify: every tensor of a step except the scores and
    their softmax, whose scales the chip fixes. Raises ValueError where there is nothing to run.
    """
    check_model(mdl)
    check_starts(starts)
    check_count("steps", steps)
    if steps == 0:
        raise ValueError("steps = 0: a scale plan is measured on runs of at least one token")
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


class Plan:
    """One scale plan for all programs of a model, and the programs, each compiled once.

    `m` is the model, `ranges` the plan {tag: range} from plain runs of `steps` tokens from
    `starts`; programs: {(build, shape ..): program}, so that what differs is never mixed up.
    """

    def __init__(self, mdl, steps, starts=range(V)):
        self.m = mdl
        self.ranges = scale_plan(mdl, steps, starts)
        self.programs = {}

    def program(self, build, *shape):
        """The program of the graph build(*shape, mdl), its scales those of the plan."""
        key = (build, *shape)
        if key not in self.programs:
            self.programs[key] = capra.compile_graph(build(*shape, self.m), (), ranges=self.ranges)
        return self.programs[key]

    def step(self, L):
        """The plain step with L tokens in context."""
        return self.program(build_step, L)


def build_step(L, mdl):
    """tiny_lm.build_graph, its arguments in the order that Plan.program wants."""
    return tiny_lm.build_graph(mdl, L)


class ExactChip(spec_lm.SpecChip):
    """The host loop on the chip with one scale plan: tokens are those of `.plain`, always.

    Arguments as SpecChip's; the plan comes from plain runs of n tokens from `starts`. The programs
    depend neither on the draft nor on k: `share`, another chip under a plan for the same model,
    lends its plan. A block must end within the chip's 64 tokens, as all do with n + k up to 64, and
    fit its scratchpad, as up to 11 rows do.
    Raises ValueError where `share` is of another model.
    """

    def __init__(self, mdl, Wd, n, k, starts=range(V), share=None):
        check_starts(starts)
        check_count("n", n)
        check_count("k", k)
        self.m = mdl
        self.Wd = Wd
        self.k = k
        self.plan = shared_plan(mdl, n, starts, share)
        self.dprog = spec_lm.compile_draft(mdl, Wd)
        self.log = []

    def _vprog(self, c, mm):
        return self.plan.program(spec_lm.build_verify, mm, c)

    def plain(self, start, n):
        """(tokens, records) of plain decoding under the same plan, as Chip.generate."""
        return tiny_lm.decode(self.m, self.plan.step, start, n)


def shared_plan(mdl, n, starts, share):
    """The plan of the chip `share`; without one, a new plan from runs of n tokens from `starts`."""
    if share is None:
        return Plan(mdl, max(n, 1), starts)
    if share.m != mdl:
        raise ValueError("share is a chip of another model; its programs hold other weights")
    return share.plan
