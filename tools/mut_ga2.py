"""Mutation test of the chip: faults in every file of rtl/, against the program suite in Icarus.

    python3 tools/mut_ga2.py
    python3 tools/mut_ga2.py --list
    python3 tools/mut_ga2.py --only 7 12

Prints a line a mutant with the program that caught it, then `N of N caught`; writes out/mut_ga2.txt
and out/mut_ga2.json. The programs are those of model/tests/ga2_suite.py.
"""

import re
import sys
import tempfile
from collections import namedtuple
from pathlib import Path

import paths
import cli
import hw
import mutate
import proc
from mutate import Equivalent, Finding, Mutant

import ga2_isa
import ga2_progs
import ga2_suite

WORDS = 1024
FULL_WORDS = 8192
# The directed programs run in stages by their cycles, so that most faults show in a moment.
STAGE_CYCLES = (400, 4000, 1 << 30)
POWER_ON = ("poweron=1",)       # random registers before the reset, for the shortest programs

Stage = namedtuple("Stage", "words names image plusargs")

MUTANTS = [
    # ---- scratchpad ----
    Mutant("rtl/sram.v", "        if (wr_en)", "        if (1'b1)",
           "writes without being told to", "ST at the corners"),
    Mutant("rtl/sram.v", "mem[wr_addr] <= wr_data;", "mem[rd_addr] <= wr_data;",
           "writes at the read address", "LD at the corners"),
    Mutant("rtl/sram.v", "rd_data <= mem[rd_addr];", "rd_data <= mem[{1'b0, rd_addr[AW-2:0]}];",
           "the upper half cannot be read", "LD at the corners"),

    # ---- LD ----
    Mutant("rtl/dma.v", "if (to_come == 16'd1)", "if (to_come == 16'd2)",
           "ends before the last word has come", "LD at the corners"),
    Mutant("rtl/dma.v", "from_next    = src;", "from_next    = src + 16'd1;",
           "starts one word late", "LD at the corners"),
    Mutant("rtl/dma.v", "to_next      = to + 12'd1;", "to_next      = to + 12'd2;",
           "leaves a gap after each word", "AMAX first of ties"),
    Mutant("rtl/dma.v", "(state == COPY) && (to_ask != 0)", "(state == COPY)",
           "goes on asking: late words reach the next LD", "LD at the corners"),
    Mutant("rtl/dma.v", "            state <= IDLE;", "            state <= state_next;",
           "no reset", "HALT alone"),

    # ---- systolic array ----
    Mutant("rtl/systolic.v", "{{16{product[15]}}, product}", "{16'd0, product}",
           "products are added without their sign", "MM widest strides"),
    Mutant("rtl/systolic.v", "total   <= 32'sd0;", "total   <= total;",
           "clear leaves the sums of the tile before", "MM widest strides"),
    Mutant("rtl/systolic.v", "wire signed [7:0]  b_in = b[", "wire        [7:0]  b_in = b[",
           "operands of B are unsigned", "MM widest strides"),
    Mutant("rtl/systolic.v", "assign a[5*r + c + 1] = a_out;", "assign a[5*r + c + 1] = a_in;",
           "A crosses the array without delay", "MM widest strides"),
    Mutant("rtl/systolic.v", "rd_sum <= sum[{rd_row, rd_col}];", "rd_sum <= sum[{rd_col, rd_row}];",
           "C is read transposed", "MM widest strides"),

    # ---- requantizer ----
    Mutant("rtl/requant.v", "({8'd0, product} + half) >> shift", "{8'd0, product} >> shift",
           "rounds towards zero", "RQ at the end"),
    Mutant("rtl/requant.v", "(64'd1 << shift) >> 1;", "((64'd1 << shift) - 64'd1) >> 1;",
           "ties go towards zero", "RQ at the end"),
    Mutant("rtl/requant.v", "negative ? -acc : acc", "negative ? ~acc : acc",
           "the magnitude of a negative word is one short", "RQ at the end"),
    Mutant("rtl/requant.v", "{24'd0, magnitude} *", "{25'd0, magnitude[30:0]} *",
           "-2**31 loses its only bit", "RQ mantissa 1 relu 0, every shift"),
    Mutant("rtl/requant.v", "(rounded > 64'd127)", "(rounded > 64'd128)",
           "128 is not saturated", "RQ mantissa 1 relu 0, every shift"),
    Mutant("rtl/requant.v", "q = relu ? 8'sd0 : -{1'b0, clamped};", "q = -{1'b0, clamped};",
           "relu is ignored", "RQ mantissa 1 relu 1, every shift"),

    # ---- exponential table ----
    Mutant("rtl/exp_lut.v", "  5: e <= 16'd47946;", "  5: e <= 16'd47947;",
           "a large entry is wrong by one", "SM of rows of near scores"),
    Mutant("rtl/exp_lut.v", "127: e <= 16'd23;", "127: e <= 16'd24;",
           "a small entry is wrong by one", "SM lengths"),

    # ---- divider ----
    Mutant("rtl/divu.v", "left_next    = W[LEFT_W-1:0];", "left_next    = W[LEFT_W-1:0] - 1'b1;",
           "one quotient bit short", "SM of 1 score"),
    Mutant("rtl/divu.v", "borrow     = difference[W];", "borrow     = (trial <= {1'b0, divisor});",
           "does not subtract a divisor equal to the remainder",
           "SM of a sum that is a power of 2"),
    Mutant("rtl/divu.v", "borrow ? trial[W-1:0] : difference[W-1:0]", "difference[W-1:0]",
           "never restores", "SM of 1 score"),
    Mutant("rtl/divu.v", "rest_next    = {W{1'b0}};", "rest_next    = rest;",
           "starts with the remainder of the division before", "SM of 1 score"),

    # ---- operand memory ----
    Mutant("rtl/rowmem.v", "input  wire        [5:0] wr_index,",
           "input  wire        [4:0] wr_index,",
           "holds 32 bytes, not 64", "MM 1x1"),
    Mutant("rtl/rowmem.v", "        if (wr_en)", "        if (1'b1)",
           "every row takes every byte", "MM widest strides"),

    # ---- ST, RQ, VADD, AMAX ----
    Mutant("rtl/ga2.v", "src      = is_st ? {4'd0, a[11:0]} : b;", "src      = b;",
           "ST reads at its external address", "LD at the corners"),
    Mutant("rtl/ga2.v", "is_st ? b : {4'd0, a[11:0]};",
           "is_st ? {4'd0, b[11:0]} : {4'd0, a[11:0]};",
           "ST reaches 4096 external words", "ST at the corners"),
    Mutant("rtl/ga2.v", "is_vadd ? d[15:0] : c;", "is_vadd ? d[15:0] : c + 16'd1;",
           "one word too many, but not in VADD", "LD at the corners"),
    Mutant("rtl/ga2_vec.v", "shift_q    <= shift;", "shift_q    <= {1'b0, shift[4:0]};",
           "RQ shifts by at most 31", "RQ mantissa 1 relu 0, every shift"),
    Mutant("rtl/ga2_vec.v", "{{24{requantized[7]}}, requantized}", "{24'd0, requantized}",
           "RQ writes bytes without their sign", "RQ at the end"),
    Mutant("rtl/ga2_vec.v", "{first[7], first}", "{1'b0, first}",
           "VADD takes its first operand unsigned", "VADD at the ends"),
    Mutant("rtl/ga2_vec.v", "(sum > 9'sd127)", "(sum > 9'sd128)",
           "VADD lets 128 pass, which is -128", "VADD saturates"),
    Mutant("rtl/ga2_vec.v", "(sum < -9'sd127)", "(sum < -9'sd128)",
           "VADD lets -128 pass", "VADD saturates"),
    Mutant("rtl/ga2_vec.v", "rd_addr = second ? from2 : from;", "rd_addr = from;",
           "VADD reads its first operand twice", "VADD at the ends"),
    Mutant("rtl/ga2_vec.v", "rd_data > best)", "rd_data >= best)",
           "AMAX finds the last of equal words", "AMAX first of ties"),
    Mutant("rtl/ga2_vec.v", "index == 16'd0 || rd_data > best", "rd_data > best",
           "AMAX compares with the maximum of the vector before", "AMAX one word"),
    Mutant("rtl/ga2_vec.v", "reg signed [31:0] best;", "reg        [31:0] best;",
           "AMAX compares unsigned words", "AMAX int32 extremes"),
    Mutant("rtl/ga2_vec.v", "{16'd0, best_index}", "{24'd0, best_index[7:0]}",
           "AMAX finds an index of at most 255", "AMAX largest far from the first"),

    # ---- SM ----
    Mutant("rtl/ga2_sm.v", "maximum_next = -8'sd128;", "maximum_next = 8'sd0;",
           "the maximum is at least 0", "SM of 1 score"),
    Mutant("rtl/ga2_sm.v", ".denominator ({12'd0, sum}),", ".denominator ({13'd0, sum[26:0]}),",
           "the sum loses its highest bit", "SM of 4096 equal scores"),
    Mutant("rtl/ga2_sm.v", "maximum_next = -8'sd128;", "maximum_next = -8'sd127;",
           "the lowest score is no maximum", "SM of 170 lowest scores"),
    Mutant("rtl/ga2_sm.v", "input  wire signed [7:0]  rd_byte,",
           "input  wire        [7:0]  rd_byte,",
           "scores are compared unsigned", "SM of 1 score"),
    Mutant("rtl/ga2_sm.v", "arrived && (state != MAX);", "arrived;",
           "the sum begins with what the table held", "SM of 1 score"),
    Mutant("rtl/ga2_sm.v", "reading_next = (index_next != count);",
           "reading_next = (index != count);",
           "each pass takes one score too many", "SM of 1 score"),
    Mutant("rtl/ga2_sm.v", "sum_next     = 28'd0;", "sum_next     = 28'd1;",
           "the sum starts at 1", "SM of 1 score"),
    Mutant("rtl/ga2_sm.v", "{12'd0, sum}", "{16'd0, sum[23:0]}",
           "the sum loses its upper bits", "SM of 600 equal scores"),
    Mutant("rtl/ga2_sm.v", "product + (39'd1 << 21)", "product",
           "probabilities are not rounded", "SM of 1 score"),
    Mutant("rtl/ga2_sm.v", "{15'd0, rounded[38:22]}", "{16'd0, rounded[37:22]}",
           "a probability of 1 becomes 0", "SM of 1 score"),
    Mutant("rtl/ga2_sm.v", "scores + index[11:0]", "scores + {1'b0, index[10:0]}",
           "scores after the 2048th are the first ones again", "longest SM"),

    # ---- MM ----
    Mutant("rtl/ga2_mm.v", "wire        [6:0] index = step - r;", "wire        [6:0] index = step;",
           "operands enter without skew", "MM widest strides"),
    Mutant("rtl/ga2_mm.v", "{4'd0, n_q} - 7'd1;", "{4'd0, n_q} - 7'd2;",
           "streams one step less", "MM widest strides"),
    Mutant("rtl/ga2_mm.v", "reg [6:0]  k_q;", "reg [5:0]  k_q;",
           "K has 6 bits", "MM 1x1"),
    Mutant("rtl/ga2_mm.v", "lane_step = lda_q;", "lane_step = {5'd0, k_q};",
           "lda is ignored", "MM widest strides"),
    Mutant("rtl/ga2_mm.v", "lane_step = ldc_q;", "lane_step = {9'd0, n_q};",
           "ldc is ignored", "MM widest strides"),
    Mutant("rtl/ga2_mm.v", "item_step = tb_q ? 12'd1 : ldb_q;", "item_step = 12'd1;",
           "B is always read as if transposed", "MM widest strides"),
    Mutant("rtl/ga2_mm.v", "stage_a && arrived_lane == r", "stage_a",
           "every row of A is its last one", "MM widest strides"),
    Mutant("rtl/ga2_mm.v", "wr_addr = arrived_addr;", "wr_addr = addr;",
           "C lies one word too far", "MM widest strides"),
    Mutant("rtl/ga2_mm.v", "(state_next == STAGE_B) ? b_q : dst_q;", "b_q;",
           "C is written over B", "MM widest strides"),

    # ---- sequencer, counters, scratchpad ports ----
    Mutant("rtl/ga2.v", "counter_next = counter + 16'd1;", "counter_next = counter + 16'd2;",
           "every second instruction is left out", "LD at the corners"),
    Mutant("rtl/ga2.v", "            counter <= 16'd0;", "            counter <= counter_next;",
           "the program counter has no reset", "HALT alone"),
    Mutant("rtl/ga2.v", "reg  [15:0]  counter_next;", "reg  [14:0]  counter_next;",
           "the program counter has 15 bits", "the end of 65536 words"),
    Mutant("rtl/ga2.v", "rd_addr = sm_rd_addr;", "rd_addr = mm_rd_addr;",
           "SM reads where MM points", "SM of 1 score"),
    Mutant("rtl/ga2.v", "wr_data = dma_wr_data;", "wr_data = vec_wr_data;",
           "LD writes what the vector unit holds", "LD at the corners"),
    Mutant("rtl/ga2.v", "mm_ldb   = d[23:12];", "mm_ldb   = d[11:0];",
           "ldb is lda", "MM widest strides"),
    Mutant("rtl/ga2.v", "wire runs  = (state == FETCH) || (state == ISSUE)",
           "wire runs  = (state == ISSUE)",
           "total does not count fetches", "HALT alone"),
    Mutant("rtl/ga2.v", "waits && is_mm;", "(waits || issues) && is_mm;",
           "matrix counts issues too", "MM widest strides"),
    Mutant("rtl/ga2.v", "waits && (is_ld || is_st);", "waits && is_ld;",
           "dma does not count ST", "LD at the corners"),
    Mutant("rtl/ga2.v", "(is_vec && !is_st)", "is_vec",
           "vector counts ST too", "LD at the corners"),
    Mutant("rtl/ga2.v", "issues && !is_halt;", "issues;",
           "instructions counts the HALT", "HALT alone"),
    Mutant("rtl/ga2.v", "            count_vector       <= 32'd0;",
           "            count_vector       <= count_vector;",
           "vector goes on from the program before", "HALT alone"),

    # ---- addresses past 8,192 words, the reset cycle, start ----
    Mutant("rtl/dma.v", "from_next    = src;", "from_next    = {3'd0, src[12:0]};",
           "LD cuts external addresses to 13 bits", "the end of 65536 words"),
    Mutant("rtl/dma.v", "ext_rd_addr = from;", "ext_rd_addr = {3'd0, from[12:0]};",
           "LD asks for addresses of 13 bits", "the end of 65536 words"),
    Mutant("rtl/ga2_vec.v", "ext_wr_addr = to;", "ext_wr_addr = {3'd0, to[12:0]};",
           "ST cuts external addresses to 13 bits", "the end of 65536 words"),
    Mutant("rtl/ga2.v", "ext_wr_en = vec_ext_wr_en && !rst;", "ext_wr_en = vec_ext_wr_en;",
           "the reset cycle writes to the external memory", "HALT alone"),
    Mutant("rtl/ga2.v", "(wr_en && !rst)", "(wr_en)",
           "the reset cycle writes to the scratchpad", "HALT alone"),
    Mutant("rtl/ga2_mm.v", "(state == STAGE_A) && arrived && !rst;",
           "(state == STAGE_A) && arrived;",
           "the reset cycle writes to a row of A", "HALT alone"),
    Mutant("rtl/ga2_mm.v", "(state == STAGE_B) && arrived && !rst;",
           "(state == STAGE_B) && arrived;",
           "the reset cycle writes to a column of B", "HALT alone"),
    Mutant("rtl/ga2.v", "                if (start)", "                if (1'b1)",
           "IDLE does not wait for start", "HALT alone"),
    Mutant("rtl/ga2.v", "                state_next = HALT;",
           "                state_next = start ? IDLE : HALT;",
           "start takes the chip out of HALT", "HALT alone"),
]

