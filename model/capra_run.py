"""Running a compiled program, and two things to compare it with.

`run` executes the instructions on the reference simulator. `interpret` computes what they mean,
node by node in plain integers, without instructions, addresses or buffers. `stagewise_problems`
holds each integer tensor against the real-number meaning of its operation.
"""

from capra_graph import check_inputs, masked_rows, meaning, transpose
from ga2_isa import EXT, Machine
from quant import INT8_MAX, clamp8, quantize, requant
from softmax_gold import softmax


def quantize_inputs(P, inputs):
    """{node id: rows of int8} of the inputs {name: rows of numbers}, checked.

    Raises CompileError as `check_inputs` does.
    """
    check_inputs(P.graph, inputs)
    ints = {}
    for name, value in inputs.items():
        node = P.ext[name]["node"]
        ints[node] = [[quantize(number, P.scale[node]) for number in row] for row in value]
    return ints


def ext_image(P, inputs):
    """External memory before the program runs: EXT words with weights and inputs as int8."""
    image = [0] * EXT
    tensors = dict(P.constants)
    tensors.update(quantize_inputs(P, inputs))
    for entry in P.ext.values():
        if entry["kind"] != "output":
            flat = [value for row in tensors[entry["node"]] for value in row]
            image[entry["addr"]:entry["addr"] + len(flat)] = flat
    return image


def simulate(P, ext):
    """The simulator after running program `P` on an external memory image of `ext_image`."""
    return Machine(ext).run(P.code)


def read_outputs(P, simulator):
    """{output name: (ints, floats)}, lists of rows, from a simulator that ran `P`.

    floats = ints * scale; those of an argmax are the indices.
    """
    outputs = {}
    for name, entry in P.ext.items():
        if entry["kind"] == "output":
            ints = _rows(simulator.ext, entry["addr"], entry["shape"])
            scale = P.scale[entry["node"]]
            factor = 1.0 if scale is None else scale
            outputs[name] = (ints, [[value * factor for value in row] for row in ints])
    return outputs


def run(P, inputs, machine=False):
    """What read_outputs returns, for inputs {name: rows}; with machine=True the simulator, too.

    The chapter's form of ext_image, simulate and read_outputs in a row.
    """
    simulator = simulate(P, ext_image(P, inputs))
    outputs = read_outputs(P, simulator)
    return (outputs, simulator) if machine else outputs


def run_image(P, ext):
    """What read_outputs returns, for an image of `ext_image`."""
    return read_outputs(P, simulate(P, ext))


def read_tensor(P, machine, i):
    """Node i's integers (rows) from the scratchpad: the tensor itself only with reuse=False."""
    return _rows(machine.spad, P.address[i], P.graph.nodes[i].shape)


def _rows(memory, address, shape):
    rows, columns = shape
    return [memory[address + r * columns:address + (r + 1) * columns] for r in range(rows)]


# ---- the meaning in integers ---------------------------------------------------------------------

def interpret(P, inputs):
    """{node id: rows of integers}: what every tensor of program `P` holds, without its code."""
    values = dict(P.constants)
    values.update(quantize_inputs(P, inputs))
    for node in P.graph.nodes:
        if node.id not in values:
            values[node.id] = _interpret_node(P, node, [values[i] for i in node.ins])
    return values


def _interpret_node(P, node, ins):
    constants = P.params.get(node.id)
    if node.op == "matmul":
        columns = ins[1] if node.attrs["transpose_b"] else transpose(ins[1])
        if P.graph.in_parts(node.id):           # the sums; its parts are requantized
            return [[_dot(row, column) for column in columns] for row in ins[0]]
        relu = P.graph.fused_relu(node.id)
        return [[requant(_dot(row, column), *constants, relu=relu) for column in columns]
                for row in ins[0]]
    if node.op == "softmax":
        return [[requant(p, *constants) for p in softmax(row)] for row in ins[0]]
    if node.op == "masked_softmax":
        probabilities = masked_rows(softmax, ins[0], node.attrs["seen"])
        return _rescale(probabilities, constants)
    if node.op == "probabilities":
        return [softmax(row) for row in ins[0]]
    if node.op == "add":
        one, two = (_rescale(rows, pair) for rows, pair in zip(ins, constants))
        total = [[clamp8(p + q) for p, q in zip(*rows)] for rows in zip(one, two)]
        return _rescale(total, constants[2])
    if node.op == "concat":
        return ins[0] + ins[1]
    if node.op in ("slice", "part"):
        rows = ins[0][node.attrs["start"]:node.attrs["start"] + node.attrs["count"]]
        return rows if node.op == "slice" else _rescale(rows, P.params[node.ins[0]])
    if node.op == "argmax":
        return [[row.index(max(row))] for row in ins[0]]
    return ins[0]                               # output, and a relu: the matmul has applied it


def _dot(row, column):
    return sum(a * b for a, b in zip(row, column))


def _rescale(rows, constants):
    if constants is None:
        return rows
    return [[requant(value, *constants) for value in row] for row in rows]


# ---- the integers against real numbers -----------------------------------------------------------

def stagewise_problems(P, ints):
    """Sentences on tensors that are off the real-number meaning of their operation.

    ints: {node id: rows}, as from `interpret`. Every matmul, part of one and softmax must be within
    1 level of the operation on its dequantized operands, every add within 2 (two roundings and a
    sum) of the levels its sum is made in.
    """
    problems = []
    for node in P.graph.nodes:
        if (node.op not in ("matmul", "part", "softmax", "masked_softmax", "add")
                or P.graph.in_parts(node.id)):
            continue
        made = P.graph.nodes[node.ins[0]] if node.op == "part" else node
        ins = [[[value * P.scale[i] for value in row] for row in ints[i]] for i in made.ins]
        allowed = 2 * _made_in(P.params[node.id][2]) if node.op == "add" else 1
        reals = meaning(made, ins)
        if node.op == "part":
            reals = meaning(node, [reals])
        if P.graph.fused_relu(node.id):
            reals = [[max(0.0, value) for value in row] for row in reals]
        for r, (got, real) in enumerate(zip(ints[node.id], reals)):
            for c, (level, number) in enumerate(zip(got, real)):
                exact = max(-INT8_MAX, min(INT8_MAX, number / P.scale[node.id]))
                if abs(level - exact) > allowed:
                    problems.append(f"{node.op} {node.id}[{r}][{c}]: {level}, but {exact:.3f} in "
                                    f"real numbers (allowed: {allowed})")
    return problems


def _made_in(constants):
    """Levels of an add's result in one level of the scale its sum is made in."""
    return constants[0] / 2 ** constants[1] if constants else 1
