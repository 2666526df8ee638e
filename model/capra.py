"""Capra: from a graph of 2-D tensors to a GA-2 program.

    scales         what one int8 step of each tensor stands for         capra_scales
    requantizers   the constants that follow from them, weights as int8
    layout         where inputs, weights and outputs lie outside
    places, lives  a buffer per tensor, views inside their owner's      capra_memory
    emission       instructions in node order, addresses first-fit

The graph stands in capra_graph, running a program in capra_run. This module holds the list of
passes, the emission, and offers all public names in one place.
"""

from dataclasses import dataclass

from capra_graph import CompileError, Graph, Node, evaluate
from capra_memory import Allocator, lifetimes, places, words
from capra_run import (ext_image, interpret, read_outputs, read_tensor, run, run_image, simulate,
                       stagewise_problems)
from capra_scales import (SOFTMAXES, group_scales, notes_on, plan_ranges, plan_scales,
                          wide_sums)
from ga2_isa import EXT, TILE, build
from quant import INT8_MAX, multiplier, quantize
from softmax_gold import ONE

__all__ = ["CompileError", "Graph", "Node", "Program", "compile_graph", "evaluate", "ext_image",
           "interpret", "plan_scales", "read_outputs", "read_tensor", "run", "run_image",
           "simulate", "stagewise_problems"]

ZERO = (0, 0)                                   # (mantissa, shift) that requantize any word to 0
ONE_TO_ONE = multiplier(1.0)                    # those that copy int8
SAME_SCALE = 1e-9                               # scales closer than this ratio need no requantizing


@dataclass
class Program:
    """A compiled graph."""

    code: list                                  # instructions, the last a HALT
    graph: Graph
    scale: dict                                 # {node id: what one int8 step stands for}
    notes: list                                 # sentences on what the scales cannot hold
    params: dict                                # {node id: requantizer constants}
    constants: dict                             # {node id: rows of int8} of the weights
    ext: dict                                   # {name: {"addr", "shape", "node", "kind"}}
    address: dict                               # {node id: its tensor's place in the scratchpad}
    spad_high: int                              # words of scratchpad used at most


def compile_graph(g, calib, reuse=True, ranges=None):
    """The Program of graph `g`, calibrated on the input dicts `calib`.

    reuse=False keeps every tensor in the scratchpad to the end, for tests; ranges: see plan_scales.
    Raises CompileError where something does not fit, saying what was needed and what there is.
    """
    planned, measured = plan_ranges(g, calib, ranges)
    scale = group_scales(g, planned)
    notes = notes_on(g, scale, measured)
    params = requantizers(g, scale, wide_sums(g, scale, planned))
    constants = quantized_weights(g, scale)
    ext = external_layout(g)
    place = places(g)
    life = lifetimes(g, place)
    code, address, spad_high = emit(g, params, ext, place, life, reuse)
    return Program(code, g, scale, notes, params, constants, ext, address, spad_high)


def requantizers(g, scale, wide):
    """{node id: constants}: (mantissa, shift) of a matmul or softmax; three such pairs for an add.

    An add's are those of its operands and of its sum, None where there is nothing to rescale: the
    operand has the scale the sum is made in, which for `wide` (see wide_sums) is not its own.
    """
    params = {}
    for node in g.nodes:
        if node.op == "matmul":
            a, b = node.ins
            real = node.attrs["scale"] * scale[a] * scale[b] / scale[node.id]
            params[node.id] = _constants(node, real)
        elif node.op in SOFTMAXES:
            params[node.id] = _constants(node, INT8_MAX / ONE)
        elif node.op == "add":
            made = wide.get(node.id, scale[node.id])
            ratios = [scale[i] / made for i in node.ins] + [made / scale[node.id]]
            params[node.id] = [_constants(node, ratio) if abs(ratio - 1) > SAME_SCALE else None
                               for ratio in ratios]
    return params


def _constants(node, real):
    try:
        return multiplier(real)
    except ValueError as error:
        raise CompileError(f"{node.op} {node.id}: its values cannot be requantized: "
                           f"{error}") from None


