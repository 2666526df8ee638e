"""Capra's battery: random graphs against independent meanings, and bad graphs that must be refused.

Each random graph is compiled twice, with and without reuse of the scratchpad, and run on inputs
that calibration never saw:

(a) both programs give the same outputs;
(b) they are the interpreter's, exactly;
(c) without reuse every tensor read back from the scratchpad is the interpreter's;
(d) every matmul, softmax and add is near the real-number meaning of its own operands;
(e) the outputs, as real numbers, are near the graph's meaning in floating point.

(a) sees buffers that overlap in time, (b) and (c) wrong instructions and addresses, (d) wrong
constants, (e) wrong scales, which (a) to (d) cannot see: there both sides use the same ones.

Every function returns an empty list of problems when all is well.
"""

import math
import random
import unittest
from collections import Counter
from unittest import mock

import capra
from capra import CompileError, Graph
from capra_random import WIDTHS, Maker, plain_graph, slice_graph

BOUND = 0.16                                    # relative error of a plain graph's outputs
SLICE_BOUND = 0.40                              # of a slice graph's, whose rows differ in size


# ---- random graphs -------------------------------------------------------------------------------

def check_many(seeds, bound=BOUND):
    """(problems, worst relative error) of plain graphs, by checks (a) to (e)."""
    return check_cases(plain_graph, seeds, bound, stagewise=True)


def check_slices(seeds):
    """Problems of graphs built around slices, by checks (a) to (c) and (e)."""
    return check_cases(slice_graph, seeds, SLICE_BOUND, stagewise=False)[0]


def check_cases(make, seeds, bound, stagewise):
    """(problems, worst relative error) of the graphs make(seed)."""
    problems = []
    worst = 0.0
    for seed in seeds:
        case = make(seed)
        try:
            found, error = check_case(case, bound, stagewise)
        except Exception as fault:              # whatever a broken compiler raises is a finding
            found, error = [f"{type(fault).__name__}: {fault}"], 0.0
        problems += [f"{make.__name__} {seed}: {problem}" for problem in found]
        worst = max(worst, error)
    return problems, worst


def check_case(case, bound, stagewise):
    """(problems, worst relative error) of one Case."""
    kept = capra.compile_graph(case.graph, case.calib, reuse=False, ranges=case.ranges)
    reused = capra.compile_graph(case.graph, case.calib, ranges=case.ranges)
    problems = []
    results = []
    for inputs in case.fresh:
        meant = capra.interpret(kept, inputs)
        machine = capra.simulate(kept, capra.ext_image(kept, inputs))
        outputs = capra.read_outputs(kept, machine)
        if capra.run(reused, inputs) != outputs:
            problems.append("(a) outputs differ with reuse of the scratchpad")
        problems += not_interpreted(kept, outputs, machine, meant)
        if stagewise:
            problems += [f"(d) {problem}" for problem in capra.stagewise_problems(kept, meant)]
        results.append((outputs, capra.evaluate(case.graph, inputs)))
    worst = 0.0
    for name, entry in kept.ext.items():
        if entry["kind"] == "output":
            error = relative_error(kept, name, results)
            worst = max(worst, error)
            if not error <= bound:
                problems.append(f"(e) output {name} is off floating point by {error:.3f} of its "
                                f"largest value; the bound is {bound}")
    return problems, worst


def not_interpreted(P, outputs, machine, meant):
    """Checks (b) and (c): sentences on tensors that differ from the interpreter's."""
    problems = []
    for name, (ints, _) in outputs.items():
        wanted = meant[P.ext[name]["node"]]
        if ints != wanted:
            problems.append(f"(b) output {name} is {ints}, interpreted {wanted}")
    for node in P.graph.nodes:
        held = "nowhere"
        if node.id in P.address:
            held = capra.read_tensor(P, machine, node.id)
        if held != meant[node.id]:
            problems.append(f"(c) {node.op} {node.id} is {held}, interpreted {meant[node.id]}")
    return problems


