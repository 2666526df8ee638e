"""The battery of causal_softmax: random graphs, refusals, and the row-by-row form beside it.

Its parts, each of which returns its problems:

1. check_graphs    random graphs built around causal softmaxes through capra_tests' checks (a) to
                   (e): reuse on and off, interpreter, every tensor, stagewise, floating point
2. check_rule      the program's integers are the rule's, worked out here from the chip's arithmetic
3. check_junk      words left in the scratchpad by someone else change nothing
4. check_views     attention with it equals attention with the chapter's views, bit for bit
5. check_errors    bad graphs are refused
"""

import random
import unittest

import paths
import battery
import capra
import capra_tests
from capra import Graph
from capra_random import LOGIT, PROBABILITY, Maker
from capra_scales import plan_scales
from ga2_isa import cycle_counts

USES = ("values", "argmax", "add", "slice", "concat", "output")


# ---- 1: random graphs ----------------------------------------------------------------------------

class CausalMaker(Maker):
    """Graphs in the making that know causal_softmax."""

    def causal(self, a, first):
        """The causal softmax of `a`, whose numbers suit a softmax."""
        self.pin[self.group[a]] = LOGIT
        node = self.note(self.g.causal_softmax(a, first), 1.2 / self.shape(a)[1], self.behind(a))
        self.pin[self.group[node]] = PROBABILITY
        return node

    def scores(self, columns):
        """A source of 1 to 6 rows: a product, an input, a slice or a concatenation."""
        rows = 1 + self.rng.randrange(6)
        kind = self.rng.choice(("product", "product", "input", "slice", "concat"))
        if kind == "product":
            return self.times_weight(self.input(rows), columns, size=1.5)
        if kind == "slice":
            source = self.input(rows + 2, columns, size=4.0)
            return self.tied(self.note(self.g.slice_rows(source, 1, rows), 1.8, 0), source)
        if kind == "concat" and rows > 1:
            parts = self.input(1, columns, size=4.0), self.input(rows - 1, columns, size=4.0)
            node = self.note(self.g.concat_rows(*parts), 1.8, 0)
            return self.tied(node, *parts)
        return self.input(rows, columns, size=4.0)

    def use_causal(self, a, use):
        """Feed the probabilities `a` to an operation and put the result out."""
        rows, columns = self.shape(a)
        if use == "values":
            a = self.product(a, self.input(columns))
        elif use == "argmax":
            a = self.g.argmax(a)
        elif use == "add":
            other = self.input(rows, columns, size=4.0)
            a = self.g.add(a, self.causal(other, columns - rows + 1))
        elif use == "slice":
            a = self.times_weight(self.slice(a))
        elif use == "concat":
            other = self.causal(self.input(2, columns, size=4.0), 1)
            both = self.note(self.g.concat_rows(a, other), self.size[a], 2)
            a = self.times_weight(self.tied(both, a, other))
        self.out(a)


def causal_graph(seed):
    """A Case of two causal softmaxes, some with columns that no row sees."""
    m = CausalMaker(seed)
    for _ in range(2):
        columns = 7 + m.rng.randrange(8)
        source = m.scores(columns)
        rows = m.shape(source)[0]
        first = columns - rows + 1
        if m.rng.randrange(2):
            first = 1 + m.rng.randrange(first)
        m.use_causal(m.causal(source, first), m.rng.choice(USES))
    return m.case()


def check_graphs(seeds):
    """Problems of random graphs around causal softmaxes, by checks (a) to (e)."""
    return capra_tests.check_cases(causal_graph, seeds, battery.BOUND, stagewise=True)[0]


# ---- 2: the rule, in integers --------------------------------------------------------------------

def check_rule(seeds):
    """After a run, row i is the chip's softmax of its prefix, requantized; behind it are zeros."""
    return battery.check_rule(causal_graph, seeds, lambda seen, width: [
        range(min(len(seen[0]) + row, width)) for row in range(len(seen))])


# ---- 3: junk -------------------------------------------------------------------------------------

def check_junk(seeds):
    """Words left in the scratchpad by someone else change nothing."""
    return battery.check_junk(causal_graph, seeds)


# ---- 4: against the chapter's views --------------------------------------------------------------

