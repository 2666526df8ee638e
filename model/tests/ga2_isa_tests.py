"""Tests of GA-2's instruction set: bit positions, text, refusals and cycles, worked out by hand."""

import os
import subprocess
import sys
import unittest

import paths
import ga2_isa
import ga2_suite
import softmax_gold
from comparing import assert_same
from ga2_isa import IsaError, build

# Field -> (highest bit, lowest bit) of the 128-bit word.
BITS = {
    "op": (127, 124),
    "a": (123, 108),
    "b": (107, 92),
    "c": (91, 76),
    "d": (75, 52),
    "e": (51, 46),
    "f": (45, 38),
    "g": (37, 30),
    "h": (29, 22),
    "fl": (21, 18),
    "x": (17, 0),
}
OPCODES = {"HALT": 0, "LD": 1, "ST": 2, "MM": 3, "RQ": 4, "SM": 5, "VADD": 6, "AMAX": 7}
# Instruction, operand values, and the bit of the word each value starts at.
PLACES = (
    ("LD", {"dst": (0x9A5, 108), "src": (0x3C7, 92), "len": (0x65, 76)}),
    ("ST", {"src": (0x9A5, 108), "dst": (0x3C7, 92), "len": (0x65, 76)}),
    ("MM", {"dst": (0x123, 108), "A": (0x456, 92), "B": (0x789, 76), "M": (3, 38), "K": (37, 30),
            "N": (2, 22), "tb": (1, 18), "lda": (0x2BC, 52), "ldb": (0x1DE, 64),
            "ldc": (0x4F1, 0)}),
    ("RQ", {"dst": (0x123, 108), "src": (0x456, 92), "len": (0x65, 76), "mantissa": (0xABCDEF, 52),
            "shift": (0x2D, 46), "relu": (1, 18)}),
    ("SM", {"dst": (0x123, 108), "src": (0x456, 92), "len": (0x65, 76)}),
    ("VADD", {"dst": (0x123, 108), "src1": (0x456, 92), "src2": (0x789, 76), "len": (0x65, 52)}),
    ("AMAX", {"dst": (0x123, 108), "src": (0x456, 92), "len": (0x65, 76)}),
)


def suite_instructions():
    """Every instruction of the suite and of some random programs."""
    programs = ga2_suite.directed(1024) + ga2_suite.random_programs(40, 7, 1024)
    return [ins for program in programs for ins in program.code]


class InstructionWord(unittest.TestCase):
    def test_fields_cover_the_128_bits_once(self):
        bits = sorted(bit for high, low in BITS.values() for bit in range(low, high + 1))
        assert_same(self, bits, list(range(128)))

    def test_every_operand_sits_where_the_instruction_set_puts_it(self):
        for name, places in PLACES:
            with self.subTest(name=name):
                expected = OPCODES[name] << 124
                for value, low in places.values():
                    expected |= value << low
                operands = {key: value for key, (value, _) in places.items()}
                self.assertEqual(ga2_isa.encode(build(name, **operands)), expected)

    def test_an_instruction_has_all_ten_letters_and_the_documented_values(self):
        ins = build("LD", dst=5, src=7, len=9)
        self.assertEqual(ins, {"op": "LD", "a": 5, "b": 7, "c": 9, "d": 0, "e": 0, "f": 0, "g": 0,
                               "h": 0, "fl": 0, "x": 0})

    def test_decoding_reads_the_documented_bits(self):
        for ins in suite_instructions():
            word = ga2_isa.encode(ins)
            for field, (high, low) in BITS.items():
                value = (word >> low) % (1 << (high - low + 1))
                expected = OPCODES[ins["op"]] if field == "op" else ins[field]
                self.assertEqual(value, expected, (ins, field))
            self.assertEqual(ga2_isa.decode(word), ins)

    def test_an_all_zero_word_is_a_halt(self):
        self.assertEqual(ga2_isa.decode(0), build("HALT"))
        self.assertEqual(ga2_isa.encode(build("HALT")), 0)

    def test_letters_that_an_instruction_leaves_out_are_0(self):
        self.assertEqual(ga2_isa.encode({"op": "LD", "c": 4}), 1 << 124 | 4 << 76)

    def test_undefined_opcodes_are_refused(self):
        for opcode in range(8, 16):
            with self.subTest(opcode=opcode), self.assertRaises(IsaError) as caught:
                ga2_isa.decode(opcode << 124)
            self.assertEqual(str(caught.exception),
                             f"opcode {opcode} is undefined; GA-2 has opcodes 0 to 7")

    def test_what_is_not_128_bits_is_refused(self):
        for word in (-1, 1 << 128):
            with self.subTest(word=word), self.assertRaises(IsaError) as caught:
                ga2_isa.decode(word)
            self.assertEqual(str(caught.exception), f"decode: {word} is not a 128-bit word")

    def test_words_are_read_signed(self):
        self.assertEqual([ga2_isa.s8(word) for word in (0, 0x7F, 0x80, 0x1FF, -129, 0x7FFFFF80)],
                         [0, 127, -128, -1, 127, -128])
        self.assertEqual([ga2_isa.s32(word) for word in (0x7FFFFFFF, 0x80000000, 1 << 32, -1)],
                         [(1 << 31) - 1, -(1 << 31), 0, -1])


