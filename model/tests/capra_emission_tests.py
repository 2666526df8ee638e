"""Tests of the passes in capra: instructions by hand, addresses, refusals, determinism."""

import hashlib
import os
import pickle
import subprocess
import sys
import unittest

import paths
import capra
from capra import CompileError, Graph
from capra_random import plain_graph, slice_graph
from capra_tests import ones
from ga2_isa import EXT, SPAD, assemble, disassemble, operands

TO_PROBABILITY = "mantissa=16646144 shift=33"   # 127/65536: 127 * 2**17 over 2**16 * 2**17
BY_127 = "mantissa=8454660 shift=30"            # 1/127: 2**30 / 127 = 8454660.03


def ops(P):
    """The names of a program's instructions, in one string."""
    return " ".join(ins["op"] for ins in P.code)


class Instructions(unittest.TestCase):
    """Whole programs, worked out by hand."""

    def check(self, g, sample, text):
        P = capra.compile_graph(g, [sample])
        self.assertEqual(disassemble(P.code), disassemble(assemble(text)))
        return P

    def test_a_product_is_made_tile_by_tile(self):
        # a 2 x 5 result: a tile of four columns and one of one; scales 2/127, 1/127 and 2/127
        g = Graph()
        w = [[1, 1, 1, 1, 1], [0] * 5, [0] * 5]
        g.output(g.matmul(g.input("x", (2, 3)), g.weight("w", w)), "o")
        self.check(g, {"x": [[2, 0, 0], [0, 0, 0]]}, f"""
            LD dst=0 src=0 len=6
            LD dst=6 src=6 len=15
            MM dst=31 A=0 B=6  M=2 K=3 N=4 tb=0 lda=3 ldb=5 ldc=5
            MM dst=35 A=0 B=10 M=2 K=3 N=1 tb=0 lda=3 ldb=5 ldc=5
            RQ dst=21 src=31 len=10 {BY_127} relu=0
            ST src=21 dst=21 len=10
            HALT""")

    def test_rows_are_outside_columns_inside(self):
        g = Graph()
        g.matmul(g.input("x", (6, 1)), g.input("y", (1, 6)))
        P = capra.compile_graph(g, [ones(g)])
        tiles = [operands(ins) for ins in P.code if ins["op"] == "MM"]
        start = tiles[0]["dst"]
        self.assertEqual([(t["dst"] - start, t["A"], t["B"], t["M"], t["N"]) for t in tiles],
                         [(0, 0, 6, 4, 4), (4, 0, 10, 4, 2), (24, 4, 6, 2, 4), (28, 4, 10, 2, 2)])

    def test_a_transposed_factor_moves_by_rows(self):
        g = Graph()
        g.matmul(g.input("x", (1, 3)), g.input("y", (5, 3)), transpose_b=True)
        P = capra.compile_graph(g, [ones(g)])
        tiles = [operands(ins) for ins in P.code if ins["op"] == "MM"]
        self.assertEqual([(t["B"], t["N"], t["tb"], t["ldb"], t["K"]) for t in tiles],
                         [(3, 4, 1, 3, 3), (15, 1, 1, 3, 3)])

    def test_a_relu_is_a_bit_of_the_products_requantizer(self):
        g = Graph()
        g.output(g.relu(g.matmul(g.input("x", (1, 1)), g.weight("w", [[1.0]]))), "o")
        self.check(g, {"x": [[1]]}, f"""
            LD dst=0 src=0 len=1
            LD dst=1 src=1 len=1
            MM dst=3 A=0 B=1 M=1 K=1 N=1 tb=0 lda=1 ldb=1 ldc=1
            RQ dst=2 src=3 len=1 {BY_127} relu=1
            ST src=2 dst=2 len=1
            HALT""")

    def test_a_softmax_goes_row_by_row(self):
        g = Graph()
        g.output(g.softmax(g.input("x", (2, 3))), "o")
        self.check(g, {"x": [[1, 2, 3], [4, 5, 6]]}, f"""
            LD dst=0 src=0 len=6
            SM dst=12 src=0 len=3
            SM dst=15 src=3 len=3
            RQ dst=6 src=12 len=6 {TO_PROBABILITY} relu=0
            ST src=6 dst=6 len=6
            HALT""")

    def test_a_sum_rescales_only_the_operand_whose_scale_differs(self):
        # x has the sum's scale, since x + y stays below it; y is a quarter: 2**-2 = 2**23 / 2**25
        g = Graph()
        g.output(g.add(g.input("x", (1, 2)), g.input("y", (1, 2))), "o")
        self.check(g, {"x": [[4, 0]], "y": [[-1, 0]]}, """
            LD dst=0 src=0 len=2
            LD dst=2 src=2 len=2
            RQ dst=6 src=2 len=2 mantissa=8388608 shift=25 relu=0
            VADD dst=4 src1=0 src2=6 len=2
            ST src=4 dst=4 len=2
            HALT""")

    def test_an_argmax_goes_row_by_row(self):
        g = Graph()
        g.output(g.argmax(g.input("x", (2, 3))), "o")
        self.check(g, {"x": [[1, 2, 3], [4, 5, 6]]}, """
            LD dst=0 src=0 len=6
            AMAX dst=6 src=0 len=3
            AMAX dst=7 src=3 len=3
            ST src=6 dst=6 len=2
            HALT""")

    def test_a_concatenation_is_no_instruction(self):
        g = Graph()
        x, y = g.input("x", (1, 2)), g.input("y", (2, 2))
        g.output(g.argmax(g.concat_rows(y, x)), "o")
        self.check(g, {"x": [[1, 2]], "y": [[1, 2], [3, 4]]}, """
            LD dst=0 src=2 len=4
            LD dst=4 src=0 len=2
            AMAX dst=6 src=0 len=2
            AMAX dst=7 src=2 len=2
            AMAX dst=8 src=4 len=2
            ST src=6 dst=6 len=3
            HALT""")

    def test_a_slice_is_no_instruction(self):
        g = Graph()
        view = g.slice_rows(g.input("x", (4, 2)), 1, 2)
        g.output(g.argmax(view), "chosen")
        g.output(view, "view")
        self.check(g, {"x": [[1, 2]] * 4}, """
            LD dst=0 src=0 len=8
            AMAX dst=8 src=2 len=2
            AMAX dst=9 src=4 len=2
            ST src=8 dst=8 len=2
            ST src=2 dst=10 len=4
            HALT""")


