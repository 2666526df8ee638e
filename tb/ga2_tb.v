// Testbench of GA-2: runs every program of an image, compares external memory and counters.
//
//     +programs=PATH     the image, instead of out/ga2_programs.hex
//     +poweron=SEED      load the memories, then reset from random registers (see "Power-on")
//     +pc=N              start at pc N, where the first instruction lies then (Icarus alone)
//     +vcd, +vcd=PATH    waves, to ga2.vcd or PATH (a Verilator build needs --trace for it)
//     EXTW, LAT          defines: words and read latency of the external memory (8192, 8)
//     DUMP               define: print "COUNTERS program total matrix dma vector instructions"
//
// Image:     one 32-bit word a line, 8 hex digits: the number of programs; then for each program
//            the number of instructions, each instruction as four words (the most significant
//            first), EXT words of external memory before, EXT words expected after, and the five
//            expected counters.
// Verdict:   lines starting MISMATCH, then one line starting PASS or FAIL. FAIL ends with an exit
//            status other than 0 in every simulator, hence $fatal: $finish and $stop may give 0.
// Timing:    the clock is ticked by the testbench and only while a program runs; inputs change and
//            outputs are read while it is low.
// Reference: ga2_progs.record (the image), ga2_isa.Machine and ga2_isa.cycle_counts (its contents)

`default_nettype none

`ifndef EXTW
`define EXTW 8192
`endif

