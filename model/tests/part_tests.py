"""The battery of part_rows: random graphs, refusals, and a product for each part beside it.

Its parts, each of which returns its problems:

1. check_graphs    random graphs built around products in parts through capra_tests' checks (a) to
                   (e): reuse on and off, interpreter, every tensor, stagewise, floating point
2. check_apart     every part equals a product of its own, bit for bit
3. check_junk      words left in the scratchpad by someone else change nothing
4. check_errors    bad graphs are refused
"""

import random
import unittest

import paths
import battery
import capra
import capra_tests
from capra import Graph
from capra_random import Maker
from capra_scales import plan_scales
from ga2_isa import cycle_counts

USES = ("behind", "in front", "two parts", "values", "argmax", "add", "slice", "softmax", "output")


# ---- 1: random graphs ----------------------------------------------------------------------------

class PartMaker(Maker):
    """Graphs in the making that cut products into parts."""

    def cut(self, product):
        """[(start, count)] of a product: row after row, or with gaps, overlaps, in any order."""
        rows = self.shape(product)[0]
        if self.rng.randrange(2):
            starts = [0] + [row for row in range(1, rows) if self.rng.randrange(2)]
            return [(start, end - start) for start, end in zip(starts, starts[1:] + [rows])]
        ranges = []
        for _ in range(1 + self.rng.randrange(3)):
            start = self.rng.randrange(rows)
            ranges.append((start, 1 + self.rng.randrange(rows - start)))
        return ranges

    def part(self, product, start, count):
        node = self.note(self.g.part_rows(product, start, count), self.size[product],
                         self.depth[product])
        return self.tied(node, product)

    def use_part(self, a, use):
        """Feed the part `a` to an operation and put the result out."""
        rows, columns = self.shape(a)
        if use in ("behind", "in front"):
            cache = self.input(1 + self.rng.randrange(4), columns)
            both = self.join(*((cache, a) if use == "behind" else (a, cache)))
            a = self.times_weight(both)
        elif use == "two parts":
            other = self.times_weight(self.input(4), columns)
            a = self.times_weight(self.join(a, self.part(other, 1, 2)))
            self.out(self.part(other, 0, 1))
        elif use == "values":
            a = self.product(self.input(self.rows(), rows), a)
        elif use == "argmax":
            a = self.g.argmax(a)
        elif use == "add":
            a = self.g.add(a, self.input(rows, columns))
        elif use == "slice":
            a = self.times_weight(self.slice(a))
        elif use == "softmax":
            a = self.g.softmax(self.times_weight(a, size=1.5))
        self.out(a)

    def join(self, a, b):
        node = self.note(self.g.concat_rows(a, b), max(self.size[a], self.size[b]),
                         max(self.depth[a], self.depth[b]))
        return self.tied(node, a, b)


def part_graph(seed):
    """A Case of two products in parts; their uses stand in random order, far from the product."""
    m = PartMaker(seed)
    plans = []
    for _ in range(2):
        product = m.times_weight(m.input(1 + m.rng.randrange(9)), size=1.0)
        plans += [(product, *rows, m.rng.choice(USES)) for rows in m.cut(product)]
    m.rng.shuffle(plans)
    for product, start, count, use in plans:
        m.use_part(m.part(product, start, count), use)
    return m.case()


def check_graphs(seeds):
    """Problems of random graphs around parts, by checks (a) to (e)."""
    return capra_tests.check_cases(part_graph, seeds, battery.BOUND, stagewise=True)[0]


# ---- 2: a product for each part ------------------------------------------------------------------

def projections(R, parts, together):
    """A graph of x times w in `parts`, [(start, count, cached rows)], each behind its own cache.

    Not `together`: each part is a product of its own, of a slice of x.
    """
    rows = max(start + count for start, count, _ in parts)
    inner, columns = 1 + R.randrange(9), 1 + R.randrange(9)
    g = Graph()
    x = g.tag(g.input("x", (rows, inner)), "x")
    w = g.weight("w", [[R.uniform(-1, 1) for _ in range(columns)] for _ in range(inner)])
    whole = g.tag(g.matmul(x, w), "k") if together else None
    for number, (start, count, cached) in enumerate(parts):
        if together:
            part = g.part_rows(whole, start, count)
        else:
            part = g.tag(g.matmul(g.slice_rows(x, start, count), w), "k")
        if cached:
            cache = g.tag(g.input(f"kc {number}", (cached, columns)), "k")
            part = g.concat_rows(cache, part)
        g.output(part, f"k {number}")
    return g