class Text(unittest.TestCase):
    def test_disassembly_reads_as_operands(self):
        code = [build("LD", dst=0, src=16, len=4),
                build("RQ", dst=5, src=2, len=3, mantissa=8388608, shift=24, relu=1),
                build("HALT")]
        self.assertEqual(ga2_isa.disassemble(code),
                         "LD   dst=0 src=16 len=4\n"
                         "RQ   dst=5 src=2 len=3 mantissa=8388608 shift=24 relu=1\n"
                         "HALT\n")

    def test_assembly_takes_comments_blank_lines_and_any_order(self):
        text = "# a copy\n\n  LD len=4 src=16  # four words\nST src=0 dst=8 len=4\nHALT\n"
        self.assertEqual(ga2_isa.assemble(text), [build("LD", dst=0, src=16, len=4),
                                                  build("ST", src=0, dst=8, len=4), build("HALT")])

    def test_every_instruction_survives_the_way_through_text(self):
        code = suite_instructions()
        assert_same(self, ga2_isa.assemble(ga2_isa.disassemble(code)), code)

    def test_errors_name_the_line_the_instruction_and_the_operand(self):
        cases = (
            ("HALT\nLD dst=1 4", "line 2: LD: '4' is not operand=number"),
            ("LD dst=-1", "line 1: LD: 'dst=-1' is not operand=number"),
            ("LD dst=0x10", "line 1: LD: 'dst=0x10' is not operand=number"),
            ("\n\nLD len=1 len=2", "line 3: LD: operand len is given twice"),
            ("LD dst=1 length=3", "line 1: LD has no operand length; it takes dst, src, len"),
            ("HALT now=1", "line 1: HALT has no operand now; it takes none"),
            ("JUMP", "line 1: JUMP is not an instruction; "
                     "GA-2 has HALT, LD, ST, MM, RQ, SM, VADD, AMAX"),
            ("SM src=0 dst=9", "line 1: SM: len = 0 must be an integer in 1..65535"),
        )
        for text, message in cases:
            with self.subTest(text=text), self.assertRaises(IsaError) as caught:
                ga2_isa.assemble(text)
            self.assertEqual(str(caught.exception), message)


