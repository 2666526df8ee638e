// Operand memory: the up to 64 bytes of one row of A or of one column of B.
//
// Timing:    the byte at rd_index is on rd_byte in the next cycle; a byte written in this cycle can
//            be read from the next cycle on.
// Reference: ga2_isa.Machine (the operand list of one row or column of MM)

`default_nettype none

module rowmem (
    input  wire              clk,

    // staging: filled from the scratchpad
    input  wire              wr_en,
    input  wire        [5:0] wr_index,
    input  wire signed [7:0] wr_byte,

    // streaming: read by the array
    input  wire        [5:0] rd_index,
    output reg  signed [7:0] rd_byte
);

    reg signed [7:0] mem [0:63];

    always @(posedge clk) begin
        if (wr_en)
            mem[wr_index] <= wr_byte;
        rd_byte <= mem[rd_index];
    end

endmodule

`default_nettype wire