def relative_error(P, name, results):
    """The largest deviation of output `name` over its largest absolute value, all runs together.

    results: (outputs, floating-point rows by node id) of each run. The deviation of an argmax is
    what the number it chose falls short of its row's largest: a near tie may go either way.
    """
    deviation = 0.0
    size = 0.0
    source = P.graph.nodes[P.graph.nodes[P.ext[name]["node"]].ins[0]]
    for outputs, real in results:
        got, wanted = outputs[name][1], real[source.id]
        numbers = wanted
        if source.op == "argmax":
            numbers = real[source.ins[0]]
            got, wanted = chosen(numbers, got), chosen(numbers, wanted)
        size = max(size, largest(numbers))
        if [len(row) for row in got] != [len(row) for row in wanted]:
            return math.inf
        for rows in zip(got, wanted):
            deviation = max([deviation] + [abs(p - q) for p, q in zip(*rows)])
    return deviation / size if deviation else 0.0


def chosen(scores, indices):
    """The number that the index of each row picks from its scores."""
    return [[row[int(index)] for index in picks] for row, picks in zip(scores, indices)]


def largest(rows):
    """The largest absolute value."""
    return max(abs(value) for row in rows for value in row)


# ---- graphs that must be refused -----------------------------------------------------------------

def check_errors():
    """Bad graphs that were accepted."""
    return accepted({
        "inner dimension 65": inner_dimension_65,
        "relu of a matmul with another consumer": relu_after_consumer,
        "another consumer of a matmul with a relu": consumer_after_relu,
        "relu of an input": lambda g: g.relu(g.input("x", (2, 2))),
        "a buffer larger than the scratchpad": buffer_too_large,
        "buffers together larger than the scratchpad": buffers_too_large,
        "a tensor in two concatenations": two_concatenations,
        "a tensor twice in a concatenation": twice_in_a_concatenation,
    })


def check_slice_errors():
    """Bad slices that were accepted."""
    return accepted({
        "a range past the end": lambda g: g.slice_rows(g.input("x", (4, 3)), 2, 3),
        "a range behind the end": lambda g: g.slice_rows(g.input("x", (4, 3)), 4, 1),
        "a range before the start": lambda g: g.slice_rows(g.input("x", (4, 3)), -1, 2),
        "an empty range": lambda g: g.slice_rows(g.input("x", (4, 3)), 1, 0),
        "a negative count": lambda g: g.slice_rows(g.input("x", (4, 3)), 2, -1),
        "a slice in front in a concatenation": lambda g: concat_slice(g, in_front=True),
        "a slice behind in a concatenation": lambda g: concat_slice(g, in_front=False),
        "relu of a slice": lambda g: g.relu(g.slice_rows(product(g), 0, 1)),
    })


def accepted(graphs):
    """The names of those {name: function that builds a graph} that Capra does not refuse."""
    problems = []
    for name, build in graphs.items():
        g = Graph()
        try:
            build(g)
            capra.compile_graph(g, [ones(g)])
        except CompileError:
            continue
        except Exception as fault:              # not refused, but stumbled over
            problems.append(f"{name}: {type(fault).__name__}: {fault}")
        else:
            problems.append(f"{name}: accepted")
    return problems


def ones(g):
    """Inputs of ones."""
    return {node.attrs["name"]: [[1.0] * node.shape[1] for _ in range(node.shape[0])]
            for node in g.nodes if node.op == "input"}


def product(g):
    """A matmul of two new inputs."""
    return g.matmul(g.input("a", (2, 3)), g.input("b", (3, 4)))


def inner_dimension_65(g):
    g.matmul(g.input("x", (1, 65)), g.input("y", (65, 1)))


def relu_after_consumer(g):
    p = product(g)
    g.softmax(p)
    g.relu(p)


def consumer_after_relu(g):
    p = product(g)
    g.relu(p)
    g.softmax(p)


def buffer_too_large(g):
    g.softmax(g.input("x", (65, 64)))


def buffers_too_large(g):
    g.add(g.input("x", (40, 64)), g.input("y", (40, 64)))


def two_concatenations(g):
    a, b, c = (g.input(name, (2, 2)) for name in "abc")
    g.concat_rows(a, b)
    g.concat_rows(c, a)


def twice_in_a_concatenation(g):
    a = g.input("a", (2, 2))
    g.concat_rows(a, a)


def concat_slice(g, in_front):
    view = g.slice_rows(g.input("x", (4, 3)), 0, 2)
    other = g.input("y", (2, 3))
    g.concat_rows(*((view, other) if in_front else (other, view)))


# ---- a sum much smaller than its operands --------------------------------------------------------

