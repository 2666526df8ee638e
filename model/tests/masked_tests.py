"""The battery of masked_softmax: random graphs, the rule, junk, its price, and refusals.

Its parts, each of which returns its problems:

1. check_graphs    random graphs around masked softmaxes through capra_tests' checks (a) to (e)
2. check_rule      the program's integers are the rule's, worked out here from the chip's arithmetic
3. check_junk      words left in the scratchpad by someone else change nothing
4. check_price     a row in one run costs what a prefix costs; one in several, its copies
5. check_errors    bad graphs are refused

causal_softmax, the case of prefixes, has a battery of its own (causal_tests).
"""

import unittest

import paths
import battery
import capra
import capra_tests
from capra import Graph
from capra_random import LOGIT, PROBABILITY
from causal_tests import USES, CausalMaker
from ga2_isa import cycle_counts

QUICK = range(30)


# ---- 1: random graphs ----------------------------------------------------------------------------

class MaskedMaker(CausalMaker):
    """Graphs in the making that know masked_softmax."""

    def masked(self, a):
        """The masked softmax of `a`, whose numbers suit a softmax."""
        self.pin[self.group[a]] = LOGIT
        rows, columns = self.shape(a)
        seen = [self.columns(columns) for _ in range(rows)]
        node = self.note(self.g.masked_softmax(a, seen), 1.2 / columns, self.behind(a))
        self.pin[self.group[node]] = PROBABILITY
        return node

    def columns(self, count):
        """What a row sees: a run anywhere, a single column, all, or any columns at all."""
        kind = self.rng.randrange(5)
        if kind == 0:
            first = self.rng.randrange(count)
            return range(first, first + 1 + self.rng.randrange(count - first))
        if kind == 1:
            return [self.rng.randrange(count)]
        if kind == 2:
            return list(range(count))
        return sorted(self.rng.sample(range(count), 1 + self.rng.randrange(count)))

    def causal(self, a, first):
        """The other softmax of a use: masked, too."""
        return self.masked(a)


def masked_graph(seed):
    """A Case of two masked softmaxes."""
    m = MaskedMaker(seed)
    for _ in range(2):
        m.use_causal(m.masked(m.scores(7 + m.rng.randrange(8))), m.rng.choice(USES))
    return m.case()


def check_graphs(seeds):
    """Problems of random graphs around masked softmaxes, by checks (a) to (e)."""
    return capra_tests.check_cases(masked_graph, seeds, battery.BOUND, stagewise=True)[0]


# ---- 2: the rule, in integers --------------------------------------------------------------------

def check_rule(seeds):
    """After a run, a row is the chip's softmax of the columns it sees, requantized; else zeros."""
    return battery.check_rule(masked_graph, seeds, lambda seen, width: seen)


# ---- 3: junk -------------------------------------------------------------------------------------

def check_junk(seeds):
    """Words left in the scratchpad by someone else change nothing."""
    return battery.check_junk(masked_graph, seeds)


# ---- 4: the price --------------------------------------------------------------------------------

def cycles(seen, columns):
    """Cycles of a program that is one masked softmax."""
    g = Graph()
    g.output(g.masked_softmax(g.input("x", (len(seen), columns)), seen), "p")
    return cycle_counts(capra.compile_graph(g, ()).code)[0]


def check_price():
    """Problems of prices: a requantization of w words takes 4 + w cycles, a softmax 49 + 3 w."""
    whole = cycles([range(9)], 9)
    prices = {
        "the run 0 to 5": (range(6), -3 * 3 + (4 + 3)),
        "the run 3 to 8": (range(3, 9), -3 * 3 + (4 + 3)),
        "the run 2 to 6": (range(2, 7), -3 * 4 + (4 + 2) + (4 + 2)),
        "0 to 3 and 6": ([0, 1, 2, 3, 6], -3 * 4 + (4 + 2) + (4 + 2)    # zeros
                         + (4 + 4) + (4 + 1) + (4 + 1)),                # copied there, and back
        "0 to 3 and 8": ([0, 1, 2, 3, 8], -3 * 4 + (4 + 4) + (4 + 4) + (4 + 1) + (4 + 1)),
        "1, 4 and 7": ([1, 4, 7], -3 * 6 + 4 * 4 + 6 + 3 * (4 + 1) + 2 * (4 + 1)),
    }
    for name, (seen, more) in prices.items():
        if cycles([seen], 9) != whole + more:
            yield (f"check_price: {name} of 9 columns: {cycles([seen], 9)} cycles, not "
                   f"{whole + more}")


# ---- 5: refusals ---------------------------------------------------------------------------------

def masked(seen):
    return lambda g: g.masked_softmax(g.input("x", (2, 5)), seen)