def attention(m, c, D, row_by_row):
    """Attention of m queries, row i over the first c + i + 1 of c + m keys and values (D wide)."""
    g = Graph()
    q, keys, values = (g.tag(g.input(name, shape), name)
                       for name, shape in (("q", (m, D)), ("k", (c + m, D)), ("v", (c + m, D))))
    if not row_by_row:
        scores = g.matmul(q, keys, transpose_b=True, scale=0.5)
        rows = g.tag(g.matmul(g.causal_softmax(scores, c + 1), values), "attn")
    else:
        rows = None
        for i in range(m):
            seen = c + i + 1
            scores = g.matmul(g.slice_rows(q, i, 1), g.slice_rows(keys, 0, seen), transpose_b=True,
                              scale=0.5)
            row = g.tag(g.matmul(g.softmax(scores), g.slice_rows(values, 0, seen)), "attn")
            rows = row if rows is None else g.tag(g.concat_rows(rows, row), "attn")
    g.output(rows, "attn")
    return g


def check_views(seeds):
    """One product for all rows gives the integers of one row after the other."""
    problems = []
    for seed in seeds:
        R = random.Random(seed)
        m, c, D = 1 + R.randrange(9), R.randrange(14), 1 + R.randrange(8)
        inputs = {name: [[R.uniform(-2, 2) for _ in range(D)] for _ in range(rows)]
                  for name, rows in (("q", m), ("k", c + m), ("v", c + m))}
        ranges = {"q": 2.0, "k": 2.0, "v": 2.0, "attn": 1.5}
        together, apart = (capra.compile_graph(attention(m, c, D, row_by_row), (), ranges=ranges)
                           for row_by_row in (False, True))
        if capra.run(together, inputs) != capra.run(apart, inputs):
            problems.append(f"check_views {seed}: {m} rows behind {c} differ from row by row")
    return problems


# ---- 5: refusals ---------------------------------------------------------------------------------

REFUSED = {
    "a first row that sees nothing": (
        lambda g: g.causal_softmax(g.input("x", (2, 5)), 0),
        "causal_softmax: row 0 of node 0 would see 0 columns; it must see at least one"),
    "a negative first": (
        lambda g: g.causal_softmax(g.input("x", (2, 5)), -3),
        "causal_softmax: row 0 of node 0 would see -3 columns; it must see at least one"),
    "a last row that sees past the end": (
        lambda g: g.causal_softmax(g.input("x", (3, 5)), 4),
        "causal_softmax: row 2 would see columns 0 to 5 of node 0, which has columns 0 to 4"),
    "a single row that sees past the end": (
        lambda g: g.causal_softmax(g.input("x", (1, 5)), 6),
        "causal_softmax: row 0 would see columns 0 to 5 of node 0, which has columns 0 to 4"),
    "an argmax's indices": (
        lambda g: g.causal_softmax(g.argmax(g.input("x", (2, 5))), 1),
        "causal_softmax: node 1 is argmax; its indices cannot be an operand"),
    "a matmul under a relu": (
        lambda g: under_a_relu(g),
        "causal_softmax: matmul 2 feeds a relu, which replaces its values; use the relu's node"),
    "a relu of it": (
        lambda g: g.relu(g.causal_softmax(g.input("x", (2, 5)), 1)),
        "relu: its input is node 1, masked_softmax; only a matmul's requantizer can apply it"),
    "a node that is not there": (
        lambda g: g.causal_softmax(7, 1),
        "causal_softmax: 7 is not a node; there are 0"),
    "a softmax's probabilities": (
        lambda g: g.causal_softmax(g.softmax(g.input("x", (2, 5))), 1),
        "softmax: node 1 shares its scale with both a softmax's input (1/16) and a softmax's "
        "result (1/127); put a matmul between them"),
    "more rows than the scratchpad holds": (
        lambda g: g.causal_softmax(g.input("x", (32, 64)), 1),
        "a temporary of masked_softmax 1 needs 2048 words of scratchpad; the largest free block "
        "has 0 of 4096"),
}


def under_a_relu(g):
    p = g.matmul(g.input("a", (2, 3)), g.input("b", (3, 4)))
    g.relu(p)
    g.causal_softmax(p, 1)


def check_errors():
    """Bad graphs that were accepted, or refused in other words."""
    return battery.wrong_words(REFUSED)


# ---- tests ---------------------------------------------------------------------------------------

