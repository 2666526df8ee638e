// SM: softmax of len int8 scores to unsigned Q0.16 probabilities, in three passes over the scores.
//
// Timing:    3 * len + 41 + 6 cycles after start:
//              MAX     len + 1   the last score comes out of the scratchpad one cycle after its
//                                address, and the maximum must be known before the next pass
//              SUM     len + 2   the same, and one cycle more through the table's output register
//              LOAD    1         the sum, now complete, goes into the divider
//              DIVIDE  40        one quotient bit per cycle
//              SCALE   len + 2   as SUM; each probability is written in its last cycle
//              DONE    1
//            No exponential is kept: SCALE looks them up again, which costs no cycle and no memory,
//            and a score in place is read before its probability overwrites it.
// Reference: softmax_gold.softmax

`default_nettype none

module ga2_sm (
    input  wire               clk,
    input  wire               rst,

    // sequencer: the instruction is taken with start
    input  wire               start,
    input  wire        [11:0] dst,
    input  wire        [11:0] src,
    input  wire        [15:0] len,
    output wire               done,

    // scratchpad, read port (a score is the low byte of its word)
    output wire        [11:0] rd_addr,
    input  wire signed [7:0]  rd_byte,

    // scratchpad, write port
    output wire               wr_en,
    output wire        [11:0] wr_addr,
    output wire        [31:0] wr_data
);

    localparam [2:0] IDLE   = 3'd0,
                     MAX    = 3'd1,
                     SUM    = 3'd2,
                     LOAD   = 3'd3,
                     DIVIDE = 3'd4,
                     SCALE  = 3'd5,
                     DONE   = 3'd6;

    reg [2:0]  state;
    reg [2:0]  state_next;

    // the instruction
    reg [11:0] scores;
    reg [15:0] count;

    reg [11:0] to;                      // where the next probability goes
    reg [11:0] to_next;

    // The pipeline of a pass: address, then the score, then its exponential.
    reg        reading;                 // an address is on rd_addr
    reg        reading_next;
    reg [15:0] index;                   // of the score it belongs to
    reg [15:0] index_next;
    reg        arrived;                 // its score is on rd_byte
    reg        looked_up;               // its exponential is on exponential

    assign rd_addr = scores + index[11:0];

    // e = table[maximum - score]: never negative, and below 256, so 8 bits hold it unsigned
    reg  signed [7:0]  maximum;
    reg  signed [7:0]  maximum_next;
    wire        [15:0] exponential;

    exp_lut exp_lut_i (
        .clk    (clk),
        .enable (arrived),
        .d      (maximum - rd_byte),
        .e      (exponential)
    );

    // 28 bits: 4096 exponentials of at most 65535
    reg         [27:0] sum;
    reg         [27:0] sum_next;

    // r = 2**38 / sum. The maximum alone gives sum >= 65535, so r fits 23 bits.
    wire               divided;
    wire        [39:0] reciprocal;

    divu #(.W(40)) divu_i (
        .clk         (clk),
        .rst         (rst),
        .start       (state == LOAD),
        .numerator   (40'd1 << 38),
        .denominator ({12'd0, sum}),
        .done        (divided),
        .quotient    (reciprocal)
    );

    // p = (e * r + 2**21) >> 22; e * r <= 2**38, so 39 bits hold the rounded product and 17 bits p
    wire        [38:0] product = {23'd0, exponential} * {16'd0, reciprocal[22:0]};
    wire        [38:0] rounded = product + (39'd1 << 21);

    assign wr_en   = (state == SCALE) && looked_up;
    assign wr_addr = to;
    assign wr_data = {15'd0, rounded[38:22]};
    assign done    = (state == DONE);

    // bits that are 0 (reciprocal) or rounded away
    wire unused = &{1'b0, reciprocal[39:23], rounded[21:0]};

    always @* begin
        state_next   = state;
        to_next      = to;
        reading_next = reading;
        index_next   = index;
        maximum_next = maximum;
        sum_next     = sum;

        if (reading) begin
            index_next   = index + 16'd1;
            reading_next = (index_next != count);
        end

        // A pass ends when its last score has left the pipeline; the next one starts at index 0.
        case (state)
            IDLE:
                if (start) begin
                    state_next   = MAX;
                    to_next      = dst;
                    reading_next = 1'b1;
                    index_next   = 16'd0;
                    maximum_next = -8'sd128;
                    sum_next     = 28'd0;
                end
            MAX: begin
                if (arrived && rd_byte > maximum)
                    maximum_next = rd_byte;
                if (!reading) begin
                    state_next   = SUM;
                    reading_next = 1'b1;
                    index_next   = 16'd0;
                end
            end
            SUM: begin
                if (looked_up)
                    sum_next = sum + {12'd0, exponential};
                if (!reading && !arrived)
                    state_next = LOAD;
            end
            LOAD:
                state_next = DIVIDE;
            DIVIDE:
                if (divided) begin
                    state_next   = SCALE;
                    reading_next = 1'b1;
                    index_next   = 16'd0;
                end
            SCALE: begin
                if (looked_up)
                    to_next = to + 12'd1;
                if (!reading && !arrived)
                    state_next = DONE;
            end
            default:                    // DONE
                state_next = IDLE;
        endcase
    end

    always @(posedge clk)
        if (rst) begin
            state     <= IDLE;
            reading   <= 1'b0;
            arrived   <= 1'b0;
            looked_up <= 1'b0;
        end else begin
            state     <= state_next;
            reading   <= reading_next;
            arrived   <= reading;
            looked_up <= arrived && (state != MAX);     // what MAX sees is no exponential yet
        end

    always @(posedge clk) begin
        to      <= to_next;
        index   <= index_next;
        maximum <= maximum_next;
        sum     <= sum_next;
    end

    always @(posedge clk)
        if (start) begin
            scores <= src;
            count  <= len;
        end

endmodule

`default_nettype wire
