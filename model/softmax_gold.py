"""Fixed-point softmax: int8 scores in, unsigned Q0.16 probabilities out (65536 is 1.0).

A score q stands for the real number q / 16. With m the largest score,

    e_i = T[m - x_i],  s = sum of e_i,  r = floor(2**38 / s),  p_i = (e_i * r + 2**21) >> 22

and T[d] = round(65535 * exp(-d / 16)): one table, one division, one product a score.

The reference for rtl/ga2_sm.v (softmax), rtl/exp_lut.v (EXP_TABLE) and rtl/divu.v (divu).
"""

import math

import quant

ONE = 1 << 16
DIVIDER_BITS = 40
EXP_TABLE = tuple(quant.round_away(65535 * math.exp(-d / 16)) for d in range(256))


def divu(numerator, denominator):
    """Quotient of two unsigned 40-bit integers; dividing by zero gives all ones."""
    if denominator == 0:
        return (1 << DIVIDER_BITS) - 1
    return numerator // denominator


def softmax(scores):
    """Probabilities (list of ints, 65536 = 1.0) of a list of int8 `scores` (value = score / 16)."""
    largest = max(scores)
    weights = [EXP_TABLE[largest - score] for score in scores]
    reciprocal = divu(1 << 38, sum(weights))
    return [(weight * reciprocal + (1 << 21)) >> 22 for weight in weights]
