"""No draft model at all: the run's own past guesses (prompt lookup; Saxena 2023).

The longest ending of the tokens so far that occurs in them before is looked up, the last such place
of several, and what followed there is the guess. Nothing is fitted, nothing runs on the chip. Right
and wrong answers are counted while decoding (policy_lm.trusted), which decides how far to guess.
"""

from host_lm import HostChip
from policy_lm import trusted

SPAN = 2                                        # last tokens that trust is kept by


def lookup(tokens):
    """The token behind the last place where the longest repeated ending occurs, or None.

    The place may overlap the ending: behind 7 7 the guess is 7.
    """
    longest, answer = 0, None
    for end in range(len(tokens) - 1, 0, -1):
        length = 0
        while length < end and tokens[end - 1 - length] == tokens[-1 - length]:
            length += 1
        if length > longest:
            longest, answer = length, tokens[end]
    return answer


class LookupChip(HostChip):
    """The decoder without a draft model; arguments as HostChip's."""

    def ahead(self):
        return trusted(lookup, SPAN)
