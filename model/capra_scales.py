"""Scales: what one step of each int8 tensor stands for.

1. A node's range is its largest absolute value over the calibration samples, or what `ranges` says.
2. Nodes that hold the same numbers share one scale; the largest range among them counts.
3. Softmax's scale is fixed by the chip: 1/16 in, 1/127 out. Otherwise scale = range / 127.
"""

import math

from capra_graph import CompileError, check_inputs, evaluate, is_number, too_large
from quant import INT8_MAX

SOFTMAX_IN = 1 / 16
SOFTMAX_OUT = 1 / INT8_MAX
SOFTMAXES = ("softmax", "masked_softmax")
UNSCALED = ("argmax", "probabilities")          # integers that stand for themselves
# These tie their result to their operands.
SAME_NUMBERS = ("concat", "relu", "slice", "part", "output")


def plan_scales(g, calib, ranges=None):
    """(scale, notes): {node id: real value of one int8 step} and sentences on saturation.

    calib: input dicts {name: rows}; ranges: {tag: largest absolute value}, which replaces the
    measured range of every node with that tag. Without a sample, `ranges` must reach every tensor
    that is not a weight or beside a softmax: CompileError names the first it does not. An argmax
    and probabilities have no scale: None.
    """
    planned, measured = plan_ranges(g, calib, ranges)
    scale = group_scales(g, planned)
    return scale, notes_on(g, scale, measured)


def plan_ranges(g, calib, ranges=None):
    """(planned, measured): the range of each node, a list by node id, None where nothing tells it.

    `measured` is over the samples; `planned` has the values of `ranges` in place of those.
    """
    ranges = ranges or {}
    for tag, value in ranges.items():
        if not (is_number(value) and value >= 0):
            raise CompileError(f"plan_scales: range {value!r} of tag {tag} must be a finite "
                               "number, 0 or more")
    measured = measure_ranges(g, calib)
    return [ranges.get(g.tags.get(i), value) for i, value in enumerate(measured)], measured


def measure_ranges(g, calib):
    """The largest absolute value of each node over the samples, a list by node id.

    None where there is no sample; a weight's range needs none.
    """
    ranges = [largest(node.attrs["array"]) if node.op == "weight" else None for node in g.nodes]
    for sample in calib:
        check_inputs(g, sample)
        values = evaluate(g, sample)
        for node in g.nodes:
            if node.op != "weight":
                reached = largest(values[node.id])
                if not math.isfinite(reached):
                    raise too_large(node)
                ranges[node.id] = max(ranges[node.id] or 0.0, reached)
    return ranges


def largest(rows):
    """The largest absolute value in a 2-D list."""
    return max(max(map(max, rows)), -min(map(min, rows)))


def tie(g):
    """[group of each node]: nodes with one number hold the same numbers and share a scale."""
    group = list(range(len(g.nodes)))
    for node in g.nodes:
        if node.op in SAME_NUMBERS:
            for i in node.ins:
                old = group[i]
                group = [group[node.id] if number == old else number for number in group]
    return group


def group_scales(g, planned):
    """{node id: scale} from each node's planned range; None where it has none."""
    group = tie(g)
    top = {}
    for node in g.nodes:
        widen(top, group[node.id], planned[node.id])
    for node in g.nodes:
        if node.op == "add":                    # the sum's steps must hold either operand, too
            for i in node.ins:
                widen(top, group[node.id], planned[i])

    pinned = {}
    for node in g.nodes:
        if node.op in SOFTMAXES:
            _pin(pinned, group, node.ins[0], SOFTMAX_IN)
            _pin(pinned, group, node.id, SOFTMAX_OUT)
        elif node.op == "probabilities":
            _pin(pinned, group, node.ins[0], SOFTMAX_IN)

    scale = {}
    for node in g.nodes:
        number = group[node.id]
        if node.op in UNSCALED or (node.op == "output" and scale[node.ins[0]] is None):
            scale[node.id] = None
        elif number in pinned:
            scale[node.id] = pinned[number]
        elif number in top:
            scale[node.id] = (top[number] or 1.0) / INT8_MAX
            if scale[node.id] == 0:
                raise CompileError(f"plan_scales: the largest value of node {node.id} ({node.op}) "
                                   f"is {top[number]}, too small to divide into {INT8_MAX} steps; "
                                   "give larger numbers or zeros")
        else:
            raise CompileError(f"plan_scales: nothing tells the range of node {node.id} "
                               f"({node.op}); give a calibration sample, or a range for its tag")
    return scale


def widen(top, number, value):
    """Let group `number` reach `value`, if there is one."""
    if value is not None:
        top[number] = max(top.get(number, 0.0), value)


def _pin(pinned, group, i, value):
    if pinned.setdefault(group[i], value) != value:
        raise CompileError(f"softmax: node {i} shares its scale with both a softmax's input (1/16) "
                           "and a softmax's result (1/127); put a matmul between them")


def wide_sums(g, scale, planned):
    """{add: the scale its sum is made in}, where the sum's own scale would lose an operand.

    The chip fixes the scale in front of a softmax. An operand beyond 127/16 would be cut off before
    the sum is made, however small the sum is; so that sum is made in wider steps and then rescaled.
    """
    wide = {}
    for node in g.nodes:
        if node.op == "add":
            reached = max(planned[i] or 0.0 for i in node.ins)
            if reached > INT8_MAX * scale[node.id] * (1 + 1e-9):
                wide[node.id] = reached / INT8_MAX
    return wide


def notes_on(g, scale, measured):
    """A sentence for each node whose values in calibration its scale cannot express.

    They saturate where the largest is past the last step, and vanish where it is below half a step.
    """
    notes = []
    for node in g.nodes:
        step, reached = scale[node.id], measured[node.id]
        if step is None or reached is None:
            continue
        if reached > INT8_MAX * step * (1 + 1e-9):
            notes.append(f"node {node.id} ({node.op}): values up to {reached:.4g} saturate at "
                         f"{INT8_MAX * step:.4g}")
        elif 0 < reached < step / 2:
            notes.append(f"node {node.id} ({node.op}): values up to {reached:.4g} vanish; a step "
                         f"is {step:.4g}")
    return notes
