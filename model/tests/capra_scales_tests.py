"""Tests of capra_scales: ranges, scales and notes, worked out by hand."""

import math
import unittest

import paths
import capra
from capra import CompileError, Graph


def ranges_of(g, *samples, **ranges):
    """{node id: 127 * scale} rounded to 9 digits, None where there is none."""
    scale, _ = capra.plan_scales(g, samples, ranges or None)
    return {i: value and round(127 * value, 9) for i, value in scale.items()}


class Scales(unittest.TestCase):
    def test_a_range_is_the_largest_absolute_value_over_all_samples(self):
        g = Graph()
        g.input("x", (2, 2))
        g.weight("w", [[0.25, -0.5]])
        self.assertEqual(ranges_of(g, {"x": [[1, -2], [0, 0]]}, {"x": [[0, 0], [-3, 1]]},
                                   {"x": [[2, 2], [2, 2]]}), {0: 3, 1: 0.5})
        self.assertEqual(ranges_of(g, {"x": [[0.25, 0], [0, 0]]})[0], 0.25)

    def test_a_tensor_of_zeros_has_range_1(self):
        g = Graph()
        g.input("x", (1, 2))
        self.assertEqual(ranges_of(g, {"x": [[0, 0]]}), {0: 1})

    def test_both_parts_of_a_concatenation_share_its_scale(self):
        g = Graph()
        g.concat_rows(g.input("x", (1, 1)), g.input("y", (1, 1)))
        self.assertEqual(ranges_of(g, {"x": [[5]], "y": [[-1]]}), {0: 5, 1: 5, 2: 5})
        self.assertEqual(ranges_of(g, {"x": [[1]], "y": [[-5]]}), {0: 5, 1: 5, 2: 5})

    def test_nested_concatenations_and_their_slices_share_one_scale(self):
        g = Graph()
        x, y, z = (g.input(name, (1, 1)) for name in "xyz")
        whole = g.concat_rows(z, g.concat_rows(x, y))
        g.output(g.slice_rows(g.slice_rows(whole, 1, 2), 0, 1), "o")
        self.assertEqual(set(ranges_of(g, {"x": [[1]], "y": [[7]], "z": [[2]]}).values()), {7})

    def test_a_slice_shares_the_scale_of_rows_it_does_not_hold(self):
        g = Graph()
        view = g.slice_rows(g.input("x", (2, 1)), 1, 1)
        self.assertEqual(ranges_of(g, {"x": [[8], [1]]}), {0: 8, view: 8})

    def test_a_relu_shares_the_scale_of_the_negative_numbers_it_drops(self):
        g = Graph()
        g.relu(g.matmul(g.input("x", (1, 1)), g.weight("w", [[-6, 2]])))
        self.assertEqual(ranges_of(g, {"x": [[1]]}), {0: 1, 1: 6, 2: 6, 3: 6})

    def test_a_product_counts_its_scale_factor(self):
        g = Graph()
        g.matmul(g.input("x", (1, 2)), g.weight("w", [[1], [1]]), scale=0.25)
        self.assertEqual(ranges_of(g, {"x": [[4, 4]]})[2], 2)

    def test_an_argmax_and_its_output_have_no_scale(self):
        g = Graph()
        g.output(g.argmax(g.input("x", (1, 2))), "o")
        self.assertEqual(ranges_of(g, {"x": [[1, 2]]}), {0: 2, 1: None, 2: None})