EQUIVALENTS = [
    Equivalent("rtl/sram.v", "rd_data <= mem[rd_addr];",
               "rd_data <= (wr_en && wr_addr == rd_addr) ? wr_data : mem[rd_addr];",
               "a word written is read in the same cycle",
               "no unit uses a word that it reads in the cycle in which it is written"),
    Equivalent("rtl/dma.v", "(state == COPY) && ext_rd_valid;", "(state == COPY);",
               "LD writes in every cycle",
               "the address moves on only after the word itself has been written there"),
    Equivalent("rtl/exp_lut.v", "if (enable) case (d)", "case (d)",
               "the table looks up in every cycle",
               "an entry is used only in the cycle after enable"),
    Equivalent("rtl/ga2_sm.v", "arrived && rd_byte > maximum", "arrived && rd_byte >= maximum",
               "an equal score replaces the maximum",
               "it replaces the maximum by the same value"),
    Equivalent("rtl/ga2_mm.v", ".enable (state == STREAM),", ".enable (1'b1),",
               "the array steps in every cycle",
               "outside STREAM its edges carry zeros, and CLEAR empties it before the next tile"),
    Equivalent("rtl/ga2_mm.v", "(index < k_q) && (r < m_q)", "(index < k_q)",
               "rows that the tile does not have send what they hold",
               "a row meets no other row, and sums of rows past M are never written"),
]


