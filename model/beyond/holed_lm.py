"""The decoder with one tag left out of its scale plan: what the plan is for shows where it breaks.

The left-out tensor's range is each program shape's own, as in the chapter: the largest value at the
positions of the shape's rows in plain runs. The study and the tests see each of the tags missed.
"""

import capra
import exact_lm
import spec_lm
from exact_lm import ExactChip, Plan, build_step
from tiny_lm import V

TAGS = ("x", "q", "k", "v", "attn", "proj", "h", "hidden", "ff", "y", "logits")


class HoledPlan(Plan):
    """A plan in which `tag` has no common range.

    positions: as of exact_lm.position_ranges. The programs are those of a step and a verifier.
    """

    def __init__(self, mdl, tag, positions, ranges):
        self.m = mdl
        self.tag = tag
        self.positions = positions
        self.ranges = ranges
        self.programs = {}

    def program(self, build, *shape):
        key = (build, *shape)
        if key not in self.programs:
            m, c = (1, shape[0] - 1) if build == build_step else shape
            self.programs[key] = capra.compile_graph(build(*shape, self.m), (),
                                                     ranges=self.own_ranges(c, m))
        return self.programs[key]

    def own_ranges(self, c, m):
        """The plan, but for the range of the left-out tag in m rows behind c."""
        first = 0 if self.tag in ("k", "v") else c          # keys and values: the cached rows, too
        own = max(here[self.tag] for here in self.positions[first:c + m])
        return {**self.ranges, self.tag: own}


def holed_chips(mdl, steps, starts=range(V), k=1):
    """{tag: the chip whose plan lacks it}; ranges from plain runs of `steps` tokens."""
    positions = exact_lm.position_ranges(mdl, steps, starts)
    chip = ExactChip(mdl, spec_lm.make_draft(mdl, 0, 1), steps, k, starts)
    chips = {}
    for tag in TAGS:
        chips[tag] = ExactChip(mdl, chip.Wd, steps, k, starts, share=chip)
        chips[tag].plan = HoledPlan(mdl, tag, positions, chip.plan.ranges)
    return chips