class SumScales(unittest.TestCase):
    def sum_of(self, x, y):
        g = Graph()
        g.add(g.input("x", (1, 1)), g.input("y", (1, 1)))
        return ranges_of(g, {"x": [[x]], "y": [[y]]})

    def test_a_sum_does_not_tie_its_operands(self):
        self.assertEqual(self.sum_of(3, 1), {0: 3, 1: 1, 2: 4})

    def test_a_sum_covers_either_operand(self):
        self.assertEqual(self.sum_of(3, -1)[2], 3)
        self.assertEqual(self.sum_of(-1, 3)[2], 3)
        self.assertEqual(self.sum_of(3, -3)[2], 3)

    def test_a_sum_covers_its_operands_and_not_what_lies_beside_them(self):
        # x is 1; that it shares its scale with the 9 beside it does not widen the sum
        g = Graph()
        x, y, z = (g.input(name, (1, 1)) for name in "xyz")
        g.concat_rows(x, z)
        total = g.add(x, y)
        ranges = ranges_of(g, {"x": [[1]], "y": [[1]], "z": [[9]]})
        self.assertEqual((ranges[x], ranges[y], ranges[total]), (9, 1, 2))

    def test_what_shares_the_sums_scale_covers_its_operands_too(self):
        g = Graph()
        x, y, z = (g.input(name, (1, 1)) for name in "xyz")
        total = g.add(x, y)
        whole = g.concat_rows(total, z)
        ranges = ranges_of(g, {"x": [[5]], "y": [[-5]], "z": [[1]]})
        self.assertEqual((ranges[total], ranges[whole], ranges[z]), (5, 5, 5))


class SoftmaxScales(unittest.TestCase):
    IN, OUT = 127 / 16, 1

    def test_a_softmax_fixes_its_input_and_result(self):
        g = Graph()
        g.softmax(g.input("x", (1, 2)))
        self.assertEqual(ranges_of(g, {"x": [[1, 2]]}), {0: self.IN, 1: self.OUT})

    def test_what_shares_these_scales_is_fixed_too(self):
        g = Graph()
        x, y = g.input("x", (1, 2)), g.input("y", (1, 2))
        g.softmax(g.slice_rows(g.concat_rows(x, y), 0, 1))
        z = g.input("z", (1, 2))
        g.concat_rows(4, z)
        ranges = ranges_of(g, {"x": [[1, 2]], "y": [[3, 4]], "z": [[5, 6]]})
        self.assertEqual(ranges, {0: self.IN, 1: self.IN, 2: self.IN, 3: self.IN,
                                  4: self.OUT, 5: self.OUT, 6: self.OUT})

    def test_a_softmax_behind_a_matmul_of_a_softmax_is_not(self):
        g = Graph()
        g.softmax(g.matmul(g.softmax(g.input("x", (1, 2))), g.weight("w", [[1, 2], [3, 4]])))
        self.assertEqual(ranges_of(g, {"x": [[1, 2]]})[3], self.IN)


class TagRanges(unittest.TestCase):
    def graph(self):
        g = Graph()
        g.tag(g.input("x", (1, 1)), "t")
        g.concat_rows(0, g.input("y", (1, 1)))
        return g

    def test_a_range_replaces_the_measured_one(self):
        g = self.graph()
        self.assertEqual(ranges_of(g, {"x": [[3]], "y": [[1]]}, t=5.0), {0: 5, 1: 5, 2: 5})
        self.assertEqual(ranges_of(g, {"x": [[3]], "y": [[1]]}, t=0.5), {0: 3, 1: 3, 2: 3})

    def test_a_group_is_as_large_as_its_largest_node_after_that(self):
        g = self.graph()
        g.tag(2, "t")
        self.assertEqual(ranges_of(g, {"x": [[3]], "y": [[1]]}, t=2.0), {0: 2, 1: 2, 2: 2})
        self.assertEqual(ranges_of(g, {"x": [[1]], "y": [[3]]}, t=2.0), {0: 3, 1: 3, 2: 3})

    def test_a_range_for_a_tag_that_is_not_there_is_nothing(self):
        self.assertEqual(ranges_of(self.graph(), {"x": [[3]], "y": [[1]]}, u=9.0)[0], 3)

    def test_ranges_alone_are_enough(self):
        g = Graph()
        g.matmul(g.tag(g.input("x", (1, 1)), "x"), g.weight("w", [[4]]))
        g.tag(2, "y")
        self.assertEqual(ranges_of(g, x=2.0, y=6.0), {0: 2, 1: 4, 2: 6})