def quantized_weights(g, scale):
    """{node id: rows of int8} of every weight."""
    return {node.id: [[quantize(value, scale[node.id]) for value in row]
                      for row in node.attrs["array"]]
            for node in g.nodes if node.op == "weight"}


def external_layout(g):
    """{name: {addr, shape, node, kind}}: inputs and weights in node order, then outputs."""
    ext = {}
    addr = 0
    for kinds in (("input", "weight"), ("output",)):
        for node in g.nodes:
            if node.op in kinds:
                ext[node.attrs["name"]] = {"addr": addr, "shape": node.shape, "node": node.id,
                                           "kind": node.op}
                addr += words(node)
    if addr > EXT:
        raise CompileError(f"the graph's inputs, weights and outputs need {addr} words of external "
                           f"memory; there are {EXT}")
    return ext


def emit(g, params, ext, place, life, reuse):
    """(code, address of each node, peak words of scratchpad): instructions in node order."""
    emission = Emission(g, params, ext, place, life, reuse)
    for node in g.nodes:
        emission.node(node)
    emission.emit("HALT")
    return emission.code, emission.address, emission.allocator.high


def runs(columns):
    """[(first, count, skipped)]: the runs of neighbours in ascending `columns`.

    skipped: how many columns between the first of all and this run are not named.
    """
    found = []
    for position, column in enumerate(columns):
        skipped = column - columns[0] - position
        if found and found[-1][2] == skipped:
            found[-1][1] += 1
        else:
            found.append([column, 1, skipped])
    return found


