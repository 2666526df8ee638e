// Systolic array: 4 x 4 output-stationary MAC cells.
//
//                 b column 0   1    2    3         Row r of A enters at the left edge r cycles
//                        |    |    |    |          late, column c of B at the top edge c cycles
//      a row 0  --->   [00]-[01]-[02]-[03]         late. Each cell hands a to the right and b
//      a row 1  --->   [10]-[11]-[12]-[13]         downwards one cycle later, so A[r][k] and
//      a row 2  --->   [20]-[21]-[22]-[23]         B[k][c] meet in cell (r, c) in step
//      a row 3  --->   [30]-[31]-[32]-[33]         k + r + c, for every k; the sum stays there.
//
// Timing:    clear empties every cell at the end of its cycle. With enable, operands on the edge in
//            cycle t are multiplied in the edge cell in t and added in t + 1 (the product has a
//            register of its own: multiply and add in one cycle would set the clock period). A sum
//            selected by rd_row, rd_col is on rd_sum in the next cycle (choosing one of 16 words is
//            slow too). Zero operands leave a sum as it is.
// Reference: ga2_isa.Machine (MM)

`default_nettype none

module systolic (
    input  wire              clk,

    // control
    input  wire              clear,     // before a tile: operands, products and sums become 0
    input  wire              enable,    // one step; without it the cells hold still

    // operands on the edges, row 0 and column 0 in the low byte
    input  wire       [31:0] a_edge,
    input  wire       [31:0] b_edge,

    // sums
    input  wire        [1:0] rd_row,
    input  wire        [1:0] rd_col,
    output reg signed [31:0] rd_sum
);

    // a[5*r + c] enters cell (r, c) from the left, b[4*r + c] enters it from above; the fifth
    // column of a and the fifth row of b are what leaves the array.
    wire signed [7:0]  a   [0:19];
    wire signed [7:0]  b   [0:19];
    wire signed [31:0] sum [0:15];

    genvar r;
    genvar c;
    generate
        for (r = 0; r < 4; r = r + 1) begin : edges
            assign a[5*r] = a_edge[8*r +: 8];
            assign b[r]   = b_edge[8*r +: 8];
        end
        for (r = 0; r < 4; r = r + 1) begin : row
            for (c = 0; c < 4; c = c + 1) begin : col
                wire signed [7:0]  a_in = a[5*r + c];
                wire signed [7:0]  b_in = b[4*r + c];
                reg  signed [7:0]  a_out;
                reg  signed [7:0]  b_out;
                reg  signed [15:0] product;
                reg  signed [31:0] total;

                always @(posedge clk)
                    if (clear) begin
                        a_out   <= 8'sd0;
                        b_out   <= 8'sd0;
                        product <= 16'sd0;
                        total   <= 32'sd0;
                    end else if (enable) begin
                        a_out   <= a_in;
                        b_out   <= b_in;
                        product <= a_in * b_in;
                        total   <= total + {{16{product[15]}}, product};
                    end

                assign a[5*r + c + 1] = a_out;
                assign b[4*r + c + 4] = b_out;
                assign sum[4*r + c]   = total;
            end
        end
    endgenerate

    always @(posedge clk)
        rd_sum <= sum[{rd_row, rd_col}];

endmodule

`default_nettype wire