class Loading(unittest.TestCase):
    def test_once_and_just_before_the_first_use(self):
        g = Graph()
        x, y = g.input("x", (2, 2)), g.input("y", (2, 2))
        w = g.weight("w", [[1, 0], [0, 1]])
        g.matmul(x, w)
        g.argmax(x)
        g.matmul(y, w)
        P = capra.compile_graph(g, [{"x": [[1, 2]] * 2, "y": [[1, 2]] * 2}])
        self.assertEqual(ops(P), "LD LD MM RQ AMAX AMAX LD MM RQ HALT")

    def test_whole_even_through_a_view(self):
        g = Graph()
        x = g.input("x", (4, 2))
        w = g.weight("w", [[1, 0], [0, 1]])
        g.argmax(w)
        g.matmul(g.slice_rows(x, 1, 1), w)
        g.argmax(x)
        P = capra.compile_graph(g, [{"x": [[1, 2]] * 4}])
        self.assertEqual(ops(P), "LD AMAX AMAX LD MM RQ AMAX AMAX AMAX AMAX HALT")
        loads = [operands(ins)["len"] for ins in P.code if ins["op"] == "LD"]
        self.assertEqual(loads, [4, 8])

    def test_never_where_it_is_not_used(self):
        g = Graph()
        g.input("x", (1, 1))
        g.argmax(g.input("y", (1, 1)))
        P = capra.compile_graph(g, [ones(g)])
        self.assertEqual(ops(P), "LD AMAX HALT")

    def test_external_memory_is_laid_out_by_kind_and_order(self):
        g = Graph()
        x = g.input("x", (1, 3))
        chosen = g.argmax(x)
        g.output(chosen, "first")
        w = g.weight("w", [[1, 2]])
        y = g.input("y", (2, 2))
        g.output(y, "second")
        P = capra.compile_graph(g, [{"x": [[1, 2, 3]], "y": [[1, 2], [3, 4]]}])
        layout = {name: (e["addr"], e["shape"], e["node"], e["kind"]) for name, e in P.ext.items()}
        self.assertEqual(layout, {"x": (0, (1, 3), x, "input"), "w": (3, (1, 2), w, "weight"),
                                  "y": (5, (2, 2), y, "input"), "first": (9, (1, 1), 2, "output"),
                                  "second": (10, (2, 2), 5, "output")})