def check_apart(seeds):
    """Outputs of one product in parts are those of a product for each part, bit for bit."""
    problems = []
    for seed in seeds:
        R = random.Random(seed)
        parts = []
        for _ in range(1 + R.randrange(4)):
            parts.append((R.randrange(6), 1 + R.randrange(6), R.randrange(5)))
        graphs = [projections(random.Random(seed), parts, together) for together in (True, False)]
        inputs = {node.attrs["name"]: [[R.uniform(-2, 2) for _ in range(node.shape[1])]
                                       for _ in range(node.shape[0])]
                  for node in graphs[0].nodes if node.op == "input"}
        one, two = (capra.compile_graph(g, (), ranges={"x": 2.0, "k": 3.0}) for g in graphs)
        if capra.run(one, inputs) != capra.run(two, inputs):
            problems.append(f"check_apart {seed}: parts {parts} differ from products of their own")
    return problems


# ---- 3: junk -------------------------------------------------------------------------------------

def check_junk(seeds):
    """Words left in the scratchpad by someone else change nothing."""
    return battery.check_junk(part_graph, seeds)


# ---- 4: refusals ---------------------------------------------------------------------------------

def product(g):
    """Node 2: a matmul of two inputs, 4 x 5."""
    return g.matmul(g.input("a", (4, 3)), g.input("b", (3, 5)))


def after_a_part(operation):
    """The graph whose product gets a part and then is an operand of `operation`."""
    def build(g):
        p = product(g)
        g.part_rows(p, 0, 2)
        operation(g, p)
    return build


def before_a_part(operation):
    """The graph whose product is an operand of `operation` and then gets a part."""
    def build(g):
        p = product(g)
        operation(g, p)
        g.part_rows(p, 0, 2)
    return build


def in_two_places(g):
    a = g.part_rows(product(g), 0, 2)
    g.concat_rows(g.input("c", (1, 5)), a)
    g.concat_rows(g.input("d", (1, 5)), a)


def sums_too_large(g):
    """The sums stay until the last part, beside everything else."""
    p = g.matmul(g.input("a", (40, 1)), g.input("b", (1, 64)))
    g.output(g.part_rows(p, 0, 20), "one")
    g.output(g.softmax(g.input("c", (16, 64))), "two")
    g.output(g.part_rows(p, 20, 20), "three")


