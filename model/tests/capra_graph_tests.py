"""Tests of Capra's graphs: shapes, meaning in floating point, and every refusal in its words."""

import math
import unittest

import paths
from capra import CompileError, Graph, evaluate


def graph_of(*shapes):
    """A graph with inputs of these shapes, named a, b, c."""
    g = Graph()
    for name, shape in zip("abc", shapes):
        g.input(name, shape)
    return g


class Shapes(unittest.TestCase):
    def shape(self, g, node):
        return g.nodes[node].shape

    def test_a_product_has_the_rows_of_one_and_the_columns_of_the_other(self):
        g = graph_of((2, 3), (3, 5), (4, 3))
        self.assertEqual(self.shape(g, g.matmul(0, 1)), (2, 5))
        self.assertEqual(self.shape(g, g.matmul(0, 2, transpose_b=True)), (2, 4))

    def test_concatenation_adds_rows_and_a_slice_counts_them(self):
        g = graph_of((2, 3), (4, 3))
        joined = g.concat_rows(0, 1)
        self.assertEqual(self.shape(g, joined), (6, 3))
        self.assertEqual(self.shape(g, g.slice_rows(joined, 1, 4)), (4, 3))

    def test_the_other_operations(self):
        g = graph_of((2, 3), (2, 3))
        self.assertEqual(self.shape(g, g.softmax(0)), (2, 3))
        self.assertEqual(self.shape(g, g.add(0, 1)), (2, 3))
        chosen = g.argmax(0)
        self.assertEqual(self.shape(g, chosen), (2, 1))
        self.assertEqual(self.shape(g, g.output(chosen, "o")), (2, 1))

    def test_nodes_say_what_they_are(self):
        g = graph_of((2, 64), (64, 1))
        node = g.nodes[g.matmul(0, 1, scale=0.5)]
        self.assertEqual((node.id, node.op, node.ins), (2, "matmul", [0, 1]))
        self.assertEqual(node.attrs, {"transpose_b": False, "scale": 0.5})

    def test_a_tag_returns_its_node(self):
        g = graph_of((2, 3))
        self.assertEqual(g.tag(0, "x"), 0)


class Meaning(unittest.TestCase):
    """evaluate, against numbers worked out by hand."""

    def check(self, build, wanted, *tensors):
        g = Graph()
        names = "abc"[:len(tensors)]
        for name, rows in zip(names, tensors):
            g.input(name, (len(rows), len(rows[0])))
        node = build(g)
        self.assertEqual(evaluate(g, dict(zip(names, tensors)))[node], wanted)

    def test_matmul(self):
        a, b = [[1, 2], [3, 4]], [[5, 6], [7, 8]]
        self.check(lambda g: g.matmul(0, 1), [[19, 22], [43, 50]], a, b)
        self.check(lambda g: g.matmul(0, 1, transpose_b=True), [[17, 23], [39, 53]], a, b)
        self.check(lambda g: g.matmul(0, 1, scale=0.5), [[9.5, 11], [21.5, 25]], a, b)

    def test_softmax(self):
        g = graph_of((3, 2))
        node = g.softmax(0)
        got = evaluate(g, {"a": [[0, 1], [1000, 1000], [1000, 0]]})[node]
        e = math.e
        wanted = [[1 / (1 + e), e / (1 + e)], [0.5, 0.5], [1.0, 0.0]]
        for row, wanted_row in zip(got, wanted):
            for value, number in zip(row, wanted_row):
                self.assertAlmostEqual(value, number, 15)

    def test_causal_softmax(self):
        third = [[1 / 3] * 3 + [0.0], [0.25] * 4]
        self.check(lambda g: g.causal_softmax(0, 3), third, [[7, 7, 7, 99], [5, 5, 5, 5]])
        self.check(lambda g: g.causal_softmax(0, 1), [[1.0, 0.0], [0.5, 0.5]], [[3, 8], [2, 2]])

    def test_add_relu_concatenation_slice(self):
        a, b = [[1, -2], [3, 4]], [[10, 20], [-30, 40]]
        self.check(lambda g: g.add(0, 1), [[11, 18], [-27, 44]], a, b)
        self.check(lambda g: g.relu(g.matmul(0, 1)), [[70, 0], [0, 220]], a, b)
        self.check(lambda g: g.concat_rows(1, 0), b + a, a, b)
        self.check(lambda g: g.slice_rows(g.concat_rows(0, 1), 1, 2), [a[1], b[0]], a, b)

    def test_argmax_takes_the_first_of_equal_numbers(self):
        self.check(lambda g: g.argmax(0), [[1], [0], [2]], [[1, 5, 5], [3, 3, 3], [-9, -8, -7]])

    def test_an_output_is_its_source(self):
        self.check(lambda g: g.output(0, "o"), [[1, 2]], [[1, 2]])


