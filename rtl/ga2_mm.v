// Matrix unit: C = A x B for one tile, int8 in, int32 out, M and N in 1..4, K in 1..64.
//
// Timing:    M*K + K*N + (K + M + N - 2) + M*N + 7 cycles after start:
//              STAGE_A  M*K + 1        to the operand memories, one per row of A; the last word
//                                      comes out of the scratchpad a cycle after its address
//              STAGE_B  K*N + 1        the same, one operand memory per column of B
//              CLEAR    1              the array forgets the tile before
//              STREAM   K+M+N-2 + 2    the last of the K+M+N-2 steps takes the last pair to cell
//                                      (M-1, N-1); one cycle more to read the operand memories,
//                                      one to add the last product
//              WRITE    M*N + 1        one sum per cycle, through the array's output register
//              DONE     1
//            A and B are staged before anything is written, so C may lie anywhere.
// Reference: ga2_isa.Machine (MM)

`default_nettype none

module ga2_mm (
    input  wire               clk,
    input  wire               rst,

    // sequencer: the instruction is taken with start
    input  wire               start,
    input  wire        [11:0] dst,
    input  wire        [11:0] a,
    input  wire        [11:0] b,
    input  wire        [2:0]  m,        // rows of A and C
    input  wire        [6:0]  k,        // columns of A, rows of B
    input  wire        [2:0]  n,        // columns of B and C
    input  wire               tb,       // B lies transposed: B[k][n] is word n*ldb + k
    input  wire        [11:0] lda,
    input  wire        [11:0] ldb,
    input  wire        [11:0] ldc,
    output wire               done,

    // scratchpad, read port (an operand is the low byte of its word)
    output wire        [11:0] rd_addr,
    input  wire signed [7:0]  rd_byte,

    // scratchpad, write port
    output wire               wr_en,
    output wire        [11:0] wr_addr,
    output wire signed [31:0] wr_data
);

    localparam [2:0] IDLE    = 3'd0,
                     STAGE_A = 3'd1,
                     STAGE_B = 3'd2,
                     CLEAR   = 3'd3,
                     STREAM  = 3'd4,
                     WRITE   = 3'd5,
                     DONE    = 3'd6;

    reg [2:0]  state;
    reg [2:0]  state_next;

    // The instruction. A needs no base address here, the walk begins with it.
    reg [11:0] dst_q;
    reg [11:0] b_q;
    reg [2:0]  m_q;
    reg [6:0]  k_q;
    reg [2:0]  n_q;
    reg        tb_q;
    reg [11:0] lda_q;
    reg [11:0] ldb_q;
    reg [11:0] ldc_q;

    // ---- The walk: all three matrices are visited lane by lane, one word per cycle. ----
    // A lane is a row of A, a column of B or a row of C; only the counts and the distances differ.

    reg [2:0]  lanes;                   // lanes in the matrix
    reg [6:0]  items;                   // words in a lane
    reg [11:0] lane_step;               // from one lane to the next
    reg [11:0] item_step;               // from one word of a lane to the next

    always @* begin
        lanes     = m_q;                // STAGE_A
        items     = k_q;
        lane_step = lda_q;
        item_step = 12'd1;
        case (state)
            STAGE_B: begin
                lanes     = n_q;
                lane_step = tb_q ? ldb_q : 12'd1;
                item_step = tb_q ? 12'd1 : ldb_q;
            end
            WRITE: begin
                items     = {4'd0, n_q};
                lane_step = ldc_q;
            end
            default: ;
        endcase
    end

    reg        walking;                 // addr, lane and item are those of a word
    reg        walking_next;
    reg [2:0]  lane;
    reg [2:0]  lane_next;
    reg [6:0]  item;
    reg [6:0]  item_next;
    reg [11:0] addr;
    reg [11:0] addr_next;
    reg [11:0] lane_addr;               // of the lane's first word
    reg [11:0] lane_addr_next;

    wire item_last = (item == items - 7'd1);
    wire lane_last = (lane == lanes - 3'd1);

    // One cycle later: the word is on rd_byte (STAGE_A, STAGE_B) or on wr_data (WRITE).
    reg        arrived;
    reg [1:0]  arrived_lane;
    reg [5:0]  arrived_item;
    reg [11:0] arrived_addr;

    assign rd_addr = addr;
    assign wr_en   = (state == WRITE) && arrived;
    assign wr_addr = arrived_addr;
    assign done    = (state == DONE);

    // ---- Operand memories and the skew ----
    // In step t row r is asked for operand t - r. Before the row's turn that wraps round to at
    // least 125 and after it to at least K: both mean "none", and zero is sent, which leaves every
    // sum as it is. The same for columns; rows and columns the tile does not have send only zeros.

    reg  [6:0]  step;                   // of STREAM, 0 .. K+M+N-1
    reg  [6:0]  step_next;
    wire [31:0] a_edge;
    wire [31:0] b_edge;

    // a word on rd_byte for an operand memory; none is written while rst is high
    wire        stage_a = (state == STAGE_A) && arrived && !rst;
    wire        stage_b = (state == STAGE_B) && arrived && !rst;

    wire [6:0]  stream_last = k_q + {4'd0, m_q} + {4'd0, n_q} - 7'd1;

    wire [3:0]  a_asked;                // lane r: this step asks for an operand of the tile
    wire [3:0]  b_asked;
    reg  [3:0]  a_valid;                // one cycle later: it is on a_byte, b_byte
    reg  [3:0]  b_valid;

    always @(posedge clk) begin
        a_valid <= a_asked;
        b_valid <= b_asked;
    end

    genvar r;
    generate
        for (r = 0; r < 4; r = r + 1) begin : lane_of
            wire        [6:0] index = step - r;
            wire signed [7:0] a_byte;
            wire signed [7:0] b_byte;

            rowmem a_row (
                .clk      (clk),
                .wr_en    (stage_a && arrived_lane == r),
                .wr_index (arrived_item),
                .wr_byte  (rd_byte),
                .rd_index (index[5:0]),
                .rd_byte  (a_byte)
            );

            rowmem b_col (
                .clk      (clk),
                .wr_en    (stage_b && arrived_lane == r),
                .wr_index (arrived_item),
                .wr_byte  (rd_byte),
                .rd_index (index[5:0]),
                .rd_byte  (b_byte)
            );

            assign a_asked[r] = (state == STREAM) && (index < k_q) && (r < m_q);
            assign b_asked[r] = (state == STREAM) && (index < k_q) && (r < n_q);

            assign a_edge[8*r +: 8] = a_valid[r] ? a_byte : 8'd0;
            assign b_edge[8*r +: 8] = b_valid[r] ? b_byte : 8'd0;
        end
    endgenerate

    systolic systolic_i (
        .clk    (clk),
        .clear  (state == CLEAR),
        .enable (state == STREAM),
        .a_edge (a_edge),
        .b_edge (b_edge),
        .rd_row (lane[1:0]),
        .rd_col (item[1:0]),
        .rd_sum (wr_data)
    );

    always @* begin
        state_next     = state;
        walking_next   = walking;
        lane_next      = lane;
        item_next      = item;
        addr_next      = addr;
        lane_addr_next = lane_addr;
        step_next      = 7'd0;

        if (walking) begin
            item_next = item + 7'd1;
            addr_next = addr + item_step;
            if (item_last) begin
                item_next      = 7'd0;
                lane_next      = lane + 3'd1;
                lane_addr_next = lane_addr + lane_step;
                addr_next      = lane_addr_next;
                walking_next   = !lane_last;
            end
        end

        // A phase with a walk ends one cycle after it, when the last word has arrived.
        case (state)
            IDLE:
                if (start)
                    state_next = STAGE_A;
            STAGE_A:
                if (!walking)
                    state_next = STAGE_B;
            STAGE_B:
                if (!walking)
                    state_next = CLEAR;
            CLEAR:
                state_next = STREAM;
            STREAM: begin
                step_next = step + 7'd1;
                if (step == stream_last)
                    state_next = WRITE;
            end
            WRITE:
                if (!walking)
                    state_next = DONE;
            default:                    // DONE
                state_next = IDLE;
        endcase

        if (state_next != state) begin
            lane_next      = 3'd0;
            item_next      = 7'd0;
            walking_next   = (state_next == STAGE_A) || (state_next == STAGE_B)
                             || (state_next == WRITE);
            lane_addr_next = (state_next == STAGE_A) ? a
                             : (state_next == STAGE_B) ? b_q : dst_q;
            addr_next      = lane_addr_next;
        end
    end

    always @(posedge clk)
        if (rst) begin
            state   <= IDLE;
            walking <= 1'b0;
            arrived <= 1'b0;
        end else begin
            state   <= state_next;
            walking <= walking_next;
            arrived <= walking;
        end

    always @(posedge clk) begin
        lane         <= lane_next;
        item         <= item_next;
        addr         <= addr_next;
        lane_addr    <= lane_addr_next;
        step         <= step_next;
        arrived_lane <= lane[1:0];
        arrived_item <= item[5:0];
        arrived_addr <= addr;
    end

    always @(posedge clk)
        if (start) begin
            dst_q <= dst;
            b_q   <= b;
            m_q   <= m;
            k_q   <= k;
            n_q   <= n;
            tb_q  <= tb;
            lda_q <= lda;
            ldb_q <= ldb;
            ldc_q <= ldc;
        end

endmodule

`default_nettype wire