class Refusals(unittest.TestCase):
    def refused(self, message, name, **operands):
        with self.subTest(message=message), self.assertRaises(IsaError) as caught:
            build(name, **operands)
        self.assertEqual(str(caught.exception), message)

    def product(self, message, **changes):
        operands = {"dst": 0, "A": 0, "B": 0, "M": 4, "K": 4, "N": 4, "lda": 4, "ldb": 4, "ldc": 4}
        operands.update(changes)
        self.refused(message, "MM", **operands)

    def test_a_value_wider_than_its_field(self):
        self.refused("LD: dst = 65536 must be an integer in 0..65535", "LD", dst=65536, len=1)
        self.refused("LD: dst = -1 must be an integer in 0..65535", "LD", dst=-1, len=1)
        self.refused("LD: len = 1.5 must be an integer in 0..65535", "LD", len=1.5)
        self.refused("RQ: mantissa = 16777216 must be an integer in 0..16777215", "RQ", len=1,
                     mantissa=1 << 24)
        self.refused("RQ: shift = 64 must be an integer in 0..63", "RQ", len=1, shift=64)
        self.refused("RQ: relu = 2 must be an integer in 0..1", "RQ", len=1, relu=2)
        self.refused("VADD: len = 65536 must be an integer in 0..65535", "VADD", len=65536)
        self.product("MM: lda = 4096 must be an integer in 0..4095", lda=4096)
        self.product("MM: ldb = 4096 must be an integer in 0..4095", ldb=4096)
        self.product("MM: ldc = 4096 must be an integer in 0..4095", ldc=4096)
        self.product("MM: tb = 2 must be an integer in 0..1", tb=2)

    def test_a_length_of_0(self):
        for name in ("LD", "ST", "RQ", "SM", "VADD", "AMAX"):
            self.refused(f"{name}: len = 0 must be an integer in 1..65535", name)

    def test_a_product_larger_than_the_array_or_the_row_memory(self):
        self.product("MM: M = 0 must be an integer in 1..4", M=0)
        self.product("MM: M = 5 must be an integer in 1..4", M=5)
        self.product("MM: N = 0 must be an integer in 1..4", N=0)
        self.product("MM: N = 5 must be an integer in 1..4", N=5)
        self.product("MM: K = 0 must be an integer in 1..64", K=0)
        self.product("MM: K = 65 must be an integer in 1..64", K=65)

    def test_an_operand_that_runs_past_a_memory(self):
        past = "past the end of the scratchpad (4096 words)"
        self.refused(f"LD: dst covers words 4093 to 4096, {past}", "LD", dst=4093, src=0, len=4)
        self.refused(f"ST: src covers words 4096 to 4096, {past}", "ST", src=4096, dst=0, len=1)
        self.refused(f"RQ: src covers words 4000 to 4099, {past}", "RQ", dst=0, src=4000, len=100)
        self.refused(f"SM: dst covers words 4000 to 4099, {past}", "SM", dst=4000, len=100)
        self.refused(f"VADD: src2 covers words 4095 to 4096, {past}", "VADD", src2=4095, len=2)
        self.refused(f"AMAX: dst covers words 4096 to 4096, {past}", "AMAX", dst=4096, len=1)
        self.refused(f"AMAX: src covers words 4095 to 4096, {past}", "AMAX", src=4095, len=2)
        self.product(f"MM: A covers words 4081 to 4096, {past}", A=4081)
        self.product(f"MM: B covers words 4081 to 4096, {past}", B=4081)
        self.product(f"MM: dst covers words 4081 to 4096, {past}", dst=4081)
        self.product(f"MM: B covers words 4091 to 4096, {past}", B=4091, N=1, K=6, tb=1, M=1)

    def test_an_operand_that_runs_past_the_external_memory(self):
        words = ga2_isa.EXT
        past = f"past the end of the external memory ({words} words)"
        self.refused(f"LD: src covers words {words - 1} to {words}, {past}", "LD", dst=0,
                     src=words - 1, len=2)
        self.refused(f"ST: dst covers words {words - 1} to {words}, {past}", "ST", src=0,
                     dst=words - 1, len=2)

    def test_a_check_against_a_smaller_external_memory(self):
        ins = build("LD", dst=0, src=60, len=5)
        ga2_isa.check(ins, 65)
        with self.assertRaises(IsaError) as caught:
            ga2_isa.check(ins, 64)
        self.assertEqual(str(caught.exception), "LD: src covers words 60 to 64, past the end of "
                                                "the external memory (64 words)")

    def test_the_last_words_are_taken(self):
        last = ga2_isa.EXT - 1
        build("LD", dst=4095, src=last, len=1)
        build("ST", src=4095, dst=last, len=1)
        build("MM", dst=4080, A=4080, B=4080, M=4, K=4, N=4, lda=4, ldb=4, ldc=4)
        build("SM", dst=0, src=0, len=4096)
        ga2_isa.check({"op": "LD", "b": 65535, "c": 1}, 65536)

    def test_a_destination_that_partly_overlaps_a_source(self):
        end = "it must equal it or lie apart from it"
        self.refused(f"RQ: dst at 1 overlaps src at 0; {end}", "RQ", dst=1, src=0, len=2)
        self.refused(f"SM: dst at 0 overlaps src at 3; {end}", "SM", dst=0, src=3, len=4)
        self.refused(f"VADD: dst at 8 overlaps src2 at 5; {end}", "VADD", dst=8, src1=8, src2=5,
                     len=4)
        build("SM", dst=4, src=0, len=4)
        build("SM", dst=0, src=4, len=4)
        build("VADD", dst=8, src1=8, src2=8, len=4)
        build("MM", dst=1, A=0, B=2, M=4, K=4, N=4, lda=4, ldb=4, ldc=4)
        build("AMAX", dst=1, src=0, len=4)

    def test_bits_and_fields_that_the_instruction_does_not_use(self):
        for ins, message in (
                ({"op": "HALT", "a": 1}, "HALT: field a = 1 sets bits that HALT does not use"),
                ({"op": "RQ", "c": 1, "fl": 2}, "RQ: field fl = 2 sets bits that RQ does not use"),
                ({"op": "VADD", "d": 1 << 16 | 1},
                 "VADD: field d = 65537 sets bits that VADD does not use"),
                ({"op": "SM", "c": 1, "z": 1},
                 "SM: there is no field z; the fields are a, b, c, d, e, f, g, h, fl, x"),
                ({"op": "LD", "c": 1 << 16},
                 "LD: field c = 65536 must be an integer in 0..65535"),
                ({"op": "ADD"}, "ADD is not an instruction; "
                                "GA-2 has HALT, LD, ST, MM, RQ, SM, VADD, AMAX")):
            with self.subTest(message=message), self.assertRaises(IsaError) as caught:
                ga2_isa.encode(ins)
            self.assertEqual(str(caught.exception), message)

    def test_unused_bits_of_a_word_are_refused_when_decoded(self):
        with self.assertRaises(IsaError) as caught:
            ga2_isa.decode(3 << 124 | 2 << 18)
        self.assertEqual(str(caught.exception), "MM: field fl = 2 sets bits that MM does not use")