NO_MATRIX = "weight w: the array must be a list of equally long, non-empty rows"
TAKEN = "the name is already taken in this graph"
TWICE = "a tensor cannot be in two places"
UNDER_RELU = "matmul 1 feeds a relu, which replaces its values; use the relu's node"
VIEW = "node 2 is a slice, a view of rows that lie elsewhere; it would have to be copied"
ONE, FLAT, TALL = [(2, 2)], [(1, 2)], [(4, 2), (1, 2)]

# {what is refused: (shapes of the inputs a, b, c, operations of which the last is refused, words)}
REFUSED = {
    "an input of a taken name": (ONE, lambda g: g.input("a", (1, 1)), f"input a: {TAKEN}"),
    "a weight of a taken name": (ONE, lambda g: g.weight("a", [[1]]), f"weight a: {TAKEN}"),
    "an output of a taken name": (ONE, lambda g: g.output(0, "a"), f"output a: {TAKEN}"),
    "inner dimensions that differ": (
        [(2, 3), (4, 3)], lambda g: g.matmul(0, 1),
        "matmul: 2 x 3 and 4 x 3 do not fit: inner dimensions 3 and 4"),
    "inner dimensions that differ, transposed": (
        [(2, 3), (3, 4)], lambda g: g.matmul(0, 1, transpose_b=True),
        "matmul: 2 x 3 and 3 x 4 transposed do not fit: inner dimensions 3 and 4"),
    "an inner dimension over 64": (
        [(1, 65), (65, 1)], lambda g: g.matmul(0, 1),
        "matmul: 1 x 65 and 65 x 1 has inner dimension 65; the chip multiplies at most 64"),
    "a sum of different shapes": (
        [(2, 3), (3, 2)], lambda g: g.add(0, 1),
        "add: 2 x 3 and 3 x 2 differ; both must have one shape"),
    "a concatenation of different widths": (
        [(2, 3), (2, 4)], lambda g: g.concat_rows(0, 1),
        "concat_rows: 2 x 3 and 2 x 4 have 3 and 4 columns; both must have one width"),
    "an output as an operand": (
        ONE, lambda g: (g.output(0, "o"), g.softmax(1)),
        "softmax: node 1 is output; what it stores cannot be an operand"),
    "a row that sees nothing": (
        [(2, 4)], lambda g: g.causal_softmax(0, 0),
        "causal_softmax: row 0 of node 0 would see 0 columns; it must see at least one"),
    "a row that sees more than there is": (
        [(2, 4)], lambda g: (g.causal_softmax(0, 3), g.causal_softmax(0, 4)),
        "causal_softmax: row 1 would see columns 0 to 4 of node 0, which has columns 0 to 3"),
    "a relu of an input": (
        ONE, lambda g: g.relu(0),
        "relu: its input is node 0, input; only a matmul's requantizer can apply it"),
    "a relu of a softmax": (
        ONE, lambda g: g.relu(g.softmax(0)),
        "relu: its input is node 1, softmax; only a matmul's requantizer can apply it"),
    "a relu of a matmul with another consumer": (
        ONE, lambda g: (g.output(g.matmul(0, 0), "o"), g.relu(1)),
        "relu: matmul 1 also feeds node 2, which needs the values before the relu"),
    "a softmax of a matmul with a relu": (
        ONE, lambda g: (g.relu(g.matmul(0, 0)), g.softmax(1)), f"softmax: {UNDER_RELU}"),
    "an output of a matmul with a relu": (
        ONE, lambda g: (g.relu(g.matmul(0, 0)), g.output(1, "o")), f"output: {UNDER_RELU}"),
    "a second relu": (
        ONE, lambda g: (g.relu(g.matmul(0, 0)), g.relu(1)), f"relu: {UNDER_RELU}"),
    "a first part of two concatenations": (
        FLAT * 3, lambda g: (g.concat_rows(0, 1), g.concat_rows(0, 2)),
        f"concat_rows: node 0 already is a part of node 3; {TWICE}"),
    "a second part of two concatenations": (
        FLAT * 3, lambda g: (g.concat_rows(0, 1), g.concat_rows(2, 1)),
        f"concat_rows: node 1 already is a part of node 3; {TWICE}"),
    "a part twice": (
        FLAT, lambda g: g.concat_rows(0, 0),
        f"concat_rows: node 0 already is a part of node 1; {TWICE}"),
    "a slice in front in a concatenation": (
        TALL, lambda g: g.concat_rows(g.slice_rows(0, 0, 2), 1), f"concat_rows: {VIEW}"),
    "a slice behind in a concatenation": (
        TALL, lambda g: g.concat_rows(1, g.slice_rows(0, 0, 2)), f"concat_rows: {VIEW}"),
    "a relu of a slice": (
        TALL, lambda g: g.relu(g.slice_rows(0, 0, 2)),
        "relu: node 2 is a slice, a view; a relu would have to copy it"),
}


