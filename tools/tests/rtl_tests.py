"""Tests of the RTL: the program suite passes in both simulators, and nothing that is wrong does."""

import re
import tempfile
import unittest
from pathlib import Path

import paths
import ga2_isa
import ga2_progs
import ga2_suite
import hw
import proc
import rtl_full
from ga2_isa import build

WORDS = 1024
RANDOM = 20
SEED = 3
SIMULATE = {"icarus": hw.sim_icarus, "verilator": hw.sim_verilator}
# patterns of where the testbench finds the registers of each file
PLACES = (
    ("ga2", r"dut"),
    ("sram", r"dut\.scratchpad"),
    ("dma", r"dut\.dma_i"),
    ("ga2_vec", r"dut\.vec_i"),
    ("ga2_sm", r"dut\.sm_i"),
    ("exp_lut", r"dut\.sm_i\.exp_lut_i"),
    ("divu", r"dut\.sm_i\.divu_i"),
    ("ga2_mm", r"dut\.mm_i"),
    ("rowmem", r"dut\.mm_i\.lane_of\[p\]\.a_row"),
    ("rowmem", r"dut\.mm_i\.lane_of\[p\]\.b_col"),
    ("systolic", r"dut\.mm_i\.systolic_i(\.row\[p/4\]\.col\[p%4\])?"),
)
COUNTERS = ("total", "matrix", "dma", "vector", "instructions")
STORE = build("ST", src=0, dst=5, len=1)
HALT = build("HALT")


