// GA-2: sequencer, scratchpad and units of the accelerator.
//
// Timing:    a program runs from start (in IDLE) to halted. An instruction takes one cycle to be
//            fetched, one to be issued, and then the busy cycles of its unit; HALT takes the first
//            two. One instruction is in flight at a time. An undefined opcode starts no unit: the
//            chip stays in WAIT, with the pc on that instruction, until it is reset.
// Reference: ga2_isa.Machine; the five counters: ga2_isa.cycle_counts

`default_nettype none

module ga2 (
    input  wire         clk,
    input  wire         rst,

    // host
    input  wire         start,
    output wire         halted,

    // program memory: address out, instruction back in the same cycle
    output wire [15:0]  pc,
    input  wire [127:0] instr,

    // external memory, read side: rd_data is the answer to the oldest request when rd_valid is high
    output wire         ext_rd_en,
    output wire [15:0]  ext_rd_addr,
    input  wire         ext_rd_valid,
    input  wire [31:0]  ext_rd_data,

    // external memory, write side
    output wire         ext_wr_en,
    output wire [15:0]  ext_wr_addr,
    output wire [31:0]  ext_wr_data,

    // counters, in cycles but for the last; they hold their values in HALT
    output reg  [31:0]  count_total,
    output reg  [31:0]  count_matrix,
    output reg  [31:0]  count_dma,
    output reg  [31:0]  count_vector,
    output reg  [31:0]  count_instructions
);

    // ---- The instruction: opcode and ten fields, always in the same place ----

    localparam [3:0] OP_HALT = 4'd0,
                     OP_LD   = 4'd1,
                     OP_ST   = 4'd2,
                     OP_MM   = 4'd3,
                     OP_RQ   = 4'd4,
                     OP_SM   = 4'd5,
                     OP_VADD = 4'd6,
                     OP_AMAX = 4'd7;

    reg  [127:0] ir;                    // instruction register, loaded in FETCH

    wire [3:0]   op = ir[127:124];
    wire [15:0]  a  = ir[123:108];
    wire [15:0]  b  = ir[107:92];
    wire [15:0]  c  = ir[91:76];
    wire [23:0]  d  = ir[75:52];
    wire [5:0]   e  = ir[51:46];
    wire [7:0]   f  = ir[45:38];
    wire [7:0]   g  = ir[37:30];
    wire [7:0]   h  = ir[29:22];
    wire [3:0]   fl = ir[21:18];
    wire [17:0]  x  = ir[17:0];

    // ---- Decoding: from here on there are names, no opcodes and no field letters ----

    wire is_halt = (op == OP_HALT);
    wire is_ld   = (op == OP_LD);
    wire is_st   = (op == OP_ST);
    wire is_mm   = (op == OP_MM);
    wire is_rq   = (op == OP_RQ);
    wire is_sm   = (op == OP_SM);
    wire is_vadd = (op == OP_VADD);
    wire is_amax = (op == OP_AMAX);
    wire is_vec  = is_st || is_rq || is_vadd || is_amax;

    // In the scratchpad an address has 12 bits; ST's dst and LD's src are external and have 16.
    wire [15:0] dst      = is_st ? b : {4'd0, a[11:0]};
    wire [15:0] src      = is_st ? {4'd0, a[11:0]} : b;
    wire [11:0] src2     = c[11:0];
    wire [15:0] len      = is_vadd ? d[15:0] : c;

    wire [23:0] mantissa = d;
    wire [5:0]  shift    = e;
    wire        relu     = fl[0];

    wire [11:0] mm_a     = b[11:0];
    wire [11:0] mm_b     = c[11:0];
    wire [2:0]  mm_m     = f[2:0];
    wire [6:0]  mm_k     = g[6:0];
    wire [2:0]  mm_n     = h[2:0];
    wire        mm_tb    = fl[0];
    wire [11:0] mm_lda   = d[11:0];
    wire [11:0] mm_ldb   = d[23:12];
    wire [11:0] mm_ldc   = x[11:0];

    // bits that no legal instruction sets: addresses past the scratchpad, sizes past the array
    wire unused = &{1'b0, a[15:12], f[7:3], g[7], h[7:3], fl[3:1], x[17:12]};

    // ---- Sequencer ----

    localparam [2:0] IDLE  = 3'd0,
                     FETCH = 3'd1,      // the instruction register loads
                     ISSUE = 3'd2,      // its unit is started
                     WAIT  = 3'd3,      // its unit is busy
                     HALT  = 3'd4;

    reg  [2:0]   state;
    reg  [2:0]   state_next;
    reg  [15:0]  counter;               // program counter: it moves on when an instruction is done
    reg  [15:0]  counter_next;
    reg  [127:0] ir_next;
    wire         done;                  // from the unit at work

    assign pc     = counter;
    assign halted = (state == HALT);

    always @* begin
        state_next   = state;
        counter_next = counter;
        ir_next      = ir;
        case (state)
            IDLE:
                if (start)
                    state_next = FETCH;
            FETCH: begin
                ir_next    = instr;
                state_next = ISSUE;
            end
            ISSUE:
                state_next = is_halt ? HALT : WAIT;
            WAIT:
                if (done) begin
                    counter_next = counter + 16'd1;
                    state_next   = FETCH;
                end
            default:                    // HALT, until reset
                state_next = HALT;
        endcase
    end

    always @(posedge clk)
        if (rst) begin
            state   <= IDLE;
            counter <= 16'd0;
        end else begin
            state   <= state_next;
            counter <= counter_next;
        end

    always @(posedge clk)
        ir <= ir_next;

    // The unit starts in ISSUE; while it is busy the instruction register stays as it is.
    wire issues = (state == ISSUE);

    wire done_dma;
    wire done_mm;
    wire done_sm;
    wire done_vec;

    assign done = done_dma || done_mm || done_sm || done_vec;

    // ---- Counters ----

    wire runs  = (state == FETCH) || (state == ISSUE) || (state == WAIT);
    wire waits = (state == WAIT);

    wire one_matrix = waits && is_mm;
    wire one_dma    = waits && (is_ld || is_st);
    wire one_vector = waits && (is_sm || (is_vec && !is_st));
    wire one_instr  = issues && !is_halt;

    always @(posedge clk)
        if (rst) begin
            count_total        <= 32'd0;
            count_matrix       <= 32'd0;
            count_dma          <= 32'd0;
            count_vector       <= 32'd0;
            count_instructions <= 32'd0;
        end else begin
            count_total        <= count_total + {31'd0, runs};
            count_matrix       <= count_matrix + {31'd0, one_matrix};
            count_dma          <= count_dma + {31'd0, one_dma};
            count_vector       <= count_vector + {31'd0, one_vector};
            count_instructions <= count_instructions + {31'd0, one_instr};
        end

    // ---- Scratchpad: the unit of the instruction in flight owns both ports ----

    wire [11:0] mm_rd_addr;
    wire [11:0] sm_rd_addr;
    wire [11:0] vec_rd_addr;

    wire        dma_wr_en;
    wire [11:0] dma_wr_addr;
    wire [31:0] dma_wr_data;
    wire        mm_wr_en;
    wire [11:0] mm_wr_addr;
    wire [31:0] mm_wr_data;
    wire        sm_wr_en;
    wire [11:0] sm_wr_addr;
    wire [31:0] sm_wr_data;
    wire        vec_wr_en;
    wire [11:0] vec_wr_addr;
    wire [31:0] vec_wr_data;

    reg  [11:0] rd_addr;
    wire [31:0] rd_data;
    reg         wr_en;
    reg  [11:0] wr_addr;
    reg  [31:0] wr_data;

    always @* begin
        rd_addr = vec_rd_addr;
        wr_en   = vec_wr_en;
        wr_addr = vec_wr_addr;
        wr_data = vec_wr_data;
        if (is_ld) begin
            wr_en   = dma_wr_en;
            wr_addr = dma_wr_addr;
            wr_data = dma_wr_data;
        end
        if (is_mm) begin
            rd_addr = mm_rd_addr;
            wr_en   = mm_wr_en;
            wr_addr = mm_wr_addr;
            wr_data = mm_wr_data;
        end
        if (is_sm) begin
            rd_addr = sm_rd_addr;
            wr_en   = sm_wr_en;
            wr_addr = sm_wr_addr;
            wr_data = sm_wr_data;
        end
    end

    // In the reset cycle the units still hold whatever they held, after power-on anything. No
    // memory may take a word from them then.
    wire vec_ext_wr_en;

    assign ext_wr_en = vec_ext_wr_en && !rst;

    sram #(.AW(12)) scratchpad (
        .clk     (clk),
        .rd_addr (rd_addr),
        .rd_data (rd_data),
        .wr_en   (wr_en && !rst),
        .wr_addr (wr_addr),
        .wr_data (wr_data)
    );

    // A unit sees the words it asked for and otherwise zeros: else every word that any unit reads
    // would set the others' multipliers in motion.
    wire [7:0]  mm_rd_byte  = is_mm ? rd_data[7:0] : 8'd0;
    wire [7:0]  sm_rd_byte  = is_sm ? rd_data[7:0] : 8'd0;
    wire [31:0] vec_rd_data = is_vec ? rd_data : 32'd0;

    // ---- Units ----

    dma dma_i (
        .clk          (clk),
        .rst          (rst),
        .start        (issues && is_ld),
        .dst          (dst[11:0]),
        .src          (src),
        .len          (len),
        .done         (done_dma),
        .ext_rd_en    (ext_rd_en),
        .ext_rd_addr  (ext_rd_addr),
        .ext_rd_valid (ext_rd_valid),
        .ext_rd_data  (ext_rd_data),
        .wr_en        (dma_wr_en),
        .wr_addr      (dma_wr_addr),
        .wr_data      (dma_wr_data)
    );

    ga2_mm mm_i (
        .clk     (clk),
        .rst     (rst),
        .start   (issues && is_mm),
        .dst     (dst[11:0]),
        .a       (mm_a),
        .b       (mm_b),
        .m       (mm_m),
        .k       (mm_k),
        .n       (mm_n),
        .tb      (mm_tb),
        .lda     (mm_lda),
        .ldb     (mm_ldb),
        .ldc     (mm_ldc),
        .done    (done_mm),
        .rd_addr (mm_rd_addr),
        .rd_byte (mm_rd_byte),
        .wr_en   (mm_wr_en),
        .wr_addr (mm_wr_addr),
        .wr_data (mm_wr_data)
    );

    ga2_sm sm_i (
        .clk     (clk),
        .rst     (rst),
        .start   (issues && is_sm),
        .dst     (dst[11:0]),
        .src     (src[11:0]),
        .len     (len),
        .done    (done_sm),
        .rd_addr (sm_rd_addr),
        .rd_byte (sm_rd_byte),
        .wr_en   (sm_wr_en),
        .wr_addr (sm_wr_addr),
        .wr_data (sm_wr_data)
    );

    ga2_vec vec_i (
        .clk         (clk),
        .rst         (rst),
        .start       (issues && is_vec),
        .is_st       (is_st),
        .is_rq       (is_rq),
        .is_vadd     (is_vadd),
        .is_amax     (is_amax),
        .dst         (dst),
        .src         (src[11:0]),
        .src2        (src2),
        .len         (len),
        .mantissa    (mantissa),
        .shift       (shift),
        .relu        (relu),
        .done        (done_vec),
        .rd_addr     (vec_rd_addr),
        .rd_data     (vec_rd_data),
        .wr_en       (vec_wr_en),
        .wr_addr     (vec_wr_addr),
        .wr_data     (vec_wr_data),
        .ext_wr_en   (vec_ext_wr_en),
        .ext_wr_addr (ext_wr_addr),
        .ext_wr_data (ext_wr_data)
    );

endmodule

`default_nettype wire
