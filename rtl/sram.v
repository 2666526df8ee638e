// Scratchpad memory: 2**AW words of 32 bits, one read port and one write port.
//
// Timing:    the word at rd_addr is on rd_data in the next cycle; a word written in this cycle can
//            be read from the next cycle on. A read and a write of the same address in the same
//            cycle return the old word; no unit of GA-2 relies on that.
// Reference: ga2_isa.Machine.spad

`default_nettype none

module sram #(
    parameter AW = 12                   // address bits, at least 1; 12 give the 4096 words of GA-2
) (
    input  wire          clk,

    // read port
    input  wire [AW-1:0] rd_addr,
    output reg  [31:0]   rd_data,

    // write port
    input  wire          wr_en,
    input  wire [AW-1:0] wr_addr,
    input  wire [31:0]   wr_data
);

    initial
        if (AW < 1)
            $fatal(1, "sram: AW = %0d, but a memory needs at least 1 address bit", AW);

    reg [31:0] mem [0:(1 << AW) - 1];

    always @(posedge clk) begin
        if (wr_en)
            mem[wr_addr] <= wr_data;
        rd_data <= mem[rd_addr];
    end

endmodule

`default_nettype wire