class Emission:
    """The state of `emit`: a buffer is taken at its first use, released after its last."""

    def __init__(self, g, params, ext, place, life, reuse):
        self.g = g
        self.params = params
        self.ext = ext
        self.place = place
        self.life = life
        self.reuse = reuse
        self.allocator = Allocator()
        self.buffers = {}                       # buffer: its address, while it lives
        self.address = {}                       # node id: address its tensor was given
        self.loaded = set()
        self.code = []

    def node(self, node):
        """Everything node `node` needs: its operands loaded, its buffer, its instructions."""
        if node.op in ("input", "weight"):
            return                              # loaded at its first use
        for i in node.ins:
            self.load(self.g.nodes[i])
        self.buffer_of(node)
        emit = getattr(self, "emit_" + node.op, None)
        temporaries = emit(node) if emit else ()
        self.release(node, temporaries or ())

    def load(self, node):
        """Load an input or weight whole, once, just before its first use."""
        if node.op not in ("input", "weight") or node.id in self.loaded:
            return
        self.loaded.add(node.id)
        self.emit("LD", dst=self.buffer_of(node), src=self.ext[node.attrs["name"]]["addr"],
                  len=words(node))

    def buffer_of(self, node):
        """The address of a node's tensor; takes its buffer where it has none yet."""
        buffer, offset = self.place[node.id]
        if buffer not in self.buffers:
            owner = self.g.nodes[buffer]
            self.buffers[buffer] = self.allocator.take(words(owner), f"{owner.op} {owner.id}")
        self.address[node.id] = self.buffers[buffer] + offset
        return self.address[node.id]

    def release(self, node, temporaries):
        """Give back the temporaries and every buffer whose last reader was `node`."""
        if not self.reuse:
            return
        for address, count in temporaries:
            self.allocator.release(address, count)
        for buffer, (_, last) in self.life.items():
            if last == node.id and buffer in self.buffers:
                self.allocator.release(self.buffers.pop(buffer), words(self.g.nodes[buffer]))

    def temporary(self, node, count):
        """(address, words) of scratch space for node `node`."""
        return self.allocator.take(count, f"a temporary of {node.op} {node.id}"), count

    def emit(self, name, **operands):
        self.code.append(build(name, **operands))

    def requantize(self, dst, src, count, constants, relu=False):
        mantissa, shift = constants
        self.emit("RQ", dst=dst, src=src, len=count, mantissa=mantissa, shift=shift, relu=relu)

    # ---- one method per operation that has instructions; each returns its temporaries ------------

    def emit_matmul(self, node):
        a, b = (self.g.nodes[i] for i in node.ins)
        rows, columns = node.shape
        inner = a.shape[1]
        ldb = b.shape[1]
        transposed = node.attrs["transpose_b"]
        in_parts = self.g.in_parts(node.id)     # then its own place holds the sums
        accumulators = ((self.address[node.id], words(node)) if in_parts
                        else self.temporary(node, words(node)))
        for r in range(0, rows, TILE):
            for c in range(0, columns, TILE):
                self.emit("MM", dst=accumulators[0] + r * columns + c,
                          A=self.address[a.id] + r * inner,
                          B=self.address[b.id] + c * (ldb if transposed else 1),
                          M=min(TILE, rows - r), K=inner, N=min(TILE, columns - c),
                          tb=transposed, lda=inner, ldb=ldb, ldc=columns)
        if in_parts:
            return []
        self.requantize(self.address[node.id], accumulators[0], words(node), self.params[node.id],
                        relu=self.g.fused_relu(node.id))
        return [accumulators]

    def emit_part(self, node):
        """The matmul's requantizer over these rows, into the part's own place."""
        sums = self.address[node.ins[0]] + node.attrs["start"] * node.shape[1]
        self.requantize(self.address[node.id], sums, words(node), self.params[node.ins[0]])

    def emit_softmax(self, node):
        rows, columns = node.shape
        source = self.address[node.ins[0]]
        probabilities = self.temporary(node, words(node))
        for r in range(rows):
            self.emit("SM", dst=probabilities[0] + r * columns, src=source + r * columns,
                      len=columns)
        self.requantize(self.address[node.id], probabilities[0], words(node), self.params[node.id])
        return [probabilities]

    def emit_masked_softmax(self, node):
        """A softmax of what each row sees, zeros over the rest, where old words would show.

        The unit takes neighbouring words. What a row sees in several runs is first copied side by
        side, from where the first of them lies; the others' probabilities go back to their places.
        """
        rows, columns = node.shape
        source, place = self.address[node.ins[0]], self.address[node.id]
        probabilities = self.temporary(node, words(node))
        for r, seen in enumerate(node.attrs["seen"]):
            row = r * columns
            scores = source
            if len(runs(seen)) > 1:
                scores = probabilities[0]
                for first, count, skipped in runs(seen):
                    self.requantize(scores + row + first - skipped, source + row + first, count,
                                    ONE_TO_ONE)
            self.emit("SM", dst=probabilities[0] + row + seen[0], src=scores + row + seen[0],
                      len=len(seen))
        self.requantize(place, probabilities[0], words(node), self.params[node.id])
        for r, seen in enumerate(node.attrs["seen"]):
            row = place + r * columns
            for first, count, skipped in runs(seen)[1:]:
                self.requantize(row + first, probabilities[0] + r * columns + first - skipped,
                                count, self.params[node.id])
            for first, count, _ in runs(sorted(set(range(columns)) - set(seen))):
                self.requantize(row + first, row + first, count, ZERO)
        return [probabilities]

    def emit_probabilities(self, node):
        """A softmax whose words stay as the unit makes them."""
        rows, columns = node.shape
        for r in range(rows):
            self.emit("SM", dst=self.address[node.id] + r * columns,
                      src=self.address[node.ins[0]] + r * columns, len=columns)

    def emit_add(self, node):
        *operands, result = self.params[node.id]
        temporaries = []
        sources = []
        for i, constants in zip(node.ins, operands):
            source = self.address[i]
            if constants:
                rescaled = self.temporary(node, words(node))
                self.requantize(rescaled[0], source, words(node), constants)
                temporaries.append(rescaled)
                source = rescaled[0]
            sources.append(source)
        place = self.address[node.id]
        self.emit("VADD", dst=place, src1=sources[0], src2=sources[1], len=words(node))
        if result:
            self.requantize(place, place, words(node), result)
        return temporaries

    def emit_argmax(self, node):
        source = self.address[node.ins[0]]
        columns = self.g.nodes[node.ins[0]].shape[1]
        for r in range(node.shape[0]):
            self.emit("AMAX", dst=self.address[node.id] + r, src=source + r * columns, len=columns)

    def emit_output(self, node):
        self.emit("ST", src=self.address[node.id], dst=self.ext[node.attrs["name"]]["addr"],
                  len=words(node))
