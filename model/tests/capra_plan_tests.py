"""Tests of Capra's plans: scales by hand, places and lives of buffers, the allocator."""

import unittest

import paths
import capra
from capra import CompileError, Graph
from capra_memory import Allocator, Place, lifetimes, places


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

    def test_a_softmax_of_a_softmax_is_refused(self):
        g = Graph()
        g.softmax(g.softmax(g.input("x", (1, 2))))
        with self.assertRaises(CompileError) as caught:
            ranges_of(g, {"x": [[1, 2]]})
        self.assertEqual(str(caught.exception), "softmax: node 1 shares its scale with both a "
                         "softmax's input (1/16) and a softmax's result (1/127); put a matmul "
                         "between them")

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


class Notes(unittest.TestCase):
    def notes(self, g, sample, ranges=None):
        return capra.plan_scales(g, [sample], ranges)[1]

    def test_nothing_saturates_at_its_measured_range(self):
        g = Graph()
        g.input("x", (1, 2))
        self.assertEqual(self.notes(g, {"x": [[0.1, -0.7]]}), [])

    def test_a_range_below_the_measured_one_is_noted(self):
        g = Graph()
        g.tag(g.input("x", (1, 1)), "t")
        self.assertEqual(self.notes(g, {"x": [[3]]}, {"t": 2.0}),
                         ["node 0 (input): values up to 3 saturate at 2"])

    def test_a_softmax_of_large_numbers_is_noted(self):
        g = Graph()
        g.softmax(g.input("x", (1, 2)))
        self.assertEqual(self.notes(g, {"x": [[10, -3]]}),
                         ["node 0 (input): values up to 10 saturate at 7.938"])


class Vanishing(unittest.TestCase):
    def notes(self, op, x, y):
        g = Graph()
        getattr(g, op)(g.input("x", (1, 2)), g.input("y", (1, 2)))
        return capra.plan_scales(g, [{"x": [x], "y": [y]}])[1]

    def test_values_below_half_a_step_vanish(self):
        self.assertEqual(self.notes("concat_rows", [1, 3], [1000, -1000]),
                         ["node 0 (input): values up to 3 vanish; a step is 7.874"])

    def test_what_a_step_can_tell_from_zero_and_zeros_need_no_note(self):
        self.assertEqual(self.notes("concat_rows", [1, 4], [1000, -1000]), [])
        self.assertEqual(self.notes("concat_rows", [0, 0], [1000, -1000]), [])


class Calibration(unittest.TestCase):
    def test_nothing_to_measure_is_refused(self):
        g = Graph()
        g.output(g.input("x", (1, 2)), "o")
        with self.assertRaises(CompileError) as caught:
            capra.compile_graph(g, [])
        self.assertEqual(str(caught.exception), "plan_scales: nothing tells the range of node 0 "
                         "(input); give a calibration sample, or a range for its tag")

    def test_samples_that_are_not_the_inputs_are_refused(self):
        g = Graph()
        g.output(g.input("x", (1, 2)), "o")
        nan = float("nan")
        for sample, message in (
                ({}, "input x: missing"),
                ({"x": [[1, 2]], "y": [[1]]}, "input y: the program has no such input; it takes x"),
                ({"x": [[1]]}, "input x: its shape must be 1 x 2, not 1 x 1"),
                ({"x": [[nan, 1]]}, "input x: every value must be a finite number, not nan")):
            with self.assertRaises(CompileError) as caught:
                capra.compile_graph(g, [sample])
            self.assertEqual(str(caught.exception), message)

    def test_ranges_that_are_no_size_are_refused(self):
        g = Graph()
        g.output(g.tag(g.input("x", (1, 2)), "x"), "o")
        for value in (-1.0, float("nan"), float("inf")):
            with self.assertRaises(CompileError) as caught:
                capra.compile_graph(g, [{"x": [[1, 2]]}], ranges={"x": value})
            self.assertEqual(str(caught.exception), f"plan_scales: range {value} of tag x must be "
                                                    "a finite number, 0 or more")

    def test_ranges_alone_are_enough(self):
        g = Graph()
        g.matmul(g.tag(g.input("x", (1, 1)), "x"), g.weight("w", [[4]]))
        g.tag(2, "y")
        self.assertEqual(ranges_of(g, x=2.0, y=6.0), {0: 2, 1: 4, 2: 6})


