"""The battery of `probabilities`: random graphs, the chip's own words, refusals.

check_all() -> a list of problems, empty when all is well.
"""

import random
import unittest

import paths
import battery
import capra
import exact_proof
from capra import Graph
from softmax_gold import softmax


def check_all():
    """The problems of all parts, one by one."""
    yield from check_graphs(range(30))
    yield from check_errors()


def random_graph(seed):
    """(graph, calibration): probabilities of a product, an input, a sum, a slice or a view."""
    R = random.Random(seed)
    rows, inner, columns = R.randint(1, 6), R.randint(1, 16), R.randint(1, 16)
    g = Graph()

    def array(height, width, size):
        return [[R.uniform(-size, size) for _ in range(width)] for _ in range(height)]

    inputs = {"x": array(rows, inner, 2.0)}
    scores = g.matmul(g.input("x", (rows, inner)), g.weight("W", array(inner, columns, 1.0)))
    kind = seed % 5
    if kind == 1:
        inputs["s"] = array(rows, columns, 6.0)
        scores = g.input("s", (rows, columns))
    elif kind == 2:
        inputs["s"] = array(rows, columns, 3.0)
        scores = g.add(scores, g.input("s", (rows, columns)))
    elif kind == 3:
        scores = g.slice_rows(scores, rows - 1, 1)
    elif kind == 4:
        g.output(g.argmax(scores), "best")
    g.output(g.probabilities(scores), "weights")
    if R.randrange(2):                          # somebody else's softmax of the same scores
        g.output(g.softmax(scores), "soft")
    return g, inputs


def check_graphs(seeds):
    """The program's words are the softmax unit's of the scores, near the real softmax."""
    for seed in seeds:
        g, inputs = random_graph(seed)
        inputs = {node.attrs["name"]: inputs[node.attrs["name"]]
                  for node in g.nodes if node.op == "input"}
        node = next(node for node in g.nodes if node.op == "probabilities")
        for reuse in (True, False):
            P = capra.compile_graph(g, [inputs], reuse=reuse)
            words, floats = capra.run(P, inputs)["weights"]
            ints = capra.interpret(P, inputs)
            if words != [softmax(row) for row in ints[node.ins[0]]]:
                yield f"graph {seed}, reuse {reuse}: the words are not the unit's"
            if words != ints[node.id] or floats != words:
                yield f"graph {seed}, reuse {reuse}: program, interpreter and floats differ"
            if P.scale[node.ins[0]] != 1 / 16 or P.scale[node.id] is not None:
                yield f"graph {seed}: scales {P.scale[node.ins[0]]} and {P.scale[node.id]}"
        real = capra.evaluate(g, inputs)[node.id]
        worst = max(abs(a - b) for pair in zip(words, real) for a, b in zip(*pair))
        if worst > battery.BOUND * max(map(max, real)):
            yield f"graph {seed}: {worst:.0f} of 65536 from the real softmax"


WORDS = "{}: node 1 is probabilities; its 17-bit words cannot be an operand"
FEEDS = {
    "add": lambda g, p: g.add(p, p),
    "softmax": lambda g, p: g.softmax(p),
    "argmax": lambda g, p: g.argmax(p),
    "concat_rows": lambda g, p: g.concat_rows(p, 0),
    "slice_rows": lambda g, p: g.slice_rows(p, 0, 1),
    "probabilities": lambda g, p: g.probabilities(p),
}


def fed(feed):
    """The graph that does feed(g, p) with the probabilities p of an input."""
    return lambda g: feed(g, g.probabilities(g.input("x", (2, 4))))


REFUSED = {name: (fed(feed), WORDS.format(name)) for name, feed in FEEDS.items()}
REFUSED["what an output stored"] = (
    fed(lambda g, p: g.probabilities(g.output(p, "w"))),
    "probabilities: node 2 is output; what it stores cannot be an operand")


def check_errors():
    """Graphs that were accepted, or refused in other words."""
    return battery.wrong_words(REFUSED)


class Probabilities(unittest.TestCase):
    def test_the_battery_finds_nothing(self):
        self.assertEqual(list(check_all()), [])

    def test_it_costs_its_softmaxes_and_nothing_more(self):
        g = Graph()
        g.output(g.probabilities(g.input("x", (3, 8))), "weights")
        P = capra.compile_graph(g, [{"x": [[1.0] * 8] * 3}])
        self.assertEqual([ins["op"] for ins in P.code], ["LD", "SM", "SM", "SM", "ST", "HALT"])

    def test_a_saturated_score_is_noted(self):
        g = Graph()
        g.output(g.probabilities(g.input("x", (1, 2))), "weights")
        P = capra.compile_graph(g, [{"x": [[20.0, 0.0]]}])
        self.assertEqual(P.notes, ["node 0 (input): values up to 20 saturate at 7.938"])

    def test_on_symbols_a_word_is_the_softmax_of_its_row(self):
        g = Graph()
        g.output(g.probabilities(g.input("x", (2, 3))), "weights")
        P = capra.compile_graph(g, [{"x": [[1.0] * 3] * 2}])
        terms = exact_proof.Terms()
        x = [[terms.number("x", row, column) for column in range(3)] for row in range(2)]
        self.assertEqual(exact_proof.outputs(P, terms, {"x": x})["weights"],
                         [[terms.number("sm", column, *row) for column in range(3)] for row in x])


if __name__ == "__main__":
    unittest.main()
