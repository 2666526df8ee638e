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


class Refusals(unittest.TestCase):
    def refused(self, message, operation):
        with self.assertRaises(CompileError) as caught:
            operation()
        self.assertEqual(str(caught.exception), message)

    # ---- leaves

    def test_an_empty_input(self):
        self.refused("input x: shape (0, 3) must be two integers of 1 or more",
                     lambda: Graph().input("x", (0, 3)))

    def test_a_weight_that_is_no_matrix(self):
        for array in ([], [[]], [[1, 2], [3]], 5, None, "ab", [1, 2], ["ab", "cd"], {"a": 1}):
            self.refused("weight w: the array must be a list of equally long, non-empty rows",
                         lambda: Graph().weight("w", array))

    def test_a_weight_that_is_not_finite(self):
        for value in (math.nan, math.inf, 10 ** 400, "3", None):
            self.refused("weight w: every value must be a finite number, not " f"{value!r:.40}",
                         lambda: Graph().weight("w", [[1.0, value]]))

    def test_a_name_that_is_taken(self):
        g = graph_of((1, 1))
        self.refused("input a: the name is already taken in this graph",
                     lambda: g.input("a", (1, 1)))
        self.refused("weight a: the name is already taken in this graph",
                     lambda: g.weight("a", [[1]]))
        self.refused("output a: the name is already taken in this graph", lambda: g.output(0, "a"))

    # ---- shapes

    def test_inner_dimensions_that_differ(self):
        g = graph_of((2, 3), (4, 3))
        self.refused("matmul: 2 x 3 and 4 x 3 do not fit: inner dimensions 3 and 4",
                     lambda: g.matmul(0, 1))
        g = graph_of((2, 3), (3, 4))
        self.refused("matmul: 2 x 3 and 3 x 4 transposed do not fit: inner dimensions 3 and 4",
                     lambda: g.matmul(0, 1, transpose_b=True))

    def test_an_inner_dimension_over_64(self):
        g = graph_of((1, 64), (64, 1))
        g.matmul(0, 1)
        g = graph_of((1, 65), (65, 1))
        self.refused("matmul: 1 x 65 and 65 x 1 has inner dimension 65; the chip multiplies at "
                     "most 64", lambda: g.matmul(0, 1))

    def test_a_scale_that_is_not_positive_and_finite(self):
        g = graph_of((2, 2))
        for scale in (0.0, -1.0, math.inf, math.nan):
            self.refused(f"matmul: scale {scale} must be a positive finite number",
                         lambda: g.matmul(0, 0, scale=scale))

    def test_a_sum_of_different_shapes(self):
        g = graph_of((2, 3), (3, 2))
        self.refused("add: 2 x 3 and 3 x 2 differ; both must have one shape", lambda: g.add(0, 1))

    def test_a_concatenation_of_different_widths(self):
        g = graph_of((2, 3), (2, 4))
        self.refused("concat_rows: 2 x 3 and 2 x 4 have 3 and 4 columns; both must have one width",
                     lambda: g.concat_rows(0, 1))

    # ---- what cannot be an operand

    def test_a_node_that_is_not_there(self):
        g = graph_of((2, 2))
        for node in (1, -1, "a", True, None):
            self.refused(f"softmax: {node!r} is not a node; there are 1", lambda: g.softmax(node))
            self.refused(f"tag: {node!r} is not a node; there are 1", lambda: g.tag(node, "t"))

    def test_indices(self):
        for name, operation in (("softmax", lambda g, i: g.softmax(i)),
                                ("matmul", lambda g, i: g.matmul(0, i)),
                                ("add", lambda g, i: g.add(i, i)),
                                ("slice_rows", lambda g, i: g.slice_rows(i, 0, 1)),
                                ("concat_rows", lambda g, i: g.concat_rows(0, i)),
                                ("relu", lambda g, i: g.relu(i)),
                                ("argmax", lambda g, i: g.argmax(i))):
            g = graph_of((2, 2))
            chosen = g.argmax(0)
            self.refused(f"{name}: node 1 is argmax; its indices cannot be an operand",
                         lambda: operation(g, chosen))

    def test_an_output(self):
        g = graph_of((2, 2))
        g.output(0, "o")
        self.refused("softmax: node 1 is output; what it stores cannot be an operand",
                     lambda: g.softmax(1))

    # ---- causal softmax

    def test_a_row_that_sees_nothing(self):
        g = graph_of((2, 4))
        self.refused("causal_softmax: row 0 of node 0 would see 0 columns; it must see at least "
                     "one", lambda: g.causal_softmax(0, 0))

    def test_a_row_that_sees_more_than_there_is(self):
        g = graph_of((2, 4))
        g.causal_softmax(0, 3)
        self.refused("causal_softmax: row 1 would see columns 0 to 4 of node 0, which has columns "
                     "0 to 3", lambda: g.causal_softmax(0, 4))

    # ---- relu

    def test_relu_of_anything_but_a_matmul(self):
        g = graph_of((2, 2))
        self.refused("relu: its input is node 0, input; only a matmul's requantizer can apply it",
                     lambda: g.relu(0))
        g.softmax(0)
        self.refused("relu: its input is node 1, softmax; only a matmul's requantizer can apply it",
                     lambda: g.relu(1))

    def test_relu_of_a_matmul_with_another_consumer(self):
        g = graph_of((2, 2))
        g.output(g.matmul(0, 0), "o")
        self.refused("relu: matmul 1 also feeds node 2, which needs the values before the relu",
                     lambda: g.relu(1))

    def test_another_consumer_of_a_matmul_with_a_relu(self):
        g = graph_of((2, 2))
        g.relu(g.matmul(0, 0))
        message = "matmul 1 feeds a relu, which replaces its values; use the relu's node"
        self.refused(f"softmax: {message}", lambda: g.softmax(1))
        self.refused(f"output: {message}", lambda: g.output(1, "o"))
        self.refused(f"relu: {message}", lambda: g.relu(1))

    # ---- two places

    def test_a_part_of_two_concatenations(self):
        g = graph_of((1, 2), (1, 2), (1, 2))
        g.concat_rows(0, 1)
        message = "already is a part of node 3; a tensor cannot be in two places"
        self.refused(f"concat_rows: node 0 {message}", lambda: g.concat_rows(0, 2))
        self.refused(f"concat_rows: node 1 {message}", lambda: g.concat_rows(2, 1))

    def test_a_part_twice(self):
        g = graph_of((1, 2))
        self.refused("concat_rows: node 0 already is a part of node 1; a tensor cannot be in two "
                     "places", lambda: g.concat_rows(0, 0))

    # ---- slices

    def test_rows_that_are_not_there(self):
        g = graph_of((4, 2))
        for start, count, first, last in ((2, 3, 2, 4), (4, 1, 4, 4), (-1, 2, -1, 0)):
            self.refused(f"slice_rows: rows {first} to {last} of node 0, which has rows 0 to 3",
                         lambda: g.slice_rows(0, start, count))
        g.slice_rows(0, 0, 4)
        g.slice_rows(0, 3, 1)

    def test_no_rows(self):
        g = graph_of((4, 2))
        for count in (0, -1):
            self.refused(f"slice_rows: count {count} of rows from 2: a slice has at least one row",
                         lambda: g.slice_rows(0, 2, count))

    def test_a_slice_that_would_have_to_be_copied(self):
        g = graph_of((4, 2), (1, 2))
        view = g.slice_rows(0, 0, 2)
        message = (f"concat_rows: node {view} is a slice, a view of rows that lie elsewhere; it "
                   "would have to be copied")
        self.refused(message, lambda: g.concat_rows(view, 1))
        self.refused(message, lambda: g.concat_rows(1, view))
        self.refused(f"relu: node {view} is a slice, a view; a relu would have to copy it",
                     lambda: g.relu(view))


if __name__ == "__main__":
    unittest.main()
