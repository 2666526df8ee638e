"""The law of sampled runs, exactly: every guess, acceptance and draw enumerated, in fractions.

`law` runs the decoder's own block under a chance that does not choose: where the block asks, it is
run once for each answer, and the answers' chances are multiplied. What comes out is the chance of
each outcome, to the last digit. `plain_law` needs no such thing: it multiplies w_j / sum(w) along
the plain steps.
"""

from fractions import Fraction


class Fork(Exception):
    """The block asks what has not been answered yet; answers: [(answer, its chance)]."""

    def __init__(self, answers):
        super().__init__()
        self.answers = [(answer, chance) for answer, chance in answers if chance]


class Told:
    """A chance that gives the answers it was told, and forks behind the last."""

    def __init__(self, answers):
        self.answers = list(answers)
        self.asked = 0
        self.thrown = {}                        # position: (weights, token) the darts gave
        self.used = set()                       # (position, purpose) whose bits are spent

    def answer(self, answers):
        if self.asked == len(self.answers):
            raise Fork(answers)
        self.asked += 1
        return self.answers[self.asked - 1]

    def draw(self, position, weights):
        before = self.thrown.get(position)
        token = self.answer(shares(weights) if before is None else again(weights, *before))
        self.thrown.setdefault(position, (weights, token))
        return token

    def spend(self, *bits):
        if bits in self.used:
            raise ValueError(f"the random bits of position {bits[0]}, {bits[1]} are used twice")
        self.used.add(bits)

    def pick(self, position, purpose, weights):
        self.spend(position, purpose)
        return self.answer(shares(weights))

    def below(self, position, purpose, share, whole):
        self.spend(position, purpose)
        chance = min(Fraction(1), Fraction(share, whole))
        return self.answer([(True, chance), (False, 1 - chance)])


def shares(weights):
    """[(token, its chance)] of a draw."""
    return [(token, Fraction(weight, sum(weights))) for token, weight in enumerate(weights)]


def again(weights, first, token):
    """[(token, chance)] where the darts that gave `token` at weights `first` are thrown again.

    The first dart below either decides both if it is below both, at one token; else only the one
    it is below, and the other's darts go on.
    """
    landed = sum(map(max, weights, first))
    known = Fraction(first[token], sum(first))
    chances = []
    for other in range(len(weights)):
        both = min(weights[token], first[token]) if other == token else 0
        lower = max(0, first[token] - weights[token])
        upper = max(0, weights[other] - first[other])
        joint = (Fraction(both, landed)
                 + Fraction(lower, landed) * Fraction(weights[other], sum(weights))
                 + Fraction(upper, landed) * known)
        chances.append((other, joint / known))
    return chances


def outcomes(run):
    """{result: chance} of run(chance) over all that chance may answer."""
    found = {}
    paths = [((), Fraction(1))]
    while paths:
        answers, chance = paths.pop()
        try:
            result = run(Told(answers))
        except Fork as fork:
            paths += [((*answers, answer), chance * share) for answer, share in fork.answers]
        else:
            found[result] = found.get(result, 0) + chance
    return found


def law(chip, start, n):
    """{(start, t1, .., tn): Fraction} of the chip's sampled runs of n tokens."""
    targets = remembered(chip.block_weights)
    done = {}
    open_ = {(start,): Fraction(1)}
    while open_:
        tokens = min(open_, key=len)            # what leads to it has been followed by now
        chance = open_.pop(tokens)
        found = outcomes(lambda told: tuple(chip.block(list(tokens), n, told, targets)))
        for new, share in found.items():
            longer = (tokens + new)[:n + 1]
            into = done if len(longer) == n + 1 else open_
            into[longer] = into.get(longer, 0) + chance * share
    return done


def plain_law(chip, start, n):
    """{(start, t1, .., tn): Fraction} of plain sampling with the chip's plain steps."""
    found = {(start,): Fraction(1)}
    for _ in range(n):
        found = {(*tokens, token): chance * share
                 for tokens, chance in found.items()
                 for token, share in shares(chip.plain_weights(tokens)) if share}
    return found


def variation(one, other):
    """The total variation between two laws: the most by which an event's chance differs."""
    return sum(abs(one.get(run, 0) - other.get(run, 0)) for run in {**one, **other}) / 2


def remembered(function):
    """A function of lists that asks `function` once for each arguments."""
    known = {}

    def ask(*arguments):
        key = tuple(map(tuple, arguments))
        if key not in known:
            known[key] = function(*arguments)
        return known[key]

    return ask