def check_cancellation():
    """Problems with x + y where y is nearly -x: the sum's scale must still hold both operands."""
    problems = []
    R = random.Random(1)
    calib = [nearly_opposite(R, 1.0) for _ in range(4)]
    for kind, operand in (("inputs", lambda g, a: a), ("products", times_identity)):
        g = Graph()
        x, y = (operand(g, g.input(name, (4, 8))) for name in "xy")
        g.output(g.add(x, y), "sum")
        P = capra.compile_graph(g, calib)
        inputs = nearly_opposite(R, 0.9)
        real = capra.evaluate(g, inputs)[len(g.nodes) - 1]
        got = capra.run(P, inputs)["sum"][1]
        worst = max(abs(p - q) for rows in zip(got, real) for p, q in zip(*rows))
        allowed = 3 * P.scale[x]
        if worst > allowed:
            problems.append(f"the sum of two {kind} of opposite sign is off by {worst:.4f}; three "
                            f"levels of its operands are {allowed:.4f}")
    return problems


def nearly_opposite(R, most):
    """Inputs x, from half `most` to `most` in size, and y = -x but for a twentieth."""
    x = [[R.choice((-most, most)) * (1 + R.random()) / 2 for _ in range(8)] for _ in range(4)]
    return {"x": x, "y": [[0.05 * (2 * R.random() - 1) - value for value in row] for row in x]}


def times_identity(g, a):
    """Node `a` times the 8 x 8 identity matrix."""
    identity = [[float(i == j) for j in range(8)] for i in range(8)]
    return g.matmul(a, g.weight(f"identity {a}", identity))


# ---- what the random graphs contain --------------------------------------------------------------

def count_slices(seeds):
    """(sources, uses): in how many slice graphs each kind of tensor is sliced, and each kind of
    operation takes a slice: {"input": n, ...} and {"matmul": n, "scores": n, ...}."""
    sources, uses = Counter(), Counter()
    for seed in seeds:
        g = slice_graph(seed).graph
        views = [node for node in g.nodes if node.op == "slice"]
        sources.update({g.nodes[node.ins[0]].op for node in views})
        uses.update({use_of(g.nodes[i]) for node in views for i in g.consumers(node.id)})
    return sources, uses


def use_of(node):
    """An operation's name; "scores" for a matmul of a tensor with itself, transposed."""
    return "scores" if node.op == "matmul" and node.ins[0] == node.ins[1] else node.op


def count_operations(seeds):
    """{operation: number of plain graphs that contain it}, and some finer kinds."""
    count = Counter()
    for seed in seeds:
        case = plain_graph(seed)
        kinds = set()
        for node in case.graph.nodes:
            kinds.add(node.op)
            inner = [case.graph.nodes[i].op for i in node.ins]
            if node.op == "matmul":
                kinds.add("transposed matmul" if node.attrs["transpose_b"] else "plain matmul")
                if node.attrs["scale"] != 1.0:
                    kinds.add("scaled matmul")
            if node.op == "concat" and "concat" in inner:
                kinds.add("nested concat")
        count.update(kinds)
        count["ranges"] += bool(case.ranges)
    return count


class Battery(unittest.TestCase):
    """The battery on the compiler as it is."""

    def test_plain_graphs_mean_what_they_say(self):
        problems, worst = check_many(range(100))
        self.assertEqual(problems, [])
        self.assertLess(worst, 0.85 * BOUND)

    def test_slice_graphs_mean_what_they_say(self):
        problems, worst = check_cases(slice_graph, range(100), SLICE_BOUND, stagewise=False)
        self.assertEqual(problems, [])
        self.assertLess(worst, 0.25 * SLICE_BOUND)
        self.assertEqual(check_slices(range(3)), [])

    def test_bad_graphs_are_refused(self):
        self.assertEqual(check_errors(), [])
        self.assertEqual(check_slice_errors(), [])

    def test_a_sum_holds_operands_that_cancel(self):
        self.assertEqual(check_cancellation(), [])


