"""int8 arithmetic of GA-2: every rounding is to nearest, ties away from zero.

    real number x  --quantize-->  q = round(x / scale), clamped to -127..127
    int32 acc      --requant--->  q = round(acc * mantissa / 2**shift), clamped to -127..127

A positive real multiplier becomes (mantissa, shift) with 2**23 <= mantissa < 2**24, so that the
chip scales with one integer product and one shift.  -128 is never produced.

`requant` is the reference for rtl/requant.v, compared bit for bit.
"""

import math

INT8_MAX = 127
MANTISSA_BITS = 24
SHIFT_MAX = 63


def round_away(x):
    """The integer nearest to the finite real `x`; a tie goes away from zero."""
    size = abs(x)
    whole = math.floor(size)
    if size - whole >= 0.5:
        whole += 1
    return whole if x >= 0 else -whole


def clamp8(value, low=-INT8_MAX):
    """`value` limited to low..127."""
    return max(low, min(INT8_MAX, value))


def quantize(x, scale):
    """The int8 for the real `x` in steps of `scale`, saturated to -127..127.

    Raises ValueError where x is not finite or scale is not positive and finite.
    """
    if not 0 < scale < math.inf:
        raise ValueError(f"quantize: scale {scale} must be a positive finite number")
    ratio = x / scale
    if -INT8_MAX < ratio < INT8_MAX:
        return round_away(ratio)
    if not math.isfinite(x):
        raise ValueError(f"quantize: {x} is not a finite number; int8 has no value for it")
    return INT8_MAX if ratio > 0 else -INT8_MAX


def multiplier(real):
    """(mantissa, shift) with mantissa / 2**shift close to the positive `real`.

    2**23 <= mantissa < 2**24 and 0 <= shift <= 63, the widths of the RQ instruction's fields.
    Raises ValueError for a multiplier that is not positive or does not fit them.
    """
    if not (math.isfinite(real) and real > 0):
        raise ValueError(f"multiplier: {real} must be a positive finite number")
    _, exponent = math.frexp(real)              # real = fraction * 2**exponent, 1/2 <= fraction < 1
    shift = MANTISSA_BITS - exponent            # = 23 - floor(log2(real))
    mantissa = round_away(math.ldexp(real, shift))
    if mantissa == 1 << MANTISSA_BITS:
        mantissa //= 2
        shift -= 1
    if not 0 <= shift <= SHIFT_MAX:
        raise ValueError(f"multiplier: {real} needs a shift of {shift}, outside 0..{SHIFT_MAX}")
    return mantissa, shift


def requant(acc, mantissa, shift, relu=False):
    """Scale the int32 `acc` by mantissa / 2**shift and saturate it to int8 (0..127 with relu).

    Ties round away from zero. The reference for rtl/requant.v, compared bit for bit.
    """
    half = (1 << shift) >> 1
    size = (abs(acc) * mantissa + half) >> shift
    if size > INT8_MAX:
        size = INT8_MAX
    if acc >= 0:
        return size
    return 0 if relu else -size
