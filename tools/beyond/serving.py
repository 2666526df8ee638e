"""One chip with a queue: a discrete-event simulation, pass by pass.

Requests wait in order of arrival. Before each pass the first that wait take the free slots. The
pass then advances every running request by the guesses that are right and one token more. A
request leaves with its last token. Time is in the unit of `cost`.

    cost(shapes)       what a pass takes; shapes: (c, m) of each sequence, m rows behind c cached
    choose(running)    k, the guesses of each sequence in the next pass
"""

import math
import random
from collections import deque, namedtuple

# right[c]: how many guesses behind the token at c are right before the first that is not
Request = namedtuple("Request", "arrival n right")
Served = namedtuple("Served", "arrival first end n")    # times; n: tokens
MOST = 7                                        # guesses a policy may choose
EXPLORE = 64                                    # passes from one look at the draft to the next


class Running:
    """A request on its way: c of its n tokens are there."""

    def __init__(self, request):
        self.request = request
        self.c = 0
        self.first = None

    def shape(self, k):
        """(c, m) of its block with k guesses, no more than it still wants."""
        return self.c, min(k, self.request.n - self.c - 1) + 1


def simulate(requests, slots, cost, choose, record=None):
    """[Served] in order of their end; record(shapes, kept, looked_at) hears of each pass.

    `kept` guesses were right of those `looked_at`: all up to the first wrong one.
    """
    waiting = deque(sorted(requests))
    running, served = [], []
    now = 0.0
    while waiting or running:
        if not running:
            now = max(now, waiting[0].arrival)
        while waiting and len(running) < slots and waiting[0].arrival <= now:
            running.append(Running(waiting.popleft()))
        k = choose(running)
        shapes = [one.shape(k) for one in running]
        now += cost(shapes)
        kept_all = looked_all = 0
        for one, (c, m) in zip(running, shapes):
            kept = min(m - 1, one.request.right[c])
            kept_all += kept
            looked_all += min(kept + 1, m - 1)
            one.c += kept + 1
            one.first = one.first or now
            if one.c >= one.request.n:
                served.append(Served(one.request.arrival, one.first, now, one.request.n))
        running = [one for one in running if one.c < one.request.n]
        if record:
            record(shapes, kept_all, looked_all)
    return served


# ---- policies ------------------------------------------------------------------------------------

def fixed(k):
    """(choose, record) of always k guesses."""
    return lambda running: k, None


def by_load(cost):
    """(choose, record): the k with the most expected tokens per time, for those running now.

    How often a guess is right is counted while serving, starting from nine of ten. Without guesses
    nothing is learned, so every EXPLORE-th pass makes at least one.
    """
    counts = [9, 10]                            # right, looked at
    passes = 0

    def choose(running):
        nonlocal passes
        passes += 1
        chance = counts[0] / counts[1]

        def rate(k):
            shapes = [one.shape(k) for one in running]
            return math.fsum(expected(chance, m - 1) for _, m in shapes) / cost(shapes)

        return max(range(passes % EXPLORE == 0, MOST + 1), key=rate)

    def record(shapes, kept, looked_at):
        counts[0] += kept
        counts[1] += looked_at

    return choose, record


def expected(chance, k):
    """Tokens that k guesses bring, each right with `chance` behind a right one."""
    return k + 1.0 if chance == 1 else (1 - chance ** (k + 1)) / (1 - chance)


# ---- arrivals ------------------------------------------------------------------------------------

def poisson(count, rate, seed, make):
    """`count` Requests with exponential gaps of mean 1 / rate; make(R) -> (n, right) of each."""
    R = random.Random(seed)
    requests = []
    now = 0.0
    for _ in range(count):
        now += -math.log(1 - R.random()) / rate
        requests.append(Request(now, *make(R)))
    return requests


# ---- what is reported ----------------------------------------------------------------------------

def figures(served):
    """{throughput, and mean, median, p99 of the times to first token, between tokens, to the end}.

    Between tokens is a request's time from its first token to its last, over the tokens behind
    the first.
    """
    times = {"first": [one.first - one.arrival for one in served],
             "between": [(one.end - one.first) / (one.n - 1) for one in served if one.n > 1],
             "end": [one.end - one.arrival for one in served]}
    span = max(one.end for one in served) - min(one.arrival for one in served)
    report = {"throughput": sum(one.n for one in served) / span}
    for name, values in times.items():
        values.sort()
        report[name] = {"mean": math.fsum(values) / len(values), "median": quantile(values, 0.5),
                        "p99": quantile(values, 0.99)}
    return report


def quantile(ordered, share):
    """The value that `share` of the ordered values does not exceed (nearest rank)."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


# ---- theory --------------------------------------------------------------------------------------

def pollaczek_khinchine(rate, times):
    """The mean wait of M/G/1 whose service times are equally likely `times`.

    Raises ValueError where the load is 1 or more.
    """
    first = math.fsum(times) / len(times)
    second = math.fsum(time * time for time in times) / len(times)
    if rate * first >= 1:
        raise ValueError(f"load {rate * first:.2f} must be below 1: the queue grows without end")
    return rate * second / (2 * (1 - rate * first))