class Scratchpad(unittest.TestCase):
    def chain(self):
        g = Graph()
        node = g.input("x", (8, 8))
        for i in range(6):
            node = g.matmul(node, g.weight(f"w{i}", [[float(i == j) for i in range(8)]
                                                     for j in range(8)]))
        g.output(node, "o")
        return g, {"x": [[1.0] * 8] * 8}

    def test_reuse_needs_as_many_words_as_live_at_once(self):
        g, sample = self.chain()
        reused = capra.compile_graph(g, [sample])
        kept = capra.compile_graph(g, [sample], reuse=False)
        self.assertEqual(reused.spad_high, 4 * 64)          # two factors, result, accumulators
        self.assertEqual(kept.spad_high, (7 + 6 + 6) * 64)  # all results, weights, accumulators

    def test_the_rescaled_operands_of_a_sum_are_given_back(self):
        g = Graph()
        node = g.input("x0", (8, 8))
        for i in range(1, 4):
            node = g.add(node, g.input(f"x{i}", (8, 8)))
        P = capra.compile_graph(g, [ones(g)])
        self.assertEqual(ops(P), "LD" + " LD RQ RQ VADD" * 3 + " HALT")
        self.assertEqual(P.spad_high, 5 * 64)               # two operands, both rescaled, the sum

    def test_views_share_addresses(self):
        g = Graph()
        x, y = g.input("x", (2, 3)), g.input("y", (4, 3))
        whole = g.concat_rows(x, y)
        view = g.slice_rows(whole, 1, 3)
        stored = g.output(view, "o")
        P = capra.compile_graph(g, [ones(g)])
        start = P.address[whole]
        self.assertEqual([P.address[i] - start for i in (x, y, view, stored)], [0, 6, 3, 3])

    def refused(self, message, g):
        with self.assertRaises(CompileError, msg=message) as caught:
            capra.compile_graph(g, [ones(g)])
        self.assertEqual(str(caught.exception), message)

    def test_what_does_not_fit_is_refused(self):
        for shape, what, count, free in (((64, 64), "softmax 1", 64 * 64, 0),
                                         ((32, 50), "a temporary of softmax 1", 32 * 50,
                                          SPAD - 2 * 32 * 50)):
            g = Graph()
            g.softmax(g.input("x", shape))
            self.refused(f"{what} needs {count} words of scratchpad; the largest free block has "
                         f"{free} of {SPAD}", g)

    def test_an_external_memory_that_does_not_fit_is_refused(self):
        g = Graph()
        g.weight("w", [[1.0] * (EXT - 3)])
        g.output(g.argmax(g.input("x", (1, 2))), "o")
        capra.compile_graph(g, [ones(g)])
        g.input("y", (1, 1))
        self.refused(f"the graph's inputs, weights and outputs need {EXT + 1} words of external "
                     f"memory; there are {EXT}", g)

    def test_a_product_too_small_to_requantize_is_refused(self):
        g = Graph()
        g.matmul(g.tag(g.input("x", (1, 1)), "x"), g.weight("w", [[1e-20]]))
        g.tag(2, "y")
        with self.assertRaisesRegex(CompileError, r"^matmul 2: its values cannot be requantized: "
                                    r"multiplier: 7\.87\d*e-23 needs a shift of 97, outside 0..63"):
            capra.compile_graph(g, [], ranges={"x": 1.0, "y": 1.0})


