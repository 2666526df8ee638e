"""The limit: cycles that no program for a block goes below which loads the weights for it."""

from ga2_isa import TILE, build, cycle_counts
from tiny_lm import MATRICES, SHAPES


def floor(m):
    """Cycles that no program for a block of m rows goes below on this hardware.

    The target's weights are loaded, at best in one LD, and the block's rows multiplied by them; one
    unit works at a time.
    """
    shapes = [SHAPES[name] for name in MATRICES]
    words = sum(rows * columns for rows, columns in shapes)
    load = cycle_counts([build("LD", len=words), build("HALT")])[0]
    return load + sum(product_floor(m, *shape) for shape in shapes)


def product_floor(m, inner, columns):
    """Cycles of m rows times a weight of inner x columns.

    An MM of M rows costs M * (inner + N + 1) and a part that does not depend on M. The first adds
    up to the same however m is cut into tiles, so the fewest tiles are cheapest; columns likewise.
    """
    return sum(busy(min(TILE, m - row), inner, min(TILE, columns - column))
               for row in range(0, m, TILE) for column in range(0, columns, TILE))


def busy(M, inner, N):
    """Cycles of one MM, fetch and issue included."""
    halt = [build("HALT")]
    tile = [build("MM", M=M, K=inner, N=N)]
    return cycle_counts(tile + halt)[0] - cycle_counts(halt)[0]
