"""Tests of capra_memory: where tensors lie, how long their buffers live, the allocator."""

import unittest

import paths
from capra import CompileError, Graph
from capra_memory import Allocator, Place, lifetimes, places


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