USED = "{}: matmul 2 is requantized in parts and lies in no one place; use the parts' nodes"
REFUSED = {
    "part of an input": (
        lambda g: g.part_rows(g.input("a", (2, 5)), 0, 1),
        "part_rows: its input is node 0, input; only a matmul has sums to requantize in parts"),
    "part of a part": (
        lambda g: g.part_rows(g.part_rows(product(g), 0, 2), 0, 1),
        "part_rows: its input is node 3, part; only a matmul has sums to requantize in parts"),
    "part of a relu": (
        lambda g: g.part_rows(g.relu(product(g)), 0, 1),
        "part_rows: its input is node 3, relu; only a matmul has sums to requantize in parts"),
    "a relu of a part": (
        lambda g: g.relu(g.part_rows(product(g), 0, 1)),
        "relu: its input is node 3, part; only a matmul's requantizer can apply it"),
    "a part under a relu": (
        before_a_part(lambda g, p: g.relu(p)),
        "part_rows: matmul 2 feeds a relu, which replaces its values; use the relu's node"),
    "a part beside a whole": (
        before_a_part(lambda g, p: g.argmax(p)),
        "part_rows: matmul 2 also feeds node 3, which needs all of it in one place"),
    "a part beside a slice": (
        before_a_part(lambda g, p: g.slice_rows(p, 0, 1)),
        "part_rows: matmul 2 also feeds node 3, which needs all of it in one place"),
    "a part of what is stored": (
        before_a_part(lambda g, p: g.output(p, "p")),
        "part_rows: matmul 2 also feeds node 3, which needs all of it in one place"),
    "a whole beside a part": (after_a_part(lambda g, p: g.argmax(p)), USED.format("argmax")),
    "a slice beside a part": (after_a_part(lambda g, p: g.slice_rows(p, 0, 1)),
                              USED.format("slice_rows")),
    "a relu beside a part": (after_a_part(lambda g, p: g.relu(p)), USED.format("relu")),
    "a sum beside a part": (after_a_part(lambda g, p: g.add(p, p)), USED.format("add")),
    "an output beside a part": (after_a_part(lambda g, p: g.output(p, "p")),
                                USED.format("output")),
    "a concatenation beside a part": (
        after_a_part(lambda g, p: g.concat_rows(p, g.input("c", (1, 5)))),
        USED.format("concat_rows")),
    "a part in two concatenations": (
        in_two_places,
        "concat_rows: node 3 already is a part of node 5; a tensor cannot be in two places"),
    "a part twice in one": (
        lambda g: (lambda a: g.concat_rows(a, a))(g.part_rows(product(g), 0, 2)),
        "concat_rows: node 3 already is a part of node 4; a tensor cannot be in two places"),
    "rows past the end": (
        lambda g: g.part_rows(product(g), 3, 2),
        "part_rows: rows 3 to 4 of node 2, which has rows 0 to 3"),
    "rows before the start": (
        lambda g: g.part_rows(product(g), -1, 2),
        "part_rows: rows -1 to 0 of node 2, which has rows 0 to 3"),
    "no rows": (
        lambda g: g.part_rows(product(g), 1, 0),
        "part_rows: count 0 of rows from 1: a part has at least one row"),
    "no number": (
        lambda g: g.part_rows(product(g), True, 1),
        "part_rows: start True and count 1 must be integers"),
    "an argmax's indices": (
        lambda g: g.part_rows(g.argmax(g.input("x", (2, 5))), 0, 1),
        "part_rows: node 1 is argmax; its indices cannot be an operand"),
    "a node that is not there": (
        lambda g: g.part_rows(7, 0, 1),
        "part_rows: 7 is not a node; there are 0"),
    "sums that leave no room": (
        sums_too_large,
        "softmax 6 needs 1024 words of scratchpad; the largest free block has 408 of 4096"),
}


def check_errors():
    """Bad graphs that were accepted, or refused in other words."""
    return battery.wrong_words(REFUSED)


# ---- tests ---------------------------------------------------------------------------------------

class Battery(unittest.TestCase):
    def test_random_graphs_mean_what_they_say(self):
        problems, worst = capra_tests.check_cases(part_graph, range(60), battery.BOUND,
                                                  stagewise=True)
        self.assertEqual(problems, [])
        self.assertLess(worst, 0.5 * battery.BOUND)

    def test_a_part_is_a_product_of_its_own(self):
        self.assertEqual(check_apart(range(60)), [])

    def test_junk_in_the_scratchpad_does_not_leak(self):
        self.assertEqual(check_junk(range(30)), [])

    def test_bad_graphs_are_refused_in_these_words(self):
        self.assertEqual(check_errors(), [])


def two_caches():
    """x times the identity, row 0 behind a cache of one row, rows 1 and 2 behind one of two."""
    g = Graph()
    p = g.matmul(g.tag(g.input("x", (3, 2)), "k"), g.weight("w", [[1.0, 0.0], [0.0, 1.0]]))
    g.tag(p, "k")
    for name, cached, start, count in (("one", 1, 0, 1), ("two", 2, 1, 2)):
        cache = g.tag(g.input(f"cache {name}", (cached, 2)), "k")
        g.output(g.concat_rows(cache, g.part_rows(p, start, count)), name)
    return g


