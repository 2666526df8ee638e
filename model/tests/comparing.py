"""Compare long sequences in a test: unittest's own diff of some hundred numbers takes minutes."""

from itertools import zip_longest


def assert_same(test, got, expected, what=""):
    """Fail unless `got` equals `expected`, with the first place where they differ."""
    if got == expected:
        return
    for place, (one, other) in enumerate(zip_longest(got, expected, fillvalue="nothing")):
        if one != other:
            test.fail(f"{what}[{place}] is {one!r:.200}, expected {other!r:.200}")
    test.fail(f"{what} is a {type(got).__name__}, expected a {type(expected).__name__}")