class Places(unittest.TestCase):
    def test_the_parts_of_a_concatenation_lie_in_it(self):
        g = Graph()
        x, y, z = (g.input(name, (rows, 4)) for name, rows in (("x", 1), ("y", 2), ("z", 3)))
        inner = g.concat_rows(x, y)
        outer = g.concat_rows(z, inner)
        self.assertEqual(places(g), {outer: Place(outer, 0), z: Place(outer, 0),
                                     inner: Place(outer, 12), x: Place(outer, 12),
                                     y: Place(outer, 16)})

    def test_a_fused_matmul_lies_where_its_relu_does(self):
        g = Graph()
        product = g.matmul(g.input("x", (1, 2)), g.weight("w", [[1, 1, 1], [1, 1, 1]]))
        relu = g.relu(product)
        whole = g.concat_rows(g.input("y", (2, 3)), relu)
        place = places(g)
        self.assertEqual((place[product], place[relu]), (Place(whole, 6), Place(whole, 6)))

    def test_slices_lie_at_rows_of_their_source(self):
        g = Graph()
        x, y = g.input("x", (2, 3)), g.input("y", (4, 3))
        early = g.slice_rows(y, 1, 3)           # before y gets its place in the concatenation
        whole = g.concat_rows(x, y)
        late = g.slice_rows(g.slice_rows(whole, 1, 4), 2, 2)
        place = places(g)
        self.assertEqual(place[early], Place(whole, 9))
        self.assertEqual((place[late - 1], place[late]), (Place(whole, 3), Place(whole, 9)))

    def test_an_output_lies_where_its_source_does(self):
        g = Graph()
        view = g.slice_rows(g.input("x", (3, 2)), 2, 1)
        stored = g.output(view, "o")
        self.assertEqual(places(g)[stored], Place(0, 4))


class Lives(unittest.TestCase):
    def lives(self, g):
        return lifetimes(g, places(g))

    def test_a_buffer_lives_from_its_writer_to_its_last_reader(self):
        g = Graph()
        x = g.input("x", (2, 2))
        a = g.softmax(x)
        b = g.add(a, a)
        c = g.add(b, a)
        self.assertEqual(self.lives(g), {x: (a, a), a: (a, c), b: (b, c), c: (c, c)})

    def test_a_view_keeps_its_buffer_alive(self):
        g = Graph()
        x = g.input("x", (4, 2))
        view = g.slice_rows(g.slice_rows(x, 0, 3), 1, 1)
        other = g.softmax(g.input("y", (2, 2)))
        last = g.argmax(view)
        self.assertEqual(self.lives(g)[x], (1, last))
        self.assertEqual(self.lives(g)[other], (other, other))

    def test_a_concatenation_lives_from_its_first_part(self):
        g = Graph()
        x = g.input("x", (2, 2))
        part = g.softmax(x)
        g.argmax(x)
        whole = g.concat_rows(g.add(x, x), part)
        self.assertEqual(self.lives(g)[whole], (part, whole))


class FirstFit(unittest.TestCase):
    def test_the_first_block_that_is_large_enough(self):
        a = Allocator(100)
        self.assertEqual([a.take(size, "t") for size in (10, 20, 30, 40)], [0, 10, 30, 60])
        a.release(10, 20)
        a.release(60, 40)
        self.assertEqual(a.take(25, "t"), 60)   # does not fit the 20 words at 10
        self.assertEqual(a.take(5, "t"), 10)    # the first that fits, not the smallest
        self.assertEqual(a.take(15, "t"), 15)   # the rest of it
        self.assertEqual(a.take(15, "t"), 85)

    def test_released_neighbours_join_in_any_order(self):
        for order in ((0, 1, 2), (0, 2, 1), (2, 1, 0), (1, 0, 2)):
            a = Allocator(30)
            blocks = [a.take(10, "t") for _ in range(3)]
            for i in order:
                a.release(blocks[i], 10)
            self.assertEqual(a.take(30, "t"), 0, order)

    def test_blocks_apart_do_not_join(self):
        a = Allocator(25)
        for size in (10, 10, 5):
            a.take(size, "t")
        a.release(0, 10)
        a.release(20, 5)
        with self.assertRaises(CompileError) as caught:
            a.take(11, "softmax 7")
        self.assertEqual(str(caught.exception), "softmax 7 needs 11 words of scratchpad; the "
                         "largest free block has 10 of 25")

    def test_the_peak_stays(self):
        a = Allocator(100)
        a.take(60, "t")
        a.release(0, 60)
        a.take(10, "t")
        self.assertEqual(a.high, 60)

    def test_a_full_scratchpad_has_no_words_left(self):
        a = Allocator(10)
        a.take(10, "t")
        with self.assertRaises(CompileError) as caught:
            a.take(1, "add 3")
        self.assertEqual(str(caught.exception),
                         "add 3 needs 1 words of scratchpad; the largest free block has 0 of 10")


if __name__ == "__main__":
    unittest.main()
