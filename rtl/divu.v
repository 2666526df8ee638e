// Unsigned restoring divider: quotient = numerator / denominator, one quotient bit per cycle.
//
// Timing:    start in cycle 0 loads the operands, cycles 1..W form one quotient bit each, the most
//            significant first. done is high in cycle W; quotient is valid from cycle W + 1 on and
//            until the next start. A division takes W + 1 cycles in all (41 in GA-2).
//            A denominator of 0 gives a quotient of all ones.
// Reference: softmax_gold.divu

`default_nettype none

module divu #(
    parameter W = 40                    // operand width and number of quotient bits, at least 1
) (
    input  wire         clk,
    input  wire         rst,

    // operands, taken with start
    input  wire         start,
    input  wire [W-1:0] numerator,
    input  wire [W-1:0] denominator,

    // result
    output wire         done,
    output wire [W-1:0] quotient
);

    initial
        if (W < 1)
            $fatal(1, "divu: W = %0d, but a division needs at least 1 bit", W);

    localparam LEFT_W = $clog2(W + 1);

    reg [LEFT_W-1:0] left;              // quotient bits still to form
    reg [LEFT_W-1:0] left_next;
    reg [W-1:0]      divisor;
    reg [W-1:0]      divisor_next;
    reg [W-1:0]      rest;              // partial remainder
    reg [W-1:0]      rest_next;
    reg [W-1:0]      bits;              // numerator out at the top, quotient in below
    reg [W-1:0]      bits_next;

    // One bit more than the operands: rest < divisor, so twice rest plus a bit still fits, and the
    // top bit of the difference is the borrow. (With divisor 0 there is never a borrow: all ones.)
    wire [W:0] trial      = {rest, bits[W-1]};
    wire [W:0] difference = trial - {1'b0, divisor};
    wire       borrow     = difference[W];

    assign done     = (left == 1);
    assign quotient = bits;

    always @* begin
        left_next    = left;
        divisor_next = divisor;
        rest_next    = rest;
        bits_next    = bits;
        if (start) begin
            left_next    = W[LEFT_W-1:0];
            divisor_next = denominator;
            rest_next    = {W{1'b0}};
            bits_next    = numerator;
        end else if (left != 0) begin
            left_next = left - 1'b1;
            rest_next = borrow ? trial[W-1:0] : difference[W-1:0];
            bits_next = (bits << 1) | {{(W-1){1'b0}}, !borrow};
        end
    end

    always @(posedge clk)
        if (rst)
            left <= 0;
        else
            left <= left_next;

    always @(posedge clk) begin
        divisor <= divisor_next;
        rest    <= rest_next;
        bits    <= bits_next;
    end

endmodule

`default_nettype wire
