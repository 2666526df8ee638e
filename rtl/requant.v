// Requantizer: q = clamp(round(acc * mantissa / 2**shift)), exact, ties away from zero.
//
// Timing:    combinational.
// Reference: quant.requant

`default_nettype none

module requant (
    input  wire signed [31:0] acc,
    input  wire        [23:0] mantissa,
    input  wire        [5:0]  shift,
    input  wire               relu,     // negative results become 0
    output reg  signed [7:0]  q         // -127..127, or 0..127 with relu
);

    // Rounding ties away from zero treats both signs alike, so the sign is taken off first and
    // put back last. That also makes the clamp one-sided: -128 cannot appear.
    wire        negative  = acc[31];
    wire [31:0] magnitude = negative ? -acc : acc;
    wire [55:0] product   = {24'd0, magnitude} * {32'd0, mantissa};

    // 64 bits: the largest half, 2**62, and the largest product, below 2**56, add without a carry.
    // A shift of 0 has nothing to round; there the half comes out as 0.
    wire [63:0] half      = (64'd1 << shift) >> 1;
    wire [63:0] rounded   = ({8'd0, product} + half) >> shift;
    wire [6:0]  clamped   = (rounded > 64'd127) ? 7'd127 : rounded[6:0];

    always @* begin
        q = {1'b0, clamped};
        if (negative)
            q = relu ? 8'sd0 : -{1'b0, clamped};
    end

endmodule

`default_nettype wire