REFUSED = {
    "too few rows": (
        masked([[0]]),
        "masked_softmax: seen must be a list of columns for each of the 2 rows of node 0, not "
        "[[0]]"),
    "too many rows": (
        masked([[0], [1], [2]]),
        "masked_softmax: seen must be a list of columns for each of the 2 rows of node 0, not "
        "[[0], [1], [2]]"),
    "columns that are no list": (
        masked([[0], 3]),
        "masked_softmax: seen must be a list of columns for each of the 2 rows of node 0, not "
        "[[0], 3]"),
    "nothing at all": (
        masked(None),
        "masked_softmax: seen must be a list of columns for each of the 2 rows of node 0, not "
        "None"),
    "a row that sees nothing": (
        masked([[0], []]),
        "masked_softmax: row 1 of node 0 would see 0 columns; it must see at least one"),
    "a column past the end": (
        masked([[0], [1, 5]]),
        "masked_softmax: row 1 would see column 5 of node 0, which has columns 0 to 4"),
    "a negative column": (
        masked([[-1, 2], [1]]),
        "masked_softmax: row 0 would see column -1 of node 0, which has columns 0 to 4"),
    "a column that is no integer": (
        masked([[True], [1]]),
        "masked_softmax: row 0 would see column True of node 0, which has columns 0 to 4"),
    "a column twice": (
        masked([[0, 2, 2], [1]]),
        "masked_softmax: row 0 of node 0 would see columns [0, 2, 2]; name each once, in ascending "
        "order"),
    "columns that descend": (
        masked([[0], [3, 1]]),
        "masked_softmax: row 1 of node 0 would see columns [3, 1]; name each once, in ascending "
        "order"),
    "an argmax's indices": (
        lambda g: g.masked_softmax(g.argmax(g.input("x", (2, 5))), [[0], [0]]),
        "masked_softmax: node 1 is argmax; its indices cannot be an operand"),
    "a node that is not there": (
        lambda g: g.masked_softmax(7, [[0]]),
        "masked_softmax: 7 is not a node; there are 0"),
}


def check_errors():
    """Bad graphs that were accepted, or refused in other words."""
    return battery.wrong_words(REFUSED)


# ---- tests ---------------------------------------------------------------------------------------

class Battery(unittest.TestCase):
    def test_random_graphs_mean_what_they_say(self):
        problems, worst = capra_tests.check_cases(masked_graph, QUICK, battery.BOUND,
                                                  stagewise=True)
        self.assertEqual(problems, [])
        self.assertLess(worst, 0.8 * battery.BOUND)

    def test_the_integers_are_the_rules(self):
        self.assertEqual(check_rule(QUICK), [])

    def test_junk_in_the_scratchpad_does_not_leak(self):
        self.assertEqual(check_junk(QUICK), [])

    def test_the_price_is_that_of_the_copies(self):
        self.assertEqual(list(check_price()), [])

    def test_bad_graphs_are_refused_in_these_words(self):
        self.assertEqual(check_errors(), [])


class Meaning(unittest.TestCase):
    """Small cases worked out by hand."""

    def test_a_hidden_score_changes_nothing_however_large(self):
        g = Graph()
        g.output(g.masked_softmax(g.input("x", (2, 4)), [[0, 2], [1, 3]]), "p")
        P = capra.compile_graph(g, ())
        low = capra.run(P, {"x": [[1.0, -7.0, 1.0, -7.0], [-7.0, 0.0, -7.0, -7.0]]})
        high = capra.run(P, {"x": [[1.0, 7.9, 1.0, 7.9], [7.9, 0.0, 7.9, -7.0]]})
        self.assertEqual(low, high)
        self.assertEqual(low["p"][0], [[64, 0, 64, 0], [0, 127, 0, 0]])

    def test_prefixes_make_the_program_of_a_causal_softmax(self):
        masked, causal = Graph(), Graph()
        masked.output(masked.masked_softmax(masked.input("x", (3, 6)),
                                            [[0, 1], [0, 1, 2], [0, 1, 2, 3]]), "p")
        causal.output(causal.causal_softmax(causal.input("x", (3, 6)), 2), "p")
        programs = [capra.compile_graph(g, ()).code for g in (masked, causal)]
        self.assertEqual(*programs)


class Generator(unittest.TestCase):
    def test_rows_in_one_run_and_in_several_are_made_from_every_source(self):
        made = set()
        for seed in QUICK:
            g = masked_graph(seed).graph
            for node in g.nodes:
                if node.op == "masked_softmax":
                    source = g.nodes[node.ins[0]].op
                    made.update((source, seen[-1] - seen[0] >= len(seen), seen[0] > 0)
                                for seen in node.attrs["seen"])
        self.assertEqual({kind for kind in made if kind[0] != "add"},
                         {(source, several, later) for source in ("matmul", "input", "slice",
                                                                  "concat")
                          for several in (False, True) for later in (False, True)})


class OnTheRtl(unittest.TestCase):
    def test_both_simulators_agree_with_the_model(self):
        battery.replay(self, masked_graph, range(4))


if __name__ == "__main__":
    unittest.main()
