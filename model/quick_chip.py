"""A SpecChip for many drafts of one model: no row of the calibration runs is computed twice.

SpecChip calibrates by floating-point runs of its host loop, then evaluates every program's graph on
the blocks those runs met.  Both compute the same rows, and so do the chips of other drafts and k:

    a row's numbers depend on its token and the rows before it, not on the block around it;
    a block's ranges, from which its program's scales come, are the largest of its rows'.

So rows are kept, with their ranges, in a dict that the chips of a model share.  The programs are
SpecChip's own, instruction by instruction (quick_chip_tests compares them).
"""

import capra
import spec_lm
from capra_graph import mv
from capra_scales import largest
from tiny_lm import V, argmax, float_step


class QuickChip(spec_lm.SpecChip):
    """spec_lm.SpecChip, calibrated from `rows`, a dict that starts empty and is shared.

    rows: {(keys before, token): (choice, k, v, {tag: largest absolute value in the row})}.
    """

    def __init__(self, mdl, Wd, n, k, rows, starts=range(V)):
        self.rows = rows
        self.block_ranges = {}                  # (c, m): {tag: largest absolute value}
        super().__init__(mdl, Wd, n, k, starts, target=self.float_verify)

    def float_verify(self, c, toks, kc, vc):
        """spec_lm.float_verify, row by row; notes the ranges of the block."""
        ranges = self.block_ranges.setdefault((c, len(toks)), {})
        before = tuple(map(tuple, kc))
        answer = []
        for tok in toks:
            if (before, tok) not in self.rows:
                self.rows[before, tok] = self.row(tok, kc, vc)
            choice, k, v, sizes = self.rows[before, tok]
            answer.append((choice, k, v))
            for tag, size in sizes.items():
                ranges[tag] = max(ranges.get(tag, 0.0), size)
            kc, vc = kc + [k], vc + [v]
            before += (tuple(k),)
        return tuple(list(column) for column in zip(*answer))

    def row(self, tok, kc, vc):
        """(choice, k, v, ranges) of one row in floating point."""
        logits, k, v, parts = float_step(self.model, tok, kc, vc)
        parts["hidden"] = mv(parts["h"], self.model["W1"])  # the relu shares its input's scale
        return argmax(logits), k, v, {tag: largest([row]) for tag, row in parts.items()}

    def compile(self, c, m):
        """The verifier program that SpecChip compiles, from ranges instead of samples."""
        if (c, m) not in self.block_ranges:
            return super().compile(c, m)
        graph = spec_lm.build_verify(m, c, self.model)
        return capra.compile_graph(graph, [], ranges={**self.block_ranges[c, m], **self.ranges})
