"""Tests of the reference simulator, of the program suite and of program images.

The reference simulator is compared with `Literal`, which executes an instruction word by word with
exact fractions, a table of exponentials to 60 digits and bit-by-bit division.
"""

import os
import subprocess
import sys
import unittest
from fractions import Fraction

import paths
import ga2_isa
import ga2_progs
import ga2_suite
import softmax_gold
from ga2_isa import build
from quant_tests import nearest, saturated
from softmax_gold_tests import by_definition, exact_table

WORDS = 1024
TABLE = exact_table()


def signed(word, bits):
    """The low `bits` bits of `word`, read in two's complement."""
    value = word % (1 << bits)
    return value - (1 << bits) if value >= 1 << (bits - 1) else value


class Literal:
    """GA-2 as its instruction set describes it, a word at a time, on dicts of signed words."""

    def __init__(self, ext):
        self.ext = {address: signed(word, 32) for address, word in enumerate(ext)}
        self.spad = {}

    def run(self, code):
        for ins in code:
            if ins["op"] == "HALT":
                return
            getattr(self, ins["op"])(ins)

    def word(self, address):
        return self.spad.get(address, 0)

    def LD(self, ins):
        for i in range(ins["c"]):
            self.spad[ins["a"] + i] = self.ext.get(ins["b"] + i, 0)

    def ST(self, ins):
        for i in range(ins["c"]):
            self.ext[ins["b"] + i] = self.word(ins["a"] + i)

    def MM(self, ins):
        lda = ins["d"] % 4096
        ldb = ins["d"] // 4096
        results = []
        for m in range(ins["f"]):
            for n in range(ins["h"]):
                total = 0
                for k in range(ins["g"]):
                    b_at = n * ldb + k if ins["fl"] == 1 else k * ldb + n
                    a = signed(self.word(ins["b"] + m * lda + k), 8)
                    total += a * signed(self.word(ins["c"] + b_at), 8)
                results.append((ins["a"] + m * ins["x"] + n, total))
        for address, total in results:
            self.spad[address] = total

    def RQ(self, ins):
        for i in range(ins["c"]):
            scaled = Fraction(self.word(ins["b"] + i) * ins["d"], 2 ** ins["e"])
            self.spad[ins["a"] + i] = saturated(nearest(scaled), 0 if ins["fl"] else -127)

    def SM(self, ins):
        scores = [signed(self.word(ins["b"] + i), 8) for i in range(ins["c"])]
        for i, probability in enumerate(by_definition(scores, TABLE)):
            self.spad[ins["a"] + i] = probability

    def VADD(self, ins):
        for i in range(ins["d"]):
            one = signed(self.word(ins["b"] + i), 8)
            two = signed(self.word(ins["c"] + i), 8)
            self.spad[ins["a"] + i] = saturated(one + two)

    def AMAX(self, ins):
        best = 0
        for i in range(1, ins["c"]):
            if self.word(ins["b"] + i) > self.word(ins["b"] + best):
                best = i
        self.spad[ins["a"]] = best


def results(programs, words):
    """The external memory after each program, as the reference simulator has it."""
    return [ga2_isa.Machine(program.ext, words).run(program.code).ext for program in programs]


class ReferenceSimulator(unittest.TestCase):
    def compare(self, programs, words):
        for program in programs:
            with self.subTest(program=program.name):
                literal = Literal(program.ext)
                literal.run(program.code)
                machine = ga2_isa.Machine(program.ext, words).run(program.code)
                for address, word in enumerate(machine.ext):
                    self.assertEqual(word, literal.ext.get(address, 0), address)
                for address, word in enumerate(machine.spad):
                    self.assertEqual(word, literal.word(address), address)

    def test_agrees_word_by_word_on_the_directed_programs(self):
        self.compare(ga2_suite.directed(WORDS), WORDS)

    def test_agrees_word_by_word_on_random_programs(self):
        self.compare(ga2_suite.random_programs(60, 11, WORDS), WORDS)

    def test_a_memory_larger_than_the_chip_has_is_refused(self):
        with self.assertRaises(ga2_isa.IsaError) as caught:
            ga2_isa.Machine([0] * 65, 64)
        self.assertEqual(str(caught.exception), "an external memory of 65 words; GA-2 has 64 here "
                                                "(set GA2_EXT for more)")

    def test_an_instruction_is_checked_before_it_is_executed(self):
        code = [dict(build("LD", len=1), c=0), build("HALT")]
        with self.assertRaises(ga2_isa.IsaError) as caught:
            ga2_isa.Machine().run(code)
        self.assertEqual(str(caught.exception), "LD: len = 0 must be an integer in 1..65535")


