// ST, RQ, VADD and AMAX: the units that walk once over a vector, one scratchpad read per cycle.
//
//     op      reads        writes (letters: instruction fields)     busy cycles
//     ST      a            external memory at b, c words            c + 2
//     RQ      b            a, c words requantized by d, e, relu     c + 2
//     VADD    b and c      a, d[15:0] words                         2 * d + 2
//     AMAX    b, c words   a, one word                              c + 3
//
// Timing:    one cycle per word read (VADD reads two for each result, and there is one read port),
//            one until the last word has come out of the scratchpad and its result is written, one
//            more for AMAX, which knows its answer only after comparing the last word, and one for
//            done.
// Reference: ga2_isa.Machine (ST, RQ, VADD, AMAX), quant.requant, quant.clamp8

`default_nettype none

module ga2_vec (
    input  wire               clk,
    input  wire               rst,

    // sequencer: the instruction is taken with start
    input  wire               start,
    input  wire        [3:0]  op,
    input  wire        [11:0] a,
    input  wire        [15:0] b,
    input  wire        [15:0] c,
    input  wire        [23:0] d,
    input  wire        [5:0]  e,
    input  wire               relu,
    output wire               done,

    // scratchpad, read port
    output wire        [11:0] rd_addr,
    input  wire signed [31:0] rd_data,

    // scratchpad, write port
    output wire               wr_en,
    output wire        [11:0] wr_addr,
    output reg  signed [31:0] wr_data,

    // external memory, write side
    output wire               ext_wr_en,
    output wire        [15:0] ext_wr_addr,
    output wire        [31:0] ext_wr_data
);

    localparam [3:0] ST   = 4'd2,
                     RQ   = 4'd4,
                     VADD = 4'd6,
                     AMAX = 4'd7;

    localparam [2:0] IDLE = 3'd0,
                     READ = 3'd1,       // one address per cycle; results follow a cycle later
                     LAST = 3'd2,       // the word of the last address arrives
                     PUT  = 3'd3,       // AMAX only: the index is known and written
                     DONE = 3'd4;

    reg [2:0]  state;
    reg [2:0]  state_next;

    // the instruction
    reg [3:0]  kind;
    reg [23:0] mantissa;
    reg [5:0]  shift;
    reg        clip;

    // how far it has come
    reg [11:0] src;
    reg [11:0] src_next;
    reg [11:0] src2;
    reg [11:0] src2_next;
    reg [15:0] dst;                     // in the scratchpad, for ST in external memory
    reg [15:0] dst_next;
    reg [15:0] left;                    // elements not yet read
    reg [15:0] left_next;
    reg        second;                  // VADD: this cycle reads the second operand
    reg        second_next;

    // Reading: an element is complete with its only word, or with its second one.
    wire completes = (kind != VADD) || second;

    assign rd_addr = second ? src2 : src;

    // One cycle later: its last word is on rd_data.
    reg               arrived;
    reg  signed [7:0] first;            // VADD: the low byte of the word that came before

    // RQ
    wire signed [7:0] requantized;

    requant requant_i (
        .acc      (rd_data),
        .mantissa (mantissa),
        .shift    (shift),
        .relu     (clip),
        .q        (requantized)
    );

    // VADD: 9 bits hold every sum of two bytes
    wire signed [8:0] sum = {first[7], first} + {rd_data[7], rd_data[7:0]};
    reg  signed [7:0] clamped;

    always @* begin
        clamped = sum[7:0];
        if (sum > 9'sd127)
            clamped = 8'sd127;
        else if (sum < -9'sd127)
            clamped = -8'sd127;
    end

    // AMAX: only a larger word replaces the best one, so that the first maximum stays
    reg        [15:0] index;            // of the word on rd_data
    reg        [15:0] index_next;
    reg        [15:0] best_index;
    reg        [15:0] best_index_next;
    reg signed [31:0] best;
    reg signed [31:0] best_next;

    always @* begin
        index_next      = index;
        best_index_next = best_index;
        best_next       = best;
        if (start)
            index_next = 16'd0;
        else if (arrived) begin
            index_next = index + 16'd1;
            if (index == 16'd0 || rd_data > best) begin
                best_index_next = index;
                best_next       = rd_data;
            end
        end
    end

    // Results: written in the cycle in which they arrive, so that an element in place is read
    // before it is overwritten.
    wire stores = (kind == ST);
    wire finds  = (kind == AMAX);

    assign wr_en       = (arrived && !stores && !finds) || (state == PUT);
    assign wr_addr     = dst[11:0];
    assign ext_wr_en   = arrived && stores;
    assign ext_wr_addr = dst;
    assign ext_wr_data = rd_data;
    assign done        = (state == DONE);

    always @*
        case (kind)
            RQ:      wr_data = {{24{requantized[7]}}, requantized};
            VADD:    wr_data = {{24{clamped[7]}}, clamped};
            default: wr_data = {16'd0, best_index};
        endcase

    always @* begin
        state_next  = state;
        src_next    = src;
        src2_next   = src2;
        dst_next    = dst;
        left_next   = left;
        second_next = second;
        case (state)
            IDLE:
                if (start) begin
                    state_next  = READ;
                    src_next    = (op == ST) ? a : b[11:0];
                    src2_next   = c[11:0];
                    dst_next    = (op == ST) ? b : {4'd0, a};
                    left_next   = (op == VADD) ? d[15:0] : c;
                    second_next = 1'b0;
                end
            READ: begin
                second_next = (kind == VADD) && !second;
                if (completes) begin
                    src_next  = src + 12'd1;
                    src2_next = src2 + 12'd1;
                    left_next = left - 16'd1;
                    if (left == 16'd1)
                        state_next = LAST;
                end
            end
            LAST:
                state_next = finds ? PUT : DONE;
            PUT:
                state_next = DONE;
            default:                    // DONE
                state_next = IDLE;
        endcase
        if (wr_en || ext_wr_en)
            dst_next = dst + 16'd1;
    end

    always @(posedge clk)
        if (rst) begin
            state   <= IDLE;
            arrived <= 1'b0;
        end else begin
            state   <= state_next;
            arrived <= (state == READ) && completes;
        end

    always @(posedge clk) begin
        src        <= src_next;
        src2       <= src2_next;
        dst        <= dst_next;
        left       <= left_next;
        second     <= second_next;
        first      <= rd_data[7:0];
        index      <= index_next;
        best_index <= best_index_next;
        best       <= best_next;
    end

    always @(posedge clk)
        if (start) begin
            kind     <= op;
            mantissa <= d;
            shift    <= e;
            clip     <= relu;
        end

endmodule

`default_nettype wire
