"""Tests of the limit: its parts counted by hand, and no tiling below it."""

import unittest

import paths
import limit
from ga2_isa import build, cycle_counts


class Floor(unittest.TestCase):
    """The cycles no program for a block can go below."""

    def test_it_counts_one_load_and_the_products_of_all_weights(self):
        code = [build("LD", len=2304)]
        for inner, columns in ((16, 16),) * 4 + ((16, 32), (32, 16), (16, 16)):
            code += [build("MM", M=1, K=inner, N=4)] * (columns // 4)
        self.assertEqual(limit.floor(1), cycle_counts(code + [build("HALT")])[0])

    def test_no_other_tiling_is_cheaper(self):
        def tiles(count):
            """All ways to cut `count` into pieces of 1 to 4, in order."""
            if count == 0:
                yield []
            for size in range(1, min(4, count) + 1):
                for rest in tiles(count - size):
                    yield [size] + rest

        for m in (1, 3, 5, 6):
            for inner, columns in ((16, 8), (32, 6)):
                costs = [sum(limit.busy(M, inner, N) for M in rows for N in widths)
                         for rows in tiles(m) for widths in tiles(columns)]
                self.assertEqual(limit.product_floor(m, inner, columns), min(costs))


if __name__ == "__main__":
    unittest.main()