def main(argv=None):
    with tempfile.TemporaryDirectory(prefix="ga2-") as folder:
        try:
            check = suite_check(make_stages(Path(folder)))
        except ga2_isa.IsaError as error:
            raise cli.UserError(str(error)) from error
        return mutate.run("mut_ga2", MUTANTS, EQUIVALENTS, ["rtl", "tb"], check, argv)


def make_stages(folder):
    """The stages of the suite, with their images written to `folder`."""
    programs = ga2_suite.directed(WORDS)
    stages = []
    least = 0
    for most in STAGE_CYCLES:
        chosen = [program for program in programs
                  if least <= ga2_isa.cycle_counts(program.code)[0] < most]
        stages.append(make_stage(folder, WORDS, chosen))
        if least == 0:
            stages.append(stages[0]._replace(plusargs=POWER_ON))
        least = most
    stages.append(make_stage(folder, FULL_WORDS, ga2_suite.ends(FULL_WORDS)))
    far = folder / "far.hex"
    far.write_text(ga2_progs.image([ga2_suite.far_end()]), encoding="ascii")
    most = ga2_suite.MOST_WORDS
    return stages + [Stage(most, [f"the end of {most} words"], far, ga2_suite.FAR_PC)]


def make_stage(folder, words, programs):
    path = folder / f"{words}-{len(programs)}.hex"
    records = [ga2_progs.record(program.code, program.ext, words=words) for program in programs]
    path.write_text(ga2_progs.image(records), encoding="ascii")
    return Stage(words, [program.name for program in programs], path, ())


def suite_check(stages):
    """The check of mutate.run: replay stage by stage up to one with a problem."""
    def check(copy, seconds):
        for stage in stages:
            status, text = hw.sim_icarus(hw.RTL + hw.TB, "ga2_tb", root=copy,
                                         defines=[f"EXTW={stage.words}", f"LAT={ga2_isa.LAT}"],
                                         programs=stage.image, plusargs=stage.plusargs,
                                         timeout=seconds)
            finding = read(status, text, stage.names)
            if finding.kind != mutate.PASSED:
                break
        return finding

    return check


def read(status, text, names):
    """The Finding in a simulation's output: its first problem, and the program that showed it."""
    if status == 0:
        return Finding(mutate.PASSED, "", "")
    if status == proc.TIMED_OUT:
        return Finding(mutate.TIME_OUT, "", "stopped without an end")
    problem = re.search(r"^(?:MISMATCH|FAIL) program (\d+): .*", text, re.MULTILINE)
    if not problem:
        return Finding(mutate.BROKEN, "", text.strip().rpartition("\n")[2])
    return Finding(mutate.PROBLEM, names[int(problem.group(1))], problem.group())


if __name__ == "__main__":
    sys.exit(cli.run(main))