class DirectedPrograms(unittest.TestCase):
    def setUp(self):
        self.programs = ga2_suite.directed(WORDS)

    def test_names_are_different(self):
        names = [program.name for program in self.programs]
        self.assertEqual(len(set(names)), len(names))

    def test_every_size_of_a_product_occurs_plain_and_transposed(self):
        seen = {(ins["f"], ins["h"], ins["fl"], ins["g"])
                for program in self.programs for ins in program.code if ins["op"] == "MM"}
        for M in (1, 2, 3, 4):
            for N in (1, 2, 3, 4):
                for transposed in (0, 1):
                    for K in (1, 64):
                        self.assertIn((M, N, transposed, K), seen)
        self.assertEqual({K for _, _, _, K in seen}, set(range(1, 65)))

    def test_every_shift_occurs(self):
        shifts = {ins["e"] for program in self.programs for ins in program.code
                  if ins["op"] == "RQ"}
        self.assertEqual(shifts, set(range(64)))

    def test_every_ordered_pair_of_instructions_occurs(self):
        names = ("LD", "ST", "MM", "RQ", "SM", "VADD", "AMAX")
        pairs = {(one["op"], two["op"]) for program in self.programs
                 for one, two in zip(program.code, program.code[1:])}
        for one in names:
            for two in names:
                self.assertIn((one, two), pairs)

    def test_the_longest_program_fills_the_program_memory(self):
        self.assertEqual(max(len(program.code) for program in self.programs), 1024)

    def test_all_but_the_halts_change_external_memory(self):
        for program, after in zip(self.programs, results(self.programs, WORDS)):
            if not program.name.startswith("HALT"):
                self.assertTrue(after[:len(program.ext)] != program.ext, program.name)

    def test_an_entry_of_the_exp_table_wrong_by_one_shows(self):
        programs = [program for program in self.programs
                    if any(ins["op"] == "SM" for ins in program.code)]
        rows = _softmax_rows(programs)
        right = softmax_gold.EXP_TABLE
        for distance, entry in enumerate(right):
            touched = [row for row in rows if max(row) - distance in row]
            before = [_softmax(row, right) for row in touched]
            for wrong in (entry - 1, entry + 1):
                table = right[:distance] + (wrong,) + right[distance + 1:]
                after = [_softmax(row, table) for row in touched]
                self.assertTrue(after != before, (distance, entry, wrong))

    def test_a_sum_of_exponentials_that_is_a_power_of_2(self):
        by_name = {program.name: program for program in self.programs}
        scores = by_name["SM of a sum that is a power of 2"].ext[:4]
        self.assertEqual(sum(TABLE[max(scores) - score] for score in scores), 2 ** 17)

    def test_a_memory_of_another_size_is_refused(self):
        most = ga2_isa.EXT
        for words in (1023, most + 1):
            with self.subTest(words=words), self.assertRaises(ga2_isa.IsaError) as caught:
                ga2_suite.directed(words)
            self.assertEqual(str(caught.exception),
                             f"the directed programs take an external memory of 1024 to {most} "
                             f"words, not {words} (set GA2_EXT for more)")


def _softmax_rows(programs):
    """The different short rows of scores that SM reads in some programs."""
    rows = {}
    for program in programs:
        literal = Literal(program.ext)
        for ins in program.code:
            if ins["op"] == "SM" and ins["c"] <= 64:
                row = tuple(signed(literal.word(ins["b"] + i), 8) for i in range(ins["c"]))
                rows[row] = None
            literal.run([ins])
    return list(rows)


def _softmax(scores, table):
    """by_definition with Python's division, for speed; equal to it as softmax_gold_tests shows."""
    weights = [table[max(scores) - score] for score in scores]
    reciprocal = 2 ** 38 // sum(weights)
    return [(weight * reciprocal + 2 ** 21) >> 22 for weight in weights]


