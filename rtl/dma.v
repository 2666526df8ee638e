// LD engine: copies len words from external memory to the scratchpad.
//
// Timing:    len + LAT + 1 cycles after start, LAT being the latency of the external memory: one
//            request per cycle, each word written in the cycle it arrives (the first LAT cycles
//            after its request), one cycle for done. The engine does not know LAT, it counts the
//            words that come back.
// Reference: ga2_isa.Machine (LD)

`default_nettype none

module dma (
    input  wire        clk,
    input  wire        rst,

    // sequencer: the instruction is taken with start
    input  wire        start,
    input  wire [11:0] dst,             // scratchpad address
    input  wire [15:0] src,             // external address
    input  wire [15:0] len,
    output wire        done,

    // external memory, read side
    output wire        ext_rd_en,
    output wire [15:0] ext_rd_addr,
    input  wire        ext_rd_valid,
    input  wire [31:0] ext_rd_data,

    // scratchpad, write port
    output wire        wr_en,
    output wire [11:0] wr_addr,
    output wire [31:0] wr_data
);

    localparam [1:0] IDLE = 2'd0,
                     COPY = 2'd1,       // requests go out, words come in
                     DONE = 2'd2;

    reg [1:0]  state;
    reg [1:0]  state_next;
    reg [15:0] from;                    // next external address to ask for
    reg [15:0] from_next;
    reg [15:0] to_ask;                  // words not yet asked for
    reg [15:0] to_ask_next;
    reg [11:0] to;                      // next scratchpad address to write
    reg [11:0] to_next;
    reg [15:0] to_come;                 // words not yet arrived
    reg [15:0] to_come_next;

    assign ext_rd_en   = (state == COPY) && (to_ask != 0);
    assign ext_rd_addr = from;

    assign wr_en       = (state == COPY) && ext_rd_valid;
    assign wr_addr     = to;
    assign wr_data     = ext_rd_data;

    assign done        = (state == DONE);

    always @* begin
        state_next   = state;
        from_next    = from;
        to_ask_next  = to_ask;
        to_next      = to;
        to_come_next = to_come;
        case (state)
            IDLE:
                if (start) begin
                    state_next   = COPY;
                    from_next    = src;
                    to_ask_next  = len;
                    to_next      = dst;
                    to_come_next = len;
                end
            COPY: begin
                if (ext_rd_en) begin
                    from_next   = from + 16'd1;
                    to_ask_next = to_ask - 16'd1;
                end
                if (ext_rd_valid) begin
                    to_next      = to + 12'd1;
                    to_come_next = to_come - 16'd1;
                    if (to_come == 16'd1)
                        state_next = DONE;
                end
            end
            default:                    // DONE
                state_next = IDLE;
        endcase
    end

    always @(posedge clk)
        if (rst)
            state <= IDLE;
        else
            state <= state_next;

    always @(posedge clk) begin
        from    <= from_next;
        to_ask  <= to_ask_next;
        to      <= to_next;
        to_come <= to_come_next;
    end

endmodule

`default_nettype wire