class Notes(unittest.TestCase):
    def check(self, notes, g, sample, ranges=None):
        self.assertEqual(capra.plan_scales(g, [sample], ranges)[1], notes)

    def test_values_past_the_last_step_saturate(self):
        g = Graph()
        g.tag(g.input("x", (1, 2)), "t")
        self.check([], g, {"x": [[0.1, -0.7]]})             # nothing does at its measured range
        self.check(["node 0 (input): values up to 3 saturate at 2"], g, {"x": [[3, 0]]}, {"t": 2.0})
        g.softmax(0)
        self.check(["node 0 (input): values up to 10 saturate at 7.938"], g, {"x": [[10, -3]]})

    def test_values_below_half_a_step_vanish(self):
        g = Graph()
        g.concat_rows(g.input("x", (1, 2)), g.input("y", (1, 2)))
        for x, notes in (([1, 3], ["node 0 (input): values up to 3 vanish; a step is 7.874"]),
                         ([1, 4], []), ([0, 0], [])):
            self.check(notes, g, {"x": [x], "y": [[1000, -1000]]})


class Refusals(unittest.TestCase):
    def refused(self, message, g, samples, ranges=None):
        for function in (capra.plan_scales, capra.compile_graph):
            with self.assertRaises(CompileError, msg=message) as caught:
                function(g, samples, ranges=ranges)
            self.assertEqual(str(caught.exception), message)

    def stored(self):
        g = Graph()
        g.output(g.tag(g.input("x", (1, 2)), "x"), "o")
        return g

    def test_nothing_to_measure(self):
        self.refused("plan_scales: nothing tells the range of node 0 (input); give a calibration "
                     "sample, or a range for its tag", self.stored(), [])

    def test_samples_that_are_not_the_inputs(self):
        for sample, message in (
                ({}, "input x: missing"),
                ({"x": [[1, 2]], "y": [[1]]}, "input y: the program has no such input; it takes x"),
                ({"x": [[1]]}, "input x: its shape must be 1 x 2, not 1 x 1"),
                ({"x": [[math.nan, 1]]}, "input x: every value must be a finite number, not nan")):
            self.refused(message, self.stored(), [sample])

    def test_ranges_that_are_no_size(self):
        for value in (-1.0, math.nan, math.inf, 10 ** 400, "1", None):
            self.refused(f"plan_scales: range {value!r} of tag x must be a finite number, 0 or "
                         "more", self.stored(), [{"x": [[1, 2]]}], {"x": value})

    def test_a_softmax_of_a_softmax(self):
        g = Graph()
        g.softmax(g.softmax(g.input("x", (1, 2))))
        self.refused("softmax: node 1 shares its scale with both a softmax's input (1/16) and a "
                     "softmax's result (1/127); put a matmul between them", g, [{"x": [[1, 2]]}])

    def test_numbers_whose_products_sums_or_steps_no_float_can_hold(self):
        step = ("plan_scales: the largest value of node 1 (weight) is 5e-324, too small to divide "
                "into 127 steps; give larger numbers or zeros")
        large = "matmul 2: its values are beyond the largest float; give smaller weights or inputs"
        for message, x, w, scale in ((step, [1, 1], [[5e-324], [0]], 1.0),
                                     (large, [1e308, 1e308], [[1], [1]], 1.0),  # fsum overflows
                                     (large, [1e308, 1e308], [[10], [-10]], 1.0),   # inf - inf
                                     (large, [1e308, 0], [[1], [1]], 10.0),         # inf
                                     (large, [1e308, 0], [[10], [1]], 1.0)):
            g = Graph()
            g.matmul(g.input("x", (1, 2)), g.weight("w", w), scale=scale)
            self.refused(message, g, [{"x": [x]}])

    def test_a_sum_no_float_can_hold(self):
        g = Graph()
        g.add(g.input("x", (1, 1)), g.input("y", (1, 1)))
        self.refused("add 2: its values are beyond the largest float; give smaller weights or "
                     "inputs", g, [{"x": [[1e308]], "y": [[1e308]]}])


if __name__ == "__main__":
    unittest.main()
