// ST, RQ, VADD and AMAX: the units that walk once over a vector, one scratchpad read per cycle.
//
//             reads          writes                                           busy cycles
//     ST      src            dst, in external memory: the same words          len + 2
//     RQ      src            dst: words scaled by mantissa / 2**shift, relu   len + 2
//     VADD    src and src2   dst: sums                                        2 * len + 2
//     AMAX    src            dst: one word, the index of the first maximum    len + 3
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
    input  wire               is_st,    // one of the four
    input  wire               is_rq,
    input  wire               is_vadd,
    input  wire               is_amax,
    input  wire        [15:0] dst,      // in the scratchpad, of ST in external memory
    input  wire        [11:0] src,
    input  wire        [11:0] src2,     // VADD
    input  wire        [15:0] len,
    input  wire        [23:0] mantissa, // RQ
    input  wire        [5:0]  shift,
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

    localparam [2:0] IDLE = 3'd0,
                     READ = 3'd1,       // one address per cycle; results follow a cycle later
                     LAST = 3'd2,       // the word of the last address arrives
                     PUT  = 3'd3,       // AMAX only: the index is known and written
                     DONE = 3'd4;

    reg [2:0]  state;
    reg [2:0]  state_next;

    // the instruction
    reg        stores;
    reg        scales;
    reg        adds;
    reg        finds;
    reg [23:0] mantissa_q;
    reg [5:0]  shift_q;
    reg        relu_q;

    // how far it has come
    reg [11:0] from;                    // next scratchpad address to read
    reg [11:0] from_next;
    reg [11:0] from2;                   // the same for VADD's second operand
    reg [11:0] from2_next;
    reg [15:0] to;                      // where the next result goes
    reg [15:0] to_next;
    reg [15:0] left;                    // elements not yet read
    reg [15:0] left_next;
    reg        second;                  // VADD: this cycle reads the second operand
    reg        second_next;

    // Reading: an element is complete with its only word, or with its second one.
    wire completes = !adds || second;

    assign rd_addr = second ? from2 : from;

    // One cycle later: its last word is on rd_data.
    reg               arrived;
    reg  signed [7:0] first;            // VADD: the low byte of the word that came before

    // RQ
    wire signed [7:0] requantized;

    requant requant_i (
        .acc      (rd_data),
        .mantissa (mantissa_q),
        .shift    (shift_q),
        .relu     (relu_q),
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
    assign wr_en       = (arrived && (scales || adds)) || (state == PUT);
    assign wr_addr     = to[11:0];
    assign ext_wr_en   = arrived && stores;
    assign ext_wr_addr = to;
    assign ext_wr_data = rd_data;
    assign done        = (state == DONE);

    always @* begin
        wr_data = {16'd0, best_index};
        if (scales)
            wr_data = {{24{requantized[7]}}, requantized};
        if (adds)
            wr_data = {{24{clamped[7]}}, clamped};
    end

    always @* begin
        state_next  = state;
        from_next   = from;
        from2_next  = from2;
        to_next     = to;
        left_next   = left;
        second_next = second;
        case (state)
            IDLE:
                if (start) begin
                    state_next  = READ;
                    from_next   = src;
                    from2_next  = src2;
                    to_next     = dst;
                    left_next   = len;
                    second_next = 1'b0;
                end
            READ: begin
                second_next = adds && !second;
                if (completes) begin
                    from_next  = from + 12'd1;
                    from2_next = from2 + 12'd1;
                    left_next  = left - 16'd1;
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
            to_next = to + 16'd1;
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
        from       <= from_next;
        from2      <= from2_next;
        to         <= to_next;
        left       <= left_next;
        second     <= second_next;
        first      <= rd_data[7:0];
        index      <= index_next;
        best_index <= best_index_next;
        best       <= best_next;
    end

    always @(posedge clk)
        if (start) begin
            stores     <= is_st;
            scales     <= is_rq;
            adds       <= is_vadd;
            finds      <= is_amax;
            mantissa_q <= mantissa;
            shift_q    <= shift;
            relu_q     <= relu;
        end

endmodule

`default_nettype wire