class WideSums(unittest.TestCase):
    """A sum in front of a softmax keeps what its operands hold beyond the softmax's own range."""

    def outputs(self, x, y):
        g = Graph()
        total = g.add(g.input("x", (1, 2)), g.input("y", (1, 2)))
        g.output(total, "sum")
        g.output(g.softmax(total), "p")
        P = capra.compile_graph(g, [{"x": [x], "y": [y]}])
        inputs = {"x": [x], "y": [y]}
        meant = capra.interpret(P, inputs)
        out = capra.run(P, inputs)
        for name in ("sum", "p"):
            self.assertEqual(out[name][0], meant[P.ext[name]["node"]])
        self.assertEqual(capra.stagewise_problems(P, meant), [])
        return P, out

    def test_operands_that_nearly_cancel(self):
        P, out = self.outputs([20, -20], [-16, 16])
        for got, real in zip(out["sum"][1][0], (4, -4)):
            self.assertLessEqual(abs(got - real), 20 / 127 + 1 / 16)
        self.assertGreater(out["p"][1][0][0], 0.99)
        self.assertEqual(P.notes, [])
        self.assertEqual([ins["op"] for ins in P.code].count("RQ"), 3)  # y, the sum, the softmax

    def test_operands_within_the_softmaxs_range_are_added_in_its_steps(self):
        P, _ = self.outputs([7, -7], [-3, 3])
        self.assertEqual(P.params[2][2], None)
        self.assertEqual([ins["op"] for ins in P.code].count("RQ"), 3)  # x, y, the softmax


class Determinism(unittest.TestCase):
    SCRIPT = "import paths, capra_emission_tests; print(capra_emission_tests.fingerprint())"

    def test_programs_do_not_depend_on_the_hash_seed(self):
        prints = set()
        for seed in ("0", "1", "77"):
            env = dict(os.environ, PYTHONHASHSEED=seed, PYTHONPATH=os.path.dirname(__file__))
            ended = subprocess.run([sys.executable, "-c", self.SCRIPT], env=env, check=True,
                                   capture_output=True, text=True, timeout=60)
            prints.add(ended.stdout)
        self.assertEqual(prints, {fingerprint() + "\n"})

    def test_a_graph_is_not_changed_by_compiling_it(self):
        case = slice_graph(1)
        first = capra.compile_graph(case.graph, case.calib, ranges=case.ranges)
        second = capra.compile_graph(case.graph, case.calib, ranges=case.ranges)
        self.assertTrue(first == second)

    def test_a_program_survives_pickling(self):
        case = slice_graph(2)
        P = capra.compile_graph(case.graph, case.calib, ranges=case.ranges)
        copy = pickle.loads(pickle.dumps(P))
        self.assertTrue((copy.code, copy.scale, copy.ext) == (P.code, P.scale, P.ext))
        for inputs in case.fresh:
            self.assertTrue(capra.run(copy, inputs) == capra.run(P, inputs))
            self.assertTrue(capra.interpret(copy, inputs) == capra.interpret(P, inputs))


def fingerprint():
    """A digest of some programs: code, scales, layout, notes."""
    digest = hashlib.sha256()
    for case in [plain_graph(seed) for seed in range(4)] + [slice_graph(seed) for seed in range(4)]:
        P = capra.compile_graph(case.graph, case.calib, ranges=case.ranges)
        for part in (disassemble(P.code), P.scale, P.params, P.ext, P.notes, P.address):
            digest.update(repr(part).encode())
    return digest.hexdigest()


if __name__ == "__main__":
    unittest.main()