class Battery(unittest.TestCase):
    def test_random_graphs_mean_what_they_say(self):
        problems, worst = capra_tests.check_cases(causal_graph, range(60), battery.BOUND,
                                                  stagewise=True)
        self.assertEqual(problems, [])
        self.assertLess(worst, 0.8 * battery.BOUND)

    def test_the_integers_are_the_rules(self):
        self.assertEqual(check_rule(range(60)), [])

    def test_junk_in_the_scratchpad_does_not_leak(self):
        self.assertEqual(check_junk(range(30)), [])

    def test_all_rows_at_once_are_the_rows_one_by_one(self):
        self.assertEqual(check_views(range(60)), [])

    def test_bad_graphs_are_refused_in_these_words(self):
        self.assertEqual(check_errors(), [])


class Meaning(unittest.TestCase):
    """Small cases worked out by hand."""

    def test_in_floating_point_the_prefix_is_a_softmax_and_the_rest_is_zero(self):
        g = Graph()
        p = g.causal_softmax(g.input("x", (3, 4)), 1)
        rows = capra.evaluate(g, {"x": [[5.0, 9.0, 9.0, 9.0], [1.0, 1.0, 9.0, 9.0],
                                        [0.0, 0.0, 0.0, 9.0]]})[p]
        self.assertEqual(rows, [[1.0, 0.0, 0.0, 0.0], [0.5, 0.5, 0.0, 0.0], [1 / 3] * 3 + [0.0]])

    def test_a_hidden_score_changes_nothing_however_large(self):
        g = Graph()
        g.output(g.causal_softmax(g.input("x", (2, 3)), 1), "p")
        P = capra.compile_graph(g, (), ranges={})
        low = capra.run(P, {"x": [[1.0, -9.0, -9.0], [1.0, 1.0, -9.0]]})
        high = capra.run(P, {"x": [[1.0, 7.9, 7.9], [1.0, 1.0, 7.9]]})
        self.assertEqual(low, high)
        self.assertEqual(low["p"][0], [[127, 0, 0], [64, 64, 0]])

    def test_rows_that_see_everything_need_no_zeros(self):
        causal, plain = Graph(), Graph()
        causal.output(causal.causal_softmax(causal.input("x", (1, 6)), 6), "p")
        plain.output(plain.softmax(plain.input("x", (1, 6))), "p")
        programs = [capra.compile_graph(g, ()) for g in (causal, plain)]
        self.assertEqual(programs[0].code, programs[1].code)

    def test_its_price_is_one_requantization_for_each_row_that_hides_something(self):
        causal, plain = Graph(), Graph()
        causal.output(causal.causal_softmax(causal.input("x", (4, 16)), 13), "p")
        plain.output(plain.softmax(plain.input("x", (4, 16))), "p")
        cycles = [cycle_counts(capra.compile_graph(g, ()).code)[0] for g in (causal, plain)]
        hidden = 3 + 2 + 1
        self.assertEqual(cycles[0] - cycles[1], hidden * (1 - 3) + 3 * (2 + 2))

    def test_its_scales_are_a_softmaxs(self):
        g = Graph()
        x = g.input("x", (2, 5))
        p = g.causal_softmax(x, 2)
        scale, _ = plan_scales(g, [{"x": [[100.0] * 5] * 2}])
        self.assertEqual((scale[x], scale[p]), (1 / 16, 1 / 127))

    def test_the_shape_is_its_sources(self):
        g = Graph()
        node = g.nodes[g.causal_softmax(g.input("x", (3, 7)), 2)]
        self.assertEqual((node.op, node.shape, node.attrs),
                         ("masked_softmax", (3, 7), {"seen": [(0, 1), (0, 1, 2), (0, 1, 2, 3)]}))


class Generator(unittest.TestCase):
    def test_every_source_and_use_is_made_with_and_without_columns_no_row_sees(self):
        sources, uses, edges = set(), set(), set()
        for seed in range(60):
            g = causal_graph(seed).graph
            for node in g.nodes:
                if node.op == "masked_softmax":
                    rows, columns = node.shape
                    sources.add(g.nodes[node.ins[0]].op)
                    uses.update(g.nodes[i].op for i in g.consumers(node.id))
                    edges.add((rows > 1, len(node.attrs["seen"][-1]) == columns))
        self.assertLessEqual({"matmul", "input", "slice", "concat"}, sources)
        self.assertLessEqual({"matmul", "argmax", "add", "slice", "concat", "output"}, uses)
        self.assertEqual(len(edges), 4)


class OnTheRtl(unittest.TestCase):
    def test_both_simulators_agree_with_the_model(self):
        battery.replay(self, causal_graph, range(6))


if __name__ == "__main__":
    unittest.main()