class Cycles(unittest.TestCase):
    def test_busy_cycles_of_each_instruction_by_hand(self):
        # Total is 2 (fetch, issue) + busy + 2 (HALT); len 10 and 100, M = 2, K = 5, N = 3.
        product = {"M": 2, "K": 5, "N": 3, "lda": 5, "ldb": 3, "ldc": 3}
        cases = (
            (build("LD", len=10), (23, 0, 19, 0, 1)),
            (build("ST", len=10), (16, 0, 12, 0, 1)),
            (build("MM", **product), (10 + 15 + 8 + 6 + 7 + 4, 46, 0, 0, 1)),
            (build("RQ", len=10), (16, 0, 0, 12, 1)),
            (build("SM", len=10), (81, 0, 0, 77, 1)),
            (build("VADD", len=10), (26, 0, 0, 22, 1)),
            (build("AMAX", len=10), (17, 0, 0, 13, 1)),
            (build("SM", len=100), (351, 0, 0, 347, 1)),
        )
        for ins, expected in cases:
            with self.subTest(ins=ins["op"]):
                self.assertEqual(ga2_isa.cycle_counts([ins, build("HALT")]), expected)

    def test_the_largest_product(self):
        ins = build("MM", M=4, K=64, N=4)
        self.assertEqual(ga2_isa.cycle_counts([ins, build("HALT")]), (609, 605, 0, 0, 1))

    def test_latency_counts_for_loads_alone(self):
        code = [build("LD", len=10), build("ST", len=10), build("HALT")]
        self.assertEqual(ga2_isa.cycle_counts(code, 1), (30, 0, 24, 0, 2))
        self.assertEqual(ga2_isa.cycle_counts(code, 20), (49, 0, 43, 0, 2))

    def test_a_halt_alone_takes_two_cycles(self):
        self.assertEqual(ga2_isa.cycle_counts([build("HALT")]), (2, 0, 0, 0, 0))

    def test_nothing_after_the_first_halt_counts(self):
        code = [build("ST", len=1), build("HALT"), build("SM", len=4000), build("HALT")]
        self.assertEqual(ga2_isa.cycle_counts(code), (7, 0, 3, 0, 1))

    def test_a_program_without_halt_is_refused(self):
        for run in (ga2_isa.cycle_counts, ga2_isa.Machine().run):
            with self.subTest(run=run), self.assertRaises(IsaError) as caught:
                run([build("ST", len=1)] * 3)
            self.assertEqual(str(caught.exception),
                             "a program of 3 instructions has no HALT; end it with one")


