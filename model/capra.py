"""Capra: from a graph of 2-D tensors to a GA-2 program.

    graph  --plan_scales-->  a scale per tensor
           --places, lifetimes-->  a buffer per tensor, views in their owner's
           --compile_graph-->  instructions in node order, addresses from a first-fit allocator

The passes stand in capra_scales and capra_memory, the graph in capra_graph, running a program in
capra_run; this module emits the instructions and offers all public names in one place.
"""

from capra_graph import CompileError, Graph, Record, evaluate
from capra_memory import Allocator, lifetimes, places, words
from capra_run import ext_image, interpret, read_tensor, run, run_image, stagewise_problems
from capra_scales import SOFTMAXES, plan_scales
from ga2_isa import EXT, TILE, build
from quant import INT8_MAX, multiplier, quantize
from softmax_gold import ONE

__all__ = ["CompileError", "Graph", "Record", "compile_graph", "evaluate", "ext_image", "interpret",
           "plan_scales", "read_tensor", "run", "run_image", "stagewise_problems"]

ZERO = (0, 0)                                   # (mantissa, shift) that requantize any word to 0
SAME_SCALE = 1e-9                               # scales closer than this ratio need no requantizing


def compile_graph(g, calib, reuse=True, ranges=None):
    """The program of graph `g`, calibrated on the input dicts `calib`.

    reuse=False keeps every tensor in the scratchpad to the end, for tests; ranges: see plan_scales.
    The program is a Record of code (instructions, the last a HALT), graph, scale, notes, params
    (requantizer constants by node id), constants (weights as int8, by node id), ext {name: addr,
    shape, node, kind}, address (of each node in the scratchpad), spad_high (peak words).
    Raises CompileError where something does not fit, saying what was needed and what there is.
    """
    scale, notes = plan_scales(g, calib, ranges)
    params = requantizers(g, scale)
    ext = external_layout(g)
    emission = Emission(g, params, ext, reuse)
    for node in g.nodes:
        emission.node(node)
    emission.code.append(build("HALT"))
    return Record(code=emission.code, graph=g, scale=scale, notes=notes, params=params,
                  constants=quantized_weights(g, scale), ext=ext, address=emission.address,
                  spad_high=emission.allocator.high)


def requantizers(g, scale):
    """{node id: constants}: (mantissa, shift) of a matmul or softmax; for an add, one such pair per
    operand, or None where the operand already has the sum's scale."""
    params = {}
    for node in g.nodes:
        if node.op == "matmul":
            a, b = node.ins
            real = node.attrs["scale"] * scale[a] * scale[b] / scale[node.id]
            params[node.id] = _constants(node, real)
        elif node.op in SOFTMAXES:
            params[node.id] = _constants(node, INT8_MAX / ONE)
        elif node.op == "add":
            ratios = [scale[i] / scale[node.id] for i in node.ins]
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
    """{name: Record(addr, shape, node, kind)}: inputs and weights in node order, then outputs."""
    ext = {}
    addr = 0
    for kinds in (("input", "weight"), ("output",)):
        for node in g.nodes:
            if node.op in kinds:
                ext[node.attrs["name"]] = Record(addr=addr, shape=node.shape, node=node.id,
                                                 kind=node.op)
                addr += words(node)
    if addr > EXT:
        raise CompileError(f"the graph's inputs, weights and outputs need {addr} words of external "
                           f"memory; there are {EXT}")
    return ext


class Emission:
    """Instructions in node order; a buffer is taken at its first use, released after its last."""

    def __init__(self, g, params, ext, reuse):
        self.g = g
        self.params = params
        self.ext = ext
        self.reuse = reuse
        self.place = places(g)
        self.life = lifetimes(g, self.place)
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
        self.emit("LD", dst=self.buffer_of(node), src=self.ext[node.attrs["name"]].addr,
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

    # ---- one method per operation that has instructions; each returns its temporaries ---------

    def emit_matmul(self, node):
        a, b = (self.g.nodes[i] for i in node.ins)
        rows, columns = node.shape
        inner = a.shape[1]
        ldb = b.shape[1]
        transposed = node.attrs["transpose_b"]
        accumulators = self.temporary(node, words(node))
        for r in range(0, rows, TILE):
            for c in range(0, columns, TILE):
                self.emit("MM", dst=accumulators[0] + r * columns + c,
                          A=self.address[a.id] + r * inner,
                          B=self.address[b.id] + c * (ldb if transposed else 1),
                          M=min(TILE, rows - r), K=inner, N=min(TILE, columns - c),
                          tb=transposed, lda=inner, ldb=ldb, ldc=columns)
        self.requantize(self.address[node.id], accumulators[0], words(node), self.params[node.id],
                        relu=self.g.fused_relu(node.id))
        return [accumulators]

    def emit_softmax(self, node):
        rows, columns = node.shape
        source = self.address[node.ins[0]]
        probabilities = self.temporary(node, words(node))
        for r in range(rows):
            self.emit("SM", dst=probabilities[0] + r * columns, src=source + r * columns,
                      len=columns)
        self.requantize(self.address[node.id], probabilities[0], words(node), self.params[node.id])
        return [probabilities]

    def emit_causal_softmax(self, node):
        """A softmax of what each row sees, zeros over the rest, where old words would show."""
        rows, columns = node.shape
        source = self.address[node.ins[0]]
        probabilities = self.temporary(node, words(node))
        for r in range(rows):
            seen = node.attrs["first"] + r
            row = r * columns
            self.emit("SM", dst=probabilities[0] + row, src=source + row, len=seen)
            if seen < columns:
                self.requantize(probabilities[0] + row + seen, source + row + seen, columns - seen,
                                ZERO)
        self.requantize(self.address[node.id], probabilities[0], words(node), self.params[node.id])
        return [probabilities]

    def emit_add(self, node):
        temporaries = []
        sources = []
        for i, constants in zip(node.ins, self.params[node.id]):
            source = self.address[i]
            if constants:
                rescaled = self.temporary(node, words(node))
                self.requantize(rescaled[0], source, words(node), constants)
                temporaries.append(rescaled)
                source = rescaled[0]
            sources.append(source)
        self.emit("VADD", dst=self.address[node.id], src1=sources[0], src2=sources[1],
                  len=words(node))
        return temporaries

    def emit_argmax(self, node):
        source = self.address[node.ins[0]]
        columns = self.g.nodes[node.ins[0]].shape[1]
        for r in range(node.shape[0]):
            self.emit("AMAX", dst=self.address[node.id] + r, src=source + r * columns, len=columns)

    def emit_output(self, node):
        self.emit("ST", src=self.address[node.id], dst=self.ext[node.attrs["name"]].addr,
                  len=words(node))