class RandomPrograms(unittest.TestCase):
    def test_a_seed_names_the_same_programs_always(self):
        program = ("import zlib, paths, ga2_suite; "
                   "print(zlib.crc32(str(ga2_suite.random_programs(3, 5)).encode()))")
        here = ga2_suite.random_programs(8, 5)[2]
        self.assertTrue(here == ga2_suite.random_programs(3, 5)[2])
        self.assertNotEqual(here, ga2_suite.random_programs(3, 6)[2])
        outputs = set()
        for hash_seed in ("0", "1"):
            env = dict(os.environ, PYTHONHASHSEED=hash_seed, PYTHONDONTWRITEBYTECODE="1")
            ended = subprocess.run([sys.executable, "-c", program], env=env, text=True, check=True,
                                   cwd=paths.ROOT / "model" / "tests", stdout=subprocess.PIPE)
            outputs.add(ended.stdout)
        self.assertEqual(len(outputs), 1)

    def test_they_have_10_to_25_instructions_and_use_all(self):
        programs = ga2_suite.random_programs(100, 1, WORDS)
        lengths = {len(program.code) for program in programs}
        self.assertEqual(lengths, set(range(10, 26)))
        names = {ins["op"] for program in programs for ins in program.code}
        self.assertEqual(names, set(ga2_isa.INSTRUCTIONS))

    def test_they_fit_small_and_large_external_memories(self):
        for words in (256, 1024, 8192):
            results(ga2_suite.random_programs(10, 2, words), words)

    def test_their_values_neither_die_nor_saturate(self):
        programs = ga2_suite.random_programs(100, 3, WORDS)
        changed = [word for program, after in zip(programs, results(programs, WORDS))
                   for before, word in zip(program.ext, after) if before != word]
        dead = sum(word == 0 for word in changed)
        saturated_words = sum(abs(word) == 127 for word in changed)
        self.assertGreater(len(changed), 25 * WORDS)
        self.assertLess(dead, len(changed) // 5)
        self.assertLess(saturated_words, len(changed) // 5)


class Image(unittest.TestCase):
    def test_a_record_word_by_word(self):
        code = [build("LD", dst=5, src=0, len=2), build("ST", src=5, dst=2, len=2), build("HALT")]
        self.assertEqual(ga2_progs.record(code, [7, -1], lat=3, words=6), [
            3,
            0x10005000, 0x00002000, 0, 0,       # op 1, a = 5, b = 0, c = 2
            0x20005000, 0x20002000, 0, 0,
            0, 0, 0, 0,
            7, 0xFFFFFFFF, 0, 0, 0, 0,
            7, 0xFFFFFFFF, 7, 0xFFFFFFFF, 0, 0,
            2 + 6 + 2 + 4 + 2, 0, 10, 0, 2])

    def test_default_size_and_latency(self):
        record = ga2_progs.record([build("LD", len=1), build("HALT")], [])
        self.assertEqual(len(record), 1 + 2 * 4 + 2 * ga2_isa.EXT + 5)
        self.assertEqual(record[-5:], [14, 0, 10, 0, 1])

    def test_a_record_is_checked_against_the_memory_it_is_for(self):
        code = [build("LD", len=1), build("HALT")]
        code[0]["b"] = 9999                     # its source, past the usual 8,192 words
        self.assertEqual(len(ga2_progs.record(code, [], words=10000)), 9 + 2 * 10000 + 5)
        ga2_isa.Machine(words=10000).run(code)
        for run in (lambda: ga2_progs.record(code, [], words=9999),
                    lambda: ga2_isa.Machine(words=9999).run(code)):
            with self.assertRaises(ga2_isa.IsaError) as caught:
                run()
            self.assertEqual(str(caught.exception), "LD: src covers words 9999 to 9999, past the "
                             "end of the external memory (9999 words)")

    def test_an_image_is_a_word_a_line(self):
        self.assertEqual(ga2_progs.image([]), "00000000\n")
        self.assertEqual(ga2_progs.image([[1, 0xABC], [0xFFFFFFFF]]),
                         "00000002\n00000001\n00000abc\nffffffff\n")

    def test_a_program_longer_than_the_program_memory_is_refused(self):
        with self.assertRaises(ga2_isa.IsaError) as caught:
            ga2_progs.record([build("HALT")] * 1025, [])
        self.assertEqual(str(caught.exception), "a program of 1025 instructions; the testbench "
                                                "holds 1024")


if __name__ == "__main__":
    unittest.main()