class Meaning(unittest.TestCase):
    """Small cases worked out by hand."""

    INPUTS = {"x": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], "cache one": [[10.0, 11.0]],
              "cache two": [[12.0, 13.0], [14.0, 15.0]]}
    ROWS = {"one": [[10, 11], [1, 2]], "two": [[12, 13], [14, 15], [3, 4], [5, 6]]}

    def test_rows_of_one_product_lie_behind_different_caches(self):
        P = capra.compile_graph(two_caches(), (), ranges={"k": 127.0})
        outputs = capra.run(P, self.INPUTS)
        self.assertEqual({name: ints for name, (ints, _) in outputs.items()}, self.ROWS)

    def test_so_they_do_in_floating_point(self):
        g = two_caches()
        values = capra.evaluate(g, self.INPUTS)
        got = {node.attrs["name"]: values[node.id] for node in g.nodes if node.op == "output"}
        self.assertEqual(got, self.ROWS)

    def test_a_part_costs_a_requantizer_of_its_own_and_no_copy(self):
        P = capra.compile_graph(two_caches(), (), ranges={"k": 127.0})
        lengths = [ins["c"] for ins in P.code if ins["op"] == "RQ"]
        self.assertEqual(lengths, [1 * 2, 2 * 2])
        self.assertEqual([ins["op"] for ins in P.code if ins["op"] in ("MM", "VADD")], ["MM"])

    def test_one_part_of_everything_is_the_product(self):
        whole, part = Graph(), Graph()
        whole.output(product(whole), "p")
        part.output(part.part_rows(product(part), 0, 4), "p")
        cycles = [cycle_counts(capra.compile_graph(g, [capra_tests.ones(g)]).code)
                  for g in (whole, part)]
        self.assertEqual(*cycles)

    def test_its_scale_is_the_products_and_every_neighbours(self):
        g = two_caches()
        scale, _ = plan_scales(g, (), {"k": 12.7})
        self.assertEqual({scale[node.id] for node in g.nodes
                          if node.op in ("matmul", "part", "concat", "output")}, {12.7 / 127})

    def test_a_cache_needs_room_only_from_its_part_on(self):
        g = Graph()
        p = g.tag(g.matmul(g.input("x", (2, 16)), g.input("w", (16, 64))), "k")
        for number in range(2):
            cache = g.tag(g.input(f"cache {number}", (31, 64)), "k")
            both = g.concat_rows(cache, g.part_rows(p, number, 1))
            g.output(g.argmax(both), f"both {number}")
        P = capra.compile_graph(g, [capra_tests.ones(g)])
        self.assertLess(P.spad_high, 2 * 32 * 64)

    def test_the_sums_leave_after_their_last_part(self):
        g = Graph()
        p = g.matmul(g.input("a", (32, 1)), g.input("b", (1, 64)))
        for number in range(2):
            g.output(g.part_rows(p, 16 * number, 16), f"part {number}")
        later = g.input("c", (20, 64))
        g.output(g.softmax(later), "later")     # needs three times 20 x 64 words at once
        P = capra.compile_graph(g, [capra_tests.ones(g)])
        self.assertLessEqual(P.spad_high, 3 * 20 * 64)


class Generator(unittest.TestCase):
    def test_every_use_is_made_with_one_part_and_many_gaps_and_overlaps(self):
        uses, covers = set(), set()
        for seed in range(60):
            g = part_graph(seed).graph
            for node in g.nodes:
                if g.in_parts(node.id):
                    parts = [g.nodes[i] for i in g.consumers(node.id)]
                    rows = [row for part in parts for row in range(
                        part.attrs["start"], part.attrs["start"] + part.attrs["count"])]
                    covers.add((len(parts) > 1, len(rows) > len(set(rows)),
                                len(set(rows)) < node.shape[0]))
                    uses.update(g.nodes[i].op for part in parts for i in g.consumers(part.id))
        self.assertLessEqual({"concat", "matmul", "argmax", "add", "slice", "output"}, uses)
        self.assertLessEqual({(False, False, False), (True, False, False), (True, True, True),
                              (True, False, True)}, covers)


class OnTheRtl(unittest.TestCase):
    def test_both_simulators_agree_with_the_model(self):
        battery.replay(self, part_graph, range(6))


if __name__ == "__main__":
    unittest.main()