class Refusals(unittest.TestCase):
    def refused(self, message, operation, *arguments, **options):
        with self.assertRaises(CompileError, msg=message) as caught:
            operation(*arguments, **options)
        self.assertEqual(str(caught.exception), message)

    def test_bad_graphs_fail_where_they_are_built(self):
        for what, (shapes, build, message) in REFUSED.items():
            with self.subTest(what):
                self.refused(message, build, graph_of(*shapes))

    def test_what_lies_just_inside_the_limits_is_taken(self):
        g = graph_of((1, 64), (64, 1), (4, 2))
        g.matmul(0, 1)
        g.slice_rows(2, 0, 4)
        g.slice_rows(2, 3, 1)

    def test_a_shape_that_is_no_pair_of_sizes(self):
        for shape in ((0, 3), (3, 0), (2,), (1, 2, 3), (1.0, 2), (True, 2), 5, None, "ab"):
            self.refused(f"input x: shape {shape!r} must be two integers of 1 or more",
                         Graph().input, "x", shape)

    def test_rows_that_are_no_integers(self):
        g = graph_of((4, 4))
        for value in (1.0, True, "1", None):
            self.refused(f"slice_rows: start {value!r} and count 1 must be integers",
                         g.slice_rows, 0, value, 1)
            self.refused(f"slice_rows: start 1 and count {value!r} must be integers",
                         g.slice_rows, 0, 1, value)
            self.refused(f"causal_softmax: first {value!r} must be an integer",
                         g.causal_softmax, 0, value)

    def test_a_weight_that_is_no_matrix(self):
        for array in ([], [[]], [[1, 2], [3]], 5, None, "ab", [1, 2], ["ab", "cd"], {"a": 1}):
            self.refused(NO_MATRIX, Graph().weight, "w", array)

    def test_a_weight_that_is_not_finite(self):
        for value in (math.nan, math.inf, 10 ** 400, "3", None):
            self.refused(f"weight w: every value must be a finite number, not {value!r:.40}",
                         Graph().weight, "w", [[1.0, value]])

    def test_a_scale_that_is_not_positive_and_finite(self):
        for scale in (0.0, -1.0, math.inf, math.nan, 10 ** 400, "1", None):
            self.refused(f"matmul: scale {scale!r} must be a positive finite number",
                         graph_of((2, 2)).matmul, 0, 0, scale=scale)

    def test_a_node_that_is_not_there(self):
        g = graph_of((2, 2))
        for node in (1, -1, "a", True, None):
            self.refused(f"softmax: {node!r} is not a node; there are 1", g.softmax, node)
            self.refused(f"tag: {node!r} is not a node; there are 1", g.tag, node, "t")
        self.refused("matmul: 7 is not a node; there are 1", g.matmul, 7, 8)

    def test_indices(self):
        for name, operands in (("softmax", [1]), ("matmul", [0, 1]), ("add", [1, 1]),
                               ("slice_rows", [1, 0, 1]), ("concat_rows", [0, 1]), ("relu", [1]),
                               ("argmax", [1])):
            g = graph_of((2, 2))
            g.argmax(0)
            self.refused(f"{name}: node 1 is argmax; its indices cannot be an operand",
                         getattr(g, name), *operands)

    def test_rows_that_are_not_there(self):
        g = graph_of((4, 2))
        for start, count, first, last in ((2, 3, 2, 4), (4, 1, 4, 4), (-1, 2, -1, 0)):
            self.refused(f"slice_rows: rows {first} to {last} of node 0, which has rows 0 to 3",
                         g.slice_rows, 0, start, count)
        for count in (0, -1):
            self.refused(f"slice_rows: count {count} of rows from 2: a slice has at least one row",
                         g.slice_rows, 0, 2, count)


if __name__ == "__main__":
    unittest.main()