class Words(unittest.TestCase):
    """What the reference simulator takes a word for."""

    def test_external_memory_is_signed_on_either_side_of_every_edge(self):
        words = {0x7FFFFFFF: 2 ** 31 - 1, 0x80000000: -2 ** 31, 0xFFFFFFFF: -1, 1 << 32: 0,
                 -2 ** 31: -2 ** 31, -2 ** 31 - 1: 2 ** 31 - 1}
        for word, value in words.items():
            self.assertEqual(ga2_isa.Machine([5, word], 3).ext, [5, value, 0])

    def test_products_and_softmaxes_read_the_low_byte_signed(self):
        for word, value in ((127, 127), (128, -128), (-128, -128), (-129, 127)):
            code = [build("LD", dst=0, src=0, len=3),
                    build("MM", dst=3, A=0, B=2, M=1, K=1, N=1),
                    build("MM", dst=4, A=2, B=0, M=1, K=1, N=1),
                    build("SM", dst=5, src=0, len=2), build("HALT")]
            spad = ga2_isa.Machine([word, 0, 1]).run(code).spad
            self.assertEqual(spad[3:7], [value, value, *softmax_gold.softmax([value, 0])], word)


class ExternalMemorySize(unittest.TestCase):
    def run_with(self, value, program="import ga2_isa; print(ga2_isa.EXT)"):
        env = dict(os.environ, PYTHONDONTWRITEBYTECODE="1")
        env.pop("GA2_EXT", None)
        if value is not None:
            env["GA2_EXT"] = value
        return subprocess.run([sys.executable, "-c", program], env=env, text=True,
                              cwd=paths.ROOT / "model", stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)

    def test_default_and_limits(self):
        for value, expected in ((None, "8192"), ("1", "1"), ("65536", "65536")):
            with self.subTest(value=value):
                self.assertEqual(self.run_with(value).stdout.strip(), expected)

    def test_invalid_values_are_refused(self):
        for value in ("0", "65537", "-1", "8k", "", "1.5"):
            with self.subTest(value=value):
                ended = self.run_with(value)
                self.assertNotEqual(ended.returncode, 0)
                self.assertEqual(ended.stderr.splitlines()[-1],
                                 f"ga2_isa.IsaError: GA2_EXT={value}: the external memory has 1 to "
                                 "65536 words; unset it or give a number in that range")

    def test_the_size_is_the_limit_of_every_transfer(self):
        ended = self.run_with("64", "import ga2_isa; ga2_isa.build('LD', src=60, len=5)")
        self.assertEqual(ended.stderr.splitlines()[-1],
                         "ga2_isa.IsaError: LD: src covers words 60 to 64, past the end of the "
                         "external memory (64 words)")


if __name__ == "__main__":
    unittest.main()