`ifndef LAT
`define LAT 8
`endif

module ga2_tb;

    localparam EXT          = `EXTW;
    localparam SPAD         = 4096;
    localparam INSTRUCTIONS = 1024;     // the most a program may have
    localparam SHOWN        = 8;        // MISMATCH lines for words of one program, at most

    // No instruction takes longer than a softmax of the whole scratchpad, or a load of it.
    localparam SLOWEST      = 2 + 3 * SPAD + 41 + 6 + `LAT;

    // ---- The chip, its program memory and its external memory ----

    reg          clk   = 1'b0;
    reg          rst   = 1'b0;
    reg          start = 1'b0;
    wire         halted;
    wire [15:0]  pc;
    wire         rd_en;
    wire [15:0]  rd_addr;
    wire         rd_valid;
    wire [31:0]  rd_data;
    wire         wr_en;
    wire [15:0]  wr_addr;
    wire [31:0]  wr_data;
    wire         past_end;
    wire [31:0]  total;
    wire [31:0]  matrix;
    wire [31:0]  dma;
    wire [31:0]  vector;
    wire [31:0]  instructions;

    reg  [127:0] code [0:INSTRUCTIONS-1];
    reg  [15:0]  first_pc = 16'd0;      // of every program
    wire [15:0]  place  = pc - first_pc;
    wire [127:0] instr  = code[place[9:0]];
    wire [3:0]   opcode = instr[127:124];

    ga2 dut (
        .clk                (clk),
        .rst                (rst),
        .start              (start),
        .halted             (halted),
        .pc                 (pc),
        .instr              (instr),
        .ext_rd_en          (rd_en),
        .ext_rd_addr        (rd_addr),
        .ext_rd_valid       (rd_valid),
        .ext_rd_data        (rd_data),
        .ext_wr_en          (wr_en),
        .ext_wr_addr        (wr_addr),
        .ext_wr_data        (wr_data),
        .count_total        (total),
        .count_matrix       (matrix),
        .count_dma          (dma),
        .count_vector       (vector),
        .count_instructions (instructions)
    );

    extmem_rw #(.EXT(EXT), .LAT(`LAT)) ext (
        .clk      (clk),
        .rst      (rst),
        .rd_en    (rd_en),
        .rd_addr  (rd_addr),
        .rd_valid (rd_valid),
        .rd_data  (rd_data),
        .wr_en    (wr_en),
        .wr_addr  (wr_addr),
        .wr_data  (wr_data),
        .past_end (past_end)
    );

    task tick;
        begin
            #1 clk = 1'b1;
            #1 clk = 1'b0;
        end
    endtask

    // ---- The image ----

    reg [8*1024-1:0] path;
    integer          image;             // file descriptor
    integer          line_number;
    reg [31:0]       programs;
    reg [31:0]       program_index;     // of the program being read or run

    // Value of a hex digit by its character; bit 4 is set for a character that is none.
    reg [4:0] hex [0:255];

    task prepare_hex;
        integer i;
        begin
            for (i = 0; i < 256; i = i + 1)
                hex[i] = 5'h10;
            for (i = 0; i < 10; i = i + 1)
                hex["0" + i] = i[4:0];
            for (i = 0; i < 6; i = i + 1) begin
                hex["A" + i] = i[4:0] + 5'd10;
                hex["a" + i] = i[4:0] + 5'd10;
            end
        end
    endtask

    // The FAIL line is printed, the simulation ends here.
    task give_up;
        $fatal(1, "the reason is in the FAIL line above");
    endtask

    task open_image;
        begin
            if (!$value$plusargs("programs=%s", path))
                path = "out/ga2_programs.hex";
            image = $fopen(path, "r");
            line_number = 0;
            if (image == 0) begin
                $display("FAIL cannot read the image %0s", path);
                give_up;
            end
        end
    endtask

    // The next word. A line is 8 hex digits and a newline, which only the last line may lack: nine
    // characters, so of a longer line the buffer holds no end. (No loop over the digits: reading
    // the image would take Icarus longer than running it.)
    task read_word;
        output [31:0] word;
        reg [8*9-1:0] line;
        reg [5*8-1:0] digits;
        reg           whole;
        integer       count;
        begin
            count       = $fgets(line, image);
            line_number = line_number + 1;
            if (count == 0) begin
                if (line_number == 1)
                    $display("FAIL image %0s is empty", path);
                else
                    $display("FAIL image %0s is truncated: it ends after line %0d, in program %0d",
                             path, line_number - 1, program_index);
                give_up;
            end
            whole = (count == 9) && (line[7:0] == "\n");
            if (count == 8) begin
                whole = 1'b1;
                line  = {line[63:0], "\n"};
            end
            digits = {hex[line[71:64]], hex[line[63:56]], hex[line[55:48]], hex[line[47:40]],
                      hex[line[39:32]], hex[line[31:24]], hex[line[23:16]], hex[line[15:8]]};
            word   = {digits[38:35], digits[33:30], digits[28:25], digits[23:20],
                      digits[18:15], digits[13:10], digits[8:5],   digits[3:0]};
            if (!whole || (digits & {8{5'h10}}) != 40'd0) begin
                $display("FAIL image %0s: line %0d is not 8 hex digits", path, line_number);
                give_up;
            end
        end
    endtask

    task check_end_of_image;
        begin
            if ($fgetc(image) != -1) begin
                $display("FAIL image %0s goes on after its %0d programs, in line %0d",
                         path, programs, line_number + 1);
                give_up;
            end
            $fclose(image);
        end
    endtask

    // ---- Power-on and reset ----
    // A chip powers on in any state, and its reset must not touch what the memories hold. So with
    // +poweron each program is loaded first and the chip is reset then, from registers that have
    // been given random values. Verilator does that itself, before the first program alone: there
    // the option goes with +verilator+rand+reset+2 +verilator+seed+SEED.

    reg powers_on;
    reg wrote;                          // a write enable was not 0 in the reset cycle
    reg preset = 1'b0;                  // every change gives the registers other values

`ifndef VERILATOR

    reg [31:0] seed;

    initial
        if (!$value$plusargs("poweron=%d", seed))
            seed = 32'd0;

    // 512 random bits, others for every `what`, program and seed (xorshift; what < 64)
    function [511:0] draw;
        input [31:0] what;
        reg   [31:0] word;
        integer      i;
        begin
            word = (seed << 16) + (program_index << 6) + what + 32'd1;
            for (i = 0; i < 20; i = i + 1) begin
                word = word ^ (word << 13);
                word = word ^ (word >> 17);
                word = word ^ (word << 5);
                draw = {draw[479:0], word}; // the first four, still alike, leave at the top
            end
        end
    endfunction

    always @(preset) begin
        {dut.state, dut.counter, dut.ir} <= draw(0);
        {dut.count_total, dut.count_matrix, dut.count_dma, dut.count_vector,
         dut.count_instructions, dut.scratchpad.rd_data} <= draw(1);
        {dut.dma_i.state, dut.dma_i.from, dut.dma_i.to_ask, dut.dma_i.to,
         dut.dma_i.to_come} <= draw(2);
        {dut.vec_i.state, dut.vec_i.stores, dut.vec_i.scales, dut.vec_i.adds, dut.vec_i.finds,
         dut.vec_i.mantissa_q, dut.vec_i.shift_q, dut.vec_i.relu_q, dut.vec_i.from,
         dut.vec_i.from2, dut.vec_i.to, dut.vec_i.left, dut.vec_i.second, dut.vec_i.arrived,
         dut.vec_i.first, dut.vec_i.index, dut.vec_i.best_index, dut.vec_i.best} <= draw(3);
        {dut.sm_i.state, dut.sm_i.scores, dut.sm_i.count, dut.sm_i.to, dut.sm_i.reading,
         dut.sm_i.index, dut.sm_i.arrived, dut.sm_i.looked_up, dut.sm_i.maximum, dut.sm_i.sum,
         dut.sm_i.exp_lut_i.e, dut.sm_i.divu_i.left, dut.sm_i.divu_i.divisor,
         dut.sm_i.divu_i.rest, dut.sm_i.divu_i.bits} <= draw(4);
        {dut.mm_i.state, dut.mm_i.dst_q, dut.mm_i.b_q, dut.mm_i.m_q, dut.mm_i.k_q, dut.mm_i.n_q,
         dut.mm_i.tb_q, dut.mm_i.lda_q, dut.mm_i.ldb_q, dut.mm_i.ldc_q, dut.mm_i.walking,
         dut.mm_i.lane, dut.mm_i.item, dut.mm_i.addr, dut.mm_i.lane_addr, dut.mm_i.arrived,
         dut.mm_i.arrived_lane, dut.mm_i.arrived_item, dut.mm_i.arrived_addr, dut.mm_i.step,
         dut.mm_i.a_valid, dut.mm_i.b_valid, dut.mm_i.systolic_i.rd_sum} <= draw(5);
    end

    genvar p;
    generate
        for (p = 0; p < 4; p = p + 1) begin : operands
            reg [511:0] a_bytes;
            reg [511:0] b_bytes;
            integer     i;
            always @(preset) begin
                {dut.mm_i.lane_of[p].a_row.rd_byte, dut.mm_i.lane_of[p].b_col.rd_byte} <= draw(6);
                a_bytes = draw(8 + p);
                b_bytes = draw(12 + p);
                for (i = 0; i < 64; i = i + 1) begin
                    dut.mm_i.lane_of[p].a_row.mem[i] <= a_bytes[8*i +: 8];
                    dut.mm_i.lane_of[p].b_col.mem[i] <= b_bytes[8*i +: 8];
                end
            end
        end
        for (p = 0; p < 16; p = p + 1) begin : cells
            always @(preset)
                {dut.mm_i.systolic_i.row[p/4].col[p%4].a_out,
                 dut.mm_i.systolic_i.row[p/4].col[p%4].b_out,
                 dut.mm_i.systolic_i.row[p/4].col[p%4].product,
                 dut.mm_i.systolic_i.row[p/4].col[p%4].total} <= draw(16 + p);
        end
    endgenerate

`endif

    task power_on;
        begin
            preset = !preset;
            #1;
        end
    endtask

    task reset;
        begin
            rst = 1'b1;
            #1 wrote = ((wr_en || dut.scratchpad.wr_en || dut.mm_i.stage_a || dut.mm_i.stage_b)
                        !== 1'b0);
            tick;
            rst = 1'b0;
`ifndef VERILATOR
            if ($value$plusargs("pc=%d", first_pc))
                dut.counter = first_pc;
`endif
        end
    endtask

    // ---- One program ----

    reg [31:0] length;                  // instructions
    reg [31:0] expected [0:EXT-1];
    reg [31:0] expected_total;
    reg [31:0] expected_matrix;
    reg [31:0] expected_dma;
    reg [31:0] expected_vector;
    reg [31:0] expected_instructions;
    reg [31:0] cycles;                  // clock ticks from start to halted
    integer    mismatches;              // in this program

    task load_program;
        integer i;
        begin
            read_word(length);
            if (length < 1 || length > INSTRUCTIONS) begin
                $display("FAIL image %0s: program %0d has %0d instructions, 1 to %0d are possible",
                         path, program_index, length, INSTRUCTIONS);
                give_up;
            end
            for (i = 0; i < length; i = i + 1) begin
                read_word(code[i][127:96]);
                read_word(code[i][95:64]);
                read_word(code[i][63:32]);
                read_word(code[i][31:0]);
            end
            for (i = 0; i < EXT; i = i + 1)
                read_word(ext.mem[i]);
            for (i = 0; i < EXT; i = i + 1)
                read_word(expected[i]);
            read_word(expected_total);
            read_word(expected_matrix);
            read_word(expected_dma);
            read_word(expected_vector);
            read_word(expected_instructions);
            for (i = 0; i < SPAD; i = i + 1)
                dut.scratchpad.mem[i] = 32'd0;
        end
    endtask

    // Start, and tick the clock until the chip has halted. Without start it stays in IDLE, and when
    // it has halted start means nothing: its counters, compared later, hold their values. A chip
    // that hangs is given twice the cycles the model expects and some more, so that the report
    // comes within moments; numbers no program of this length can reach (a broken image) do not
    // count as an expectation.
    task run_program;
        reg [31:0] slowest;
        reg [31:0] limit;
        begin
            slowest = length * SLOWEST;
            limit   = 20000 + 2 * ((expected_total < slowest) ? expected_total : slowest);
            repeat (3) tick;
            start = 1'b1;
            tick;
            start = 1'b0;
            cycles = 0;
            while (halted !== 1'b1 && {16'd0, place} < length && cycles < limit) begin
                tick;
                cycles = cycles + 1;
            end
            if (halted !== 1'b1) begin
                if ({16'd0, place} >= length)
                    $display("FAIL program %0d: no HALT, pc %0d is past its %0d instructions",
                             program_index, pc, length);
                else if (opcode > 4'd7)
                    $display("FAIL program %0d: stuck at pc %0d, opcode %0d is undefined",
                             program_index, pc, opcode);
                else
                    $display(
                        "FAIL program %0d: stuck at pc %0d, opcode %0d: %0d cycles, expected %0d",
                             program_index, pc, opcode, cycles, expected_total);
                give_up;
            end
            start = 1'b1;
            repeat (3) tick;
            start = 1'b0;
        end
    endtask

    task check_counter;
        input [8*12-1:0] name;
        input [31:0]     found;
        input [31:0]     wanted;
        if (found !== wanted) begin
            mismatches = mismatches + 1;
            $display("MISMATCH program %0d: counter %0s is %0d, expected %0d",
                     program_index, name, found, wanted);
        end
    endtask

    task check_program;
        integer i;
        begin
            mismatches = 0;
            for (i = 0; i < EXT; i = i + 1)
                if (ext.mem[i] !== expected[i]) begin
                    mismatches = mismatches + 1;
                    if (mismatches <= SHOWN)
                        $display("MISMATCH program %0d: external word %0d is %h, expected %h",
                                 program_index, i, ext.mem[i], expected[i]);
                end
            if (mismatches > SHOWN)
                $display("MISMATCH program %0d: %0d external words in all, %0d of them shown",
                         program_index, mismatches, SHOWN);
            if (wrote !== 1'b0) begin
                mismatches = mismatches + 1;
                $display("MISMATCH program %0d: the reset cycle writes to a memory", program_index);
            end
            if (halted !== 1'b1) begin
                mismatches = mismatches + 1;
                $display("MISMATCH program %0d: start took the chip out of HALT", program_index);
            end
            if (past_end !== 1'b0) begin
                mismatches = mismatches + 1;
                $display("MISMATCH program %0d: an external address is past the last word, %0d",
                         program_index, EXT - 1);
            end
            check_counter("total", total, expected_total);
            check_counter("matrix", matrix, expected_matrix);
            check_counter("dma", dma, expected_dma);
            check_counter("vector", vector, expected_vector);
            check_counter("instructions", instructions, expected_instructions);
            if (total !== cycles) begin
                mismatches = mismatches + 1;
                $display("MISMATCH program %0d: counter total is %0d, but it took %0d clock cycles",
                         program_index, total, cycles);
            end
`ifdef DUMP
            $display("COUNTERS %0d %0d %0d %0d %0d %0d",
                     program_index, total, matrix, dma, vector, instructions);
`endif
        end
    endtask

    // ---- All programs, and the verdict ----

    integer    failed;                  // programs with a mismatch
    integer    all_mismatches;
    reg [63:0] all_cycles;

    task open_waves;
        reg [8*1024-1:0] waves;
        if ($test$plusargs("vcd")) begin
            if (!$value$plusargs("vcd=%s", waves))
                waves = "ga2.vcd";
            $dumpfile(waves);
            #1 $dumpvars(0, ga2_tb);    // in the same moment, Verilator may swap the two calls
        end
    endtask

    initial begin
        failed         = 0;
        all_mismatches = 0;
        all_cycles     = 64'd0;
        program_index  = 0;
        powers_on      = ($test$plusargs("poweron=") != 0);
        prepare_hex;
        open_waves;
        open_image;
        read_word(programs);
        if (programs == 0) begin
            $display("FAIL image %0s holds 0 programs: nothing was checked", path);
            give_up;
        end
        while (program_index < programs) begin
            if (powers_on)
                power_on;
            else
                reset;
            load_program;
            if (powers_on)
                reset;
            run_program;
            check_program;
            failed         = failed + ((mismatches != 0) ? 1 : 0);
            all_mismatches = all_mismatches + mismatches;
            all_cycles     = all_cycles + {32'd0, total};
            program_index  = program_index + 1;
        end
        check_end_of_image;
        if (failed != 0) begin
            $display("FAIL %0d of %0d programs, %0d mismatches", failed, programs, all_mismatches);
            give_up;
        end
        $display("PASS %0d programs, %0d cycles", programs, all_cycles);
        $finish(0);
    end

endmodule

`default_nettype wire
