// External memory model: EXT words of 32 bits, one read and one write per cycle.
//
// Timing:    a word asked for in cycle t is on rd_data, with rd_valid, in cycle t + LAT; there may
//            be a request in every cycle. A write takes effect at the end of its cycle.
// Reference: ga2_isa.Machine.ext, ga2_isa.LAT

`default_nettype none

module extmem_rw #(
    parameter EXT = 8192,               // words, 1 to 65536 (addresses have 16 bits)
    parameter LAT = 8                   // cycles from a request to its word, at least 1
) (
    input  wire        clk,
    input  wire        rst,

    // read port
    input  wire        rd_en,
    input  wire [15:0] rd_addr,
    output wire        rd_valid,
    output wire [31:0] rd_data,

    // write port
    input  wire        wr_en,
    input  wire [15:0] wr_addr,
    input  wire [31:0] wr_data,

    // testbench
    output reg         past_end         // since reset, an address of EXT or more was used
);

    initial begin
        if (EXT < 1 || EXT > 65536) begin
            $display("FAIL EXT = %0d, but the external memory has 1 to 65536 words", EXT);
            $fatal(1, "extmem_rw: illegal EXT");
        end
        if (LAT < 1) begin
            $display("FAIL LAT = %0d, but a read takes at least 1 cycle", LAT);
            $fatal(1, "extmem_rw: illegal LAT");
        end
    end

    // 16 address bits; the words from EXT on are never touched
    reg [31:0] mem [0:65535];

    wire rd_inside = ($signed({16'd0, rd_addr}) < EXT);
    wire wr_inside = ($signed({16'd0, wr_addr}) < EXT);

    // A ring of LAT slots, one visited per cycle: what comes out was put in LAT cycles ago. Without
    // a request the word is x, so that an engine that looks too early or too late shows.
    localparam SLOTS     = (LAT < 1) ? 1 : LAT;     // an illegal LAT must compile to be told
    localparam SLOT_W    = (SLOTS > 1) ? $clog2(SLOTS) : 1;
    localparam LAST_SLOT = SLOTS - 1;

    reg  [SLOT_W-1:0] slot;
    reg  [SLOTS-1:0]  asked;
    reg  [31:0]       words [0:SLOTS-1];

    assign rd_valid = asked[slot];
    assign rd_data  = words[slot];

    always @(posedge clk)
        if (rst) begin
            slot     <= 0;
            asked    <= 0;
            past_end <= 1'b0;
        end else begin
            slot        <= (slot == LAST_SLOT[SLOT_W-1:0]) ? 0 : slot + 1'b1;
            asked[slot] <= rd_en;
            past_end    <= past_end || (rd_en && !rd_inside) || (wr_en && !wr_inside);
        end

    always @(posedge clk) begin
        words[slot] <= (rd_en && rd_inside) ? mem[rd_addr] : 32'hx;
        if (wr_en && wr_inside)
            mem[wr_addr] <= wr_data;
    end

endmodule

`default_nettype wire