class RandomGraphs(unittest.TestCase):
    """The generators make what they promise."""

    def test_every_kind_of_slice_is_made(self):
        sources, uses = count_slices(range(100))
        for kind in ("matmul", "concat", "slice", "input", "weight", "relu", "add"):
            self.assertGreaterEqual(sources[kind], 30, kind)
        self.assertGreaterEqual(sources["softmax"] + sources["masked_softmax"], 30)
        for kind in ("matmul", "softmax", "scores", "argmax", "add", "output"):
            self.assertGreaterEqual(uses[kind], 30, kind)

    def test_slices_have_the_rows_and_columns_their_use_needs(self):
        rows_of_shared = set()
        for seed in range(100):
            g = slice_graph(seed).graph
            for node in g.nodes:
                views = [i for i in g.consumers(node.id) if g.nodes[i].op == "slice"]
                if views:
                    self.assertGreaterEqual(node.shape[0], 2)
                if views and node.op == "weight":
                    self.assertIn(node.shape[1], WIDTHS)
                if len(views) > 1:
                    rows_of_shared.add(node.shape[0])
                if use_of(node) == "scores":
                    self.assertGreaterEqual(node.shape[0], 2)
        self.assertLessEqual({2, 3, 4, 5, 6}, rows_of_shared)

    def test_a_plain_graph_has_six_to_eleven_steps(self):
        counts = set()
        for seed in range(40):
            with mock.patch.object(Maker, "operand", autospec=True,
                                   side_effect=Maker.operand) as operand:
                plain_graph(seed)
            counts.add(operand.call_count)
        self.assertEqual(counts, set(range(6, 12)))

    def test_every_operation_is_made(self):
        count = count_operations(range(100))
        for kind in ("plain matmul", "transposed matmul", "scaled matmul", "add", "relu", "concat",
                     "argmax", "output", "ranges"):
            self.assertGreaterEqual(count[kind], 50, kind)
        for kind, least in (("softmax", 30), ("masked_softmax", 10), ("nested concat", 10)):
            self.assertGreaterEqual(count[kind], least, kind)

    def test_a_seed_is_a_graph(self):
        for make in (plain_graph, slice_graph):
            one, two, other = make(3), make(3), make(4)
            self.assertTrue((one.graph.nodes, one.calib, one.fresh) ==
                            (two.graph.nodes, two.calib, two.fresh))
            self.assertNotEqual(one.graph.nodes, other.graph.nodes)

    def test_calibration_never_sees_the_fresh_inputs(self):
        for make in (plain_graph, slice_graph):
            case = make(5)
            self.assertTrue(case.fresh)
            for inputs in case.fresh:
                self.assertNotIn(inputs, case.calib)


class EachCheckCanFail(unittest.TestCase):
    """A compiler broken in the way that a check is there for."""

    def problems(self, damage, seeds=range(12)):
        """What check_many says of a compiler whose programs went through damage(P, reuse)."""
        compiler = capra.compile_graph

        def broken(g, calib, reuse=True, ranges=None):
            P = compiler(g, calib, reuse, ranges)
            damage(P, reuse)
            return P

        with mock.patch.object(capra, "compile_graph", broken):
            return check_many(seeds)[0]

    def assert_found(self, letter, problems):
        self.assertTrue(any(f"({letter})" in problem for problem in problems), problems[:3])

    def test_a_code_that_depends_on_reuse(self):
        def damage(P, reuse):
            if reuse:
                P.code.remove(next(ins for ins in P.code if ins["op"] == "LD"))
        self.assert_found("a", self.problems(damage))

    def test_b_and_c_wrong_instructions(self):
        def damage(P, reuse):
            P.code.remove([ins for ins in P.code if ins["op"] == "RQ"][-1])
        problems = self.problems(damage)
        self.assert_found("b", problems)
        self.assert_found("c", problems)

    def test_c_a_wrong_tensor_that_no_output_shows(self):
        def damage(P, reuse):
            P.address[0] += 1
        problems = self.problems(damage)
        self.assert_found("c", problems)
        self.assertFalse([problem for problem in problems if "(a)" in problem or "(b)" in problem])

    def test_d_wrong_constants(self):
        def damage(P, reuse):
            for node in P.graph.nodes:
                if node.op == "softmax":
                    P.params[node.id] = capra.multiplier(1.1 * 127 / 65536)
        self.assert_found("d", self.problems(damage))

    def test_e_a_wrong_scale(self):
        def damage(P, reuse):
            output = P.graph.nodes[-1].id
            if P.scale[output]:
                P.scale[output] *= 1.3
        self.assert_found("e", self.problems(damage))


if __name__ == "__main__":
    unittest.main()