class Rtl(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        reason = hw.not_checked()
        if reason:
            raise unittest.SkipTest(reason)


    def replay(self, suite, latencies=rtl_full.LATENCIES, sims=hw.SIMULATORS):
        for job, result in rtl_full.measure([suite], latencies, sims):
            with self.subTest(latency=job.lat, simulator=job.sim, plusargs=suite.plusargs):
                self.assertEqual(result.output, "")
                self.assertEqual(result.mismatches, 0)
                self.assertEqual(result.cycles, sum(one[-5] for one in suite.records(job.lat)))


class Suite(Rtl):
    def test_directed_programs_at_three_latencies(self):
        self.replay(rtl_full.suite("directed", WORDS, ga2_suite.directed(WORDS)))

    def test_random_programs_at_three_latencies(self):
        programs = ga2_suite.random_programs(RANDOM, SEED, WORDS)
        self.replay(rtl_full.suite("random", WORDS, programs))

    def test_the_end_of_the_largest_external_memory_at_pcs_of_16_bits(self):
        suite = rtl_full.Suite("far end", ga2_suite.MOST_WORDS, ["far end"],
                               lambda lat: [ga2_suite.far_end(lat)], ga2_suite.FAR_PC)
        self.replay(suite, [ga2_isa.LAT], ["icarus"])

    def test_the_chips_counters_program_by_program(self):
        programs = ga2_suite.random_programs(5, SEED, WORDS)
        records = [ga2_progs.record(program.code, program.ext, 8, WORDS) for program in programs]
        expected = [ga2_isa.cycle_counts(program.code) for program in programs]
        for sim, ended in hw.replay(records, lat=8, ext=WORDS).items():
            with self.subTest(simulator=sim):
                self.assertEqual(ended.counters, expected)


class PowerOn(Rtl):
    """Whatever the registers hold, a cycle of reset writes nothing and makes the chip ready."""

    def setUp(self):
        self.programs = [program for program in ga2_suite.directed(WORDS)
                         if ga2_isa.cycle_counts(program.code)[0] < 400]

    def test_before_every_program_in_icarus(self):
        for seed in (1, 2, 3):
            suite = rtl_full.suite("short", WORDS, self.programs, rtl_full.power_on(seed))
            self.replay(suite, [ga2_isa.LAT], ["icarus"])

    def test_before_the_first_program_in_verilator(self):
        for seed in range(1, 21):
            first = self.programs[seed % len(self.programs)]
            suite = rtl_full.suite("first", WORDS, [first], rtl_full.power_on(seed))
            self.replay(suite, [ga2_isa.LAT], ["verilator"])

    def test_every_register_is_preset(self):
        testbench = (hw.ROOT / "tb/ga2_tb.v").read_text(encoding="ascii")
        presets = testbench[testbench.index("always @(preset)"):testbench.index("task power_on")]
        presets += "dut.scratchpad.mem"         # left as load_program has filled it
        for file, place in PLACES:
            source = (hw.ROOT / f"rtl/{file}.v").read_text(encoding="ascii")
            registers = re.findall(r"(\w+)(?:\[\w+\])? *<= ", re.sub("//.*", "", source))
            self.assertTrue(registers, file)
            for register in registers:
                self.assertRegex(presets, rf"\b{place}\.{register}\b")


class Parameter(Rtl):
    def test_a_memory_without_an_address_bit_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            status, text = proc.execute(["iverilog", "-g2012", "-s", "sram", "-P", "sram.AW=0",
                                         "-o", f"{folder}/sim", "rtl/sram.v"], hw.ROOT, 60)
            self.assertEqual((status, text), (0, ""))
            status, text = proc.execute(["vvp", "-n", f"{folder}/sim"], hw.ROOT, 60)
        self.assertNotEqual(status, 0)
        self.assertIn("sram: AW = 0, but a memory needs at least 1 address bit\n", text)


class WrongImages(Rtl):
    """Each ends in one FAIL line, a message and an exit status other than 0."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "programs.hex"
        self.words = [1] + ga2_progs.record([STORE, HALT], [1, 2, 3], 8, WORDS)

    def fails(self, *messages):
        """Simulate the image at self.path; each message must be in the output."""
        for sim, simulate in SIMULATE.items():
            with self.subTest(simulator=sim):
                status, text = simulate(hw.RTL + hw.TB, "ga2_tb", programs=self.path,
                                        defines=[f"EXTW={WORDS}", "LAT=8", "DUMP"])
                self.assertNotEqual(status, 0, text)
                verdicts = [line for line in text.splitlines()
                            if line.startswith(("PASS", "FAIL"))]
                self.assertEqual([line[:4] for line in verdicts], ["FAIL"], text)
                for message in messages:
                    self.assertIn(message.replace("PATH", str(self.path)), text)

    def image_fails(self, words, *messages):
        self.path.write_text("".join(f"{word:08x}\n" for word in words), encoding="ascii")
        self.fails(*messages)

    def test_the_right_image_passes(self):
        self.path.write_text(ga2_progs.image([self.words[1:]]), encoding="ascii")
        for sim, simulate in SIMULATE.items():
            status, text = simulate(hw.RTL + hw.TB, "ga2_tb", programs=self.path,
                                    defines=[f"EXTW={WORDS}", "LAT=8", "DUMP"])
            self.assertEqual(status, 0, text)
            self.assertIn("\nPASS 1 programs, 7 cycles\n", f"\n{text}", sim)

    def test_a_wrong_expected_word(self):
        words = list(self.words)
        words[-6] ^= 1                          # the last word expected, before five counters
        self.image_fails(words, "MISMATCH program 0: external word 1023 is 00000000, expected "
                                "00000001", "FAIL 1 of 1 programs, 1 mismatches")

    def test_a_wrong_expected_counter(self):
        right = ga2_isa.cycle_counts([STORE, HALT])
        for number, name in enumerate(COUNTERS):
            words = list(self.words)
            words[len(words) - 5 + number] += 1
            self.image_fails(words, f"MISMATCH program 0: counter {name} is {right[number]}, "
                                    f"expected {right[number] + 1}",
                             "FAIL 1 of 1 programs, 1 mismatches")

    def test_a_truncated_image(self):
        for count in (1, 5, 1000, len(self.words) - 1):
            self.image_fails(self.words[:count], "FAIL image PATH is truncated: it ends after "
                                                 f"line {count}, in program 0")

    def test_a_program_too_few(self):
        self.image_fails([2] + self.words[1:], f"FAIL image PATH is truncated: it ends after line "
                                               f"{len(self.words)}, in program 1")

    def test_an_empty_image(self):
        self.image_fails([], "FAIL image PATH is empty")

    def test_a_missing_image(self):
        self.fails("FAIL cannot read the image PATH")

    def test_words_after_the_last_program(self):
        self.image_fails(self.words + [0], "FAIL image PATH goes on after its 1 programs, in line "
                                           f"{len(self.words) + 1}")

    def test_what_is_not_8_hex_digits(self):
        lines = [f"{word:08x}" for word in self.words]
        for wrong in ("0000000g", "0000 000", "xxxxxxxx", "000000", "000000000", "", "-0000001"):
            lines[20] = wrong
            self.path.write_text("\n".join(lines) + "\n", encoding="ascii")
            self.fails("FAIL image PATH: line 21 is not 8 hex digits")

    def test_a_number_of_instructions_that_is_not_1_to_1024(self):
        for length in (0, 1025, 0xFFFFFFFF):
            self.image_fails([1, length] + self.words[2:], "FAIL image PATH",
                             f" {length} instructions", "1 to 1024 are possible")

    def test_no_programs(self):
        self.image_fails([0], "FAIL image PATH holds 0 programs: nothing was checked")

    def test_a_program_without_halt(self):
        words = list(self.words)
        words[6:10] = words[2:6]                # the HALT becomes a second ST
        self.image_fails(words, "FAIL program 0: no HALT, pc 2 is past its 2 instructions")

    def test_an_instruction_that_does_not_end_in_time(self):
        words = list(self.words)
        words[2:6] = [1 << 28, 0, 0, 0]         # LD of length 0, which the assembler refuses
        self.image_fails(words, "FAIL program 0: stuck at pc 0, opcode 1: ", " cycles, expected 7")

    def test_undefined_opcodes(self):
        for opcode in range(8, 16):
            words = list(self.words)
            words[2] = opcode << 28
            self.image_fails(words, f"FAIL program 0: stuck at pc 0, opcode {opcode} is undefined")


if __name__ == "__main__":
    unittest.main()
