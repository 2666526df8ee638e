"""Capra's graphs: 2-D tensors, built and checked one operation at a time.

Each method of Graph returns the new node's id. A bad graph fails in the call that makes it bad,
with a CompileError that names the operation, the shapes and the rows. `evaluate` is the meaning of
a graph in floating point; what the compiled program computes is compared with it.
"""

import math
import operator
from dataclasses import dataclass, field

from ga2_isa import K_MAX
from refusal import Refusal
from softmax_gold import ONE


# Operations whose results are not int8 and go nowhere but outside: what they are.
STORED = {"output": "what it stores", "argmax": "its indices", "probabilities": "its 17-bit words"}


class CompileError(Refusal):
    """A graph, a calibration or an input that Capra does not take."""


@dataclass
class Node:
    """An operation and its result, a 2-D tensor."""

    id: int                                     # its place in Graph.nodes
    op: str
    ins: list                                   # ids of the earlier nodes it reads
    shape: tuple                                # (rows, columns)
    attrs: dict                                 # what else the operation was given, by name
    consumers: list = field(default_factory=list)       # ids of the later nodes that read it


class Graph:
    """A list of nodes in the order they were built; `tags` is {node id: tag}."""

    def __init__(self):
        self.nodes = []
        self.tags = {}
        self.names = set()

    # ---- leaves ----------------------------------------------------------------------------------

    def input(self, name, shape):
        """A tensor given at run time, `shape` = (rows, columns)."""
        if not is_shape(shape):
            raise CompileError(f"input {name}: shape {shape!r} must be two integers of 1 or more")
        return self._add("input", [], tuple(shape), name=self._new_name("input", name))

    def weight(self, name, array):
        """A constant tensor; `array` is a list of equally long rows of finite numbers."""
        shape = shape_of(array)
        if shape is None:
            raise CompileError(f"weight {name}: the array must be a list of equally long, "
                               "non-empty rows")
        check_numbers(f"weight {name}", array)
        return self._add("weight", [], shape, name=self._new_name("weight", name),
                         array=[list(row) for row in array])

    # ---- operations ------------------------------------------------------------------------------

    def matmul(self, a, b, transpose_b=False, scale=1.0):
        """scale * a x b, or scale * a x b^T with transpose_b."""
        self._use("matmul", a, b)
        rows, inner = self.nodes[a].shape
        b_rows, b_columns = self.nodes[b].shape
        b_inner, columns = (b_columns, b_rows) if transpose_b else (b_rows, b_columns)
        if inner != b_inner:
            how = " transposed" if transpose_b else ""
            raise CompileError(f"matmul: {self._shapes(a, b)}{how} do not fit: inner dimensions "
                               f"{inner} and {b_inner}")
        if inner > K_MAX:
            raise CompileError(f"matmul: {self._shapes(a, b)} has inner dimension {inner}; the "
                               f"chip multiplies at most {K_MAX}")
        if not (is_number(scale) and scale > 0):
            raise CompileError(f"matmul: scale {scale!r} must be a positive finite number")
        return self._add("matmul", [a, b], (rows, columns), transpose_b=transpose_b, scale=scale)

    def softmax(self, a):
        """The softmax of each row."""
        self._use("softmax", a)
        return self._add("softmax", [a], self.nodes[a].shape)

    def causal_softmax(self, a, first):
        """Row i is the softmax of its columns 0 .. first + i - 1, and exactly 0 behind them."""
        self._use("causal_softmax", a)
        rows, columns = self.nodes[a].shape
        if not is_integer(first):
            raise CompileError(f"causal_softmax: first {first!r} must be an integer")
        if first < 1:
            raise CompileError(f"causal_softmax: row 0 of node {a} would see {first} columns; it "
                               "must see at least one")
        if first + rows - 1 > columns:
            raise CompileError(f"causal_softmax: row {rows - 1} would see columns 0 to "
                               f"{first + rows - 2} of node {a}, which has columns 0 to "
                               f"{columns - 1}")
        return self._add("masked_softmax", [a], (rows, columns),
                         seen=[tuple(range(first + i)) for i in range(rows)])

    def masked_softmax(self, a, seen):
        """Row i is the softmax of its columns seen[i], and exactly 0 elsewhere.

        seen: for each row the columns it sees, ascending. Columns that do not lie in one run are
        gathered for the softmax unit and scattered behind it.
        """
        self._use("masked_softmax", a)
        rows, columns = self.nodes[a].shape
        if not (isinstance(seen, (list, tuple)) and len(seen) == rows
                and all(isinstance(row, (list, tuple, range)) for row in seen)):
            raise CompileError(f"masked_softmax: seen must be a list of columns for each of the "
                               f"{rows} rows of node {a}, not {seen!r:.60}")
        for i, row in enumerate(seen):
            if not row:
                raise CompileError(f"masked_softmax: row {i} of node {a} would see 0 columns; it "
                                   "must see at least one")
            for column in row:
                if not (is_integer(column) and 0 <= column < columns):
                    raise CompileError(f"masked_softmax: row {i} would see column {column!r} of "
                                       f"node {a}, which has columns 0 to {columns - 1}")
            if any(one >= two for one, two in zip(row, row[1:])):
                raise CompileError(f"masked_softmax: row {i} of node {a} would see columns "
                                   f"{list(row)}; name each once, in ascending order")
        return self._add("masked_softmax", [a], (rows, columns), seen=[tuple(row) for row in seen])

    def probabilities(self, a):
        """The softmax of each row as the chip's own words, 65536 being 1.0; only to be put out."""
        self._use("probabilities", a)
        return self._add("probabilities", [a], self.nodes[a].shape)

    def add(self, a, b):
        """a + b, of one shape."""
        self._use("add", a, b)
        if self.nodes[a].shape != self.nodes[b].shape:
            raise CompileError(f"add: {self._shapes(a, b)} differ; both must have one shape")
        return self._add("add", [a, b], self.nodes[a].shape)

    def relu(self, a):
        """max(0, a), fused into the matmul `a`, which may have no other consumer."""
        self._use("relu", a)
        if self.nodes[a].op != "matmul":
            raise CompileError(f"relu: its input is node {a}, {self.nodes[a].op}; only a matmul's "
                               "requantizer can apply it")
        if self.consumers(a):
            raise CompileError(f"relu: matmul {a} also feeds node {self.consumers(a)[0]}, which "
                               "needs the values before the relu")
        return self._add("relu", [a], self.nodes[a].shape)

    def concat_rows(self, a, b):
        """The rows of `a`, then the rows of `b`; both are computed in place there."""
        self._use("concat_rows", a, b)
        a_rows, columns = self.nodes[a].shape
        b_rows, b_columns = self.nodes[b].shape
        if columns != b_columns:
            raise CompileError(f"concat_rows: {self._shapes(a, b)} have {columns} and {b_columns} "
                               "columns; both must have one width")
        for part in (a, b):
            if self.nodes[part].op == "slice":
                raise CompileError(f"concat_rows: node {part} is a slice, a view of rows that lie "
                                   "elsewhere; it would have to be copied")
        for part in (a, b):
            taken = [i for i in self.consumers(part) if self.nodes[i].op == "concat"]
            if taken or a == b:
                raise CompileError(f"concat_rows: node {part} already is a part of node "
                                   f"{taken[0] if taken else len(self.nodes)}; a tensor cannot be "
                                   "in two places")
        return self._add("concat", [a, b], (a_rows + b_rows, columns))

    def slice_rows(self, a, start, count):
        """Rows start .. start+count-1 of `a`, as a view: no instruction, no copy."""
        self._use("slice_rows", a)
        rows, columns = self.nodes[a].shape
        self._check_rows("slice_rows", a, rows, start, count)
        return self._add("slice", [a], (count, columns), start=start, count=count)

    def part_rows(self, a, start, count):
        """Rows start .. start+count-1 of the matmul `a`, written where this node belongs.

        A requantizer copies anyway, so a part, unlike a slice, may be a part of a concatenation.
        The matmul then is no int8 tensor: it keeps its sums, and only parts may read them.
        """
        self._use("part_rows", a)
        if self.nodes[a].op != "matmul":
            raise CompileError(f"part_rows: its input is node {a}, {self.nodes[a].op}; only a "
                               "matmul has sums to requantize in parts")
        others = [i for i in self.consumers(a) if self.nodes[i].op != "part"]
        if others:
            raise CompileError(f"part_rows: matmul {a} also feeds node {others[0]}, which needs "
                               "all of it in one place")
        rows, columns = self.nodes[a].shape
        self._check_rows("part_rows", a, rows, start, count)
        return self._add("part", [a], (count, columns), start=start, count=count)

    def argmax(self, a):
        """The index of the first largest value of each row, shape (rows, 1)."""
        self._use("argmax", a)
        return self._add("argmax", [a], (self.nodes[a].shape[0], 1))

    def output(self, a, name):
        """A tensor stored to external memory as `name`."""
        self._use("output", a)
        return self._add("output", [a], self.nodes[a].shape,
                         name=self._new_name("output", name))

    def tag(self, a, name):
        """Give node `a` the tag `name`, by which `ranges` finds it; returns a."""
        self._node("tag", a)
        self.tags[a] = name
        return a

    # ---- questions -------------------------------------------------------------------------------

    def consumers(self, a):
        """Ids of the nodes that take node `a` as an operand, in order."""
        return self.nodes[a].consumers

    def fused_relu(self, a):
        """Whether node `a` is a matmul whose requantizer applies a relu."""
        return any(self.nodes[i].op == "relu" for i in self.consumers(a))

    def in_parts(self, a):
        """Whether node `a` is a matmul that is requantized in parts."""
        return any(self.nodes[i].op == "part" for i in self.consumers(a))

    # ---- building --------------------------------------------------------------------------------

    def _add(self, op, ins, shape, **attrs):
        """Append a node, unchecked; returns its id."""
        node = Node(len(self.nodes), op, list(ins), shape, attrs)
        for i in ins:
            self.nodes[i].consumers.append(node.id)
        self.nodes.append(node)
        return node.id

    def _node(self, operation, a):
        if not is_integer(a) or not 0 <= a < len(self.nodes):
            raise CompileError(f"{operation}: {a!r} is not a node; there are {len(self.nodes)}")
        return self.nodes[a]

    def _use(self, operation, *ins):
        """Refuse operands that no operation, or not this one, can read."""
        for i in ins:
            op = self._node(operation, i).op
            if op in STORED and not (op != "output" and operation == "output"):
                raise CompileError(f"{operation}: node {i} is {op}; {STORED[op]} cannot be an "
                                   "operand")
            if operation == "relu" and op == "slice":
                raise CompileError(f"relu: node {i} is a slice, a view; a relu would have to copy "
                                   "it")
            if self.fused_relu(i):
                raise CompileError(f"{operation}: matmul {i} feeds a relu, which replaces its "
                                   "values; use the relu's node")
            if self.in_parts(i) and operation != "part_rows":
                raise CompileError(f"{operation}: matmul {i} is requantized in parts and lies in "
                                   "no one place; use the parts' nodes")

    def _check_rows(self, operation, a, rows, start, count):
        """Refuse a range of rows that node `a`, of `rows` rows, does not have."""
        if not (is_integer(start) and is_integer(count)):
            raise CompileError(f"{operation}: start {start!r} and count {count!r} must be integers")
        if count < 1:
            raise CompileError(f"{operation}: count {count} of rows from {start}: a "
                               f"{operation.split('_')[0]} has at least one row")
        if start < 0 or start + count > rows:
            raise CompileError(f"{operation}: rows {start} to {start + count - 1} of node {a}, "
                               f"which has rows 0 to {rows - 1}")

    def _shapes(self, *ins):
        return " and ".join("%d x %d" % self.nodes[i].shape for i in ins)

    def _new_name(self, kind, name):
        if name in self.names:
            raise CompileError(f"{kind} {name}: the name is already taken in this graph")
        self.names.add(name)
        return name


def check_inputs(g, inputs):
    """Raise CompileError, naming the input, unless `inputs` {name: rows} are those of graph `g`.

    None may be missing, unknown, of another shape or hold a number that is not finite.
    """
    wanted = {node.attrs["name"]: node.shape for node in g.nodes if node.op == "input"}
    for name in inputs:
        if name not in wanted:
            raise CompileError(f"input {name}: the program has no such input; it takes "
                               f"{', '.join(wanted) or 'none'}")
    for name, (rows, columns) in wanted.items():
        if name not in inputs:
            raise CompileError(f"input {name}: missing")
        shape = shape_of(inputs[name])
        if shape != (rows, columns):
            found = "%d x %d" % shape if shape else "uneven or empty rows"
            raise CompileError(f"input {name}: its shape must be {rows} x {columns}, not {found}")
        check_numbers(f"input {name}", inputs[name])


def is_integer(value):
    """Whether `value` is an integer; True and False are none."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value):
    """Whether `value` is a real number that a float can hold, and finite."""
    try:
        return isinstance(value, (int, float)) and math.isfinite(value)
    except OverflowError:                       # an integer beyond every float
        return False


def check_numbers(what, rows):
    """Raise CompileError, naming `what`, where the 2-D list holds no finite number."""
    for row in rows:
        for value in row:
            if not is_number(value):
                raise CompileError(f"{what}: every value must be a finite number, not "
                                   f"{value!r:.40}")


def is_shape(shape):
    """Whether `shape` is a pair of positive integers."""
    return (isinstance(shape, (tuple, list)) and len(shape) == 2
            and all(is_integer(size) and size >= 1 for size in shape))


def shape_of(rows):
    """(rows, columns) of a list of equally long, non-empty rows; None where it is none."""
    if not isinstance(rows, (list, tuple)) or not rows:
        return None
    if not all(isinstance(row, (list, tuple)) and row for row in rows):
        return None
    columns = len(rows[0])
    return (len(rows), columns) if all(len(row) == columns for row in rows) else None


# ---- meaning in floating point -------------------------------------------------------------------

def dot(x, y):
    """The inner product of two rows, rounded once: alike in every order and on every Python (the
    built-in sum() of floats rounds differently since 3.12)."""
    return math.fsum(map(operator.mul, x, y))


def mv(x, W):
    """The row vector `x` (n) times the matrix `W` (n x p): a row of p numbers."""
    return [dot(x, column) for column in zip(*W)]


def softmax_row(scores):
    """The softmax of one row of numbers."""
    largest = max(scores)
    weights = [math.exp(score - largest) for score in scores]
    total = math.fsum(weights)
    return [weight / total for weight in weights]


def masked_rows(softmax, rows, seen):
    """Row i: what `softmax` makes of its numbers at the columns seen[i]; zeros elsewhere."""
    results = []
    for row, columns in zip(rows, seen):
        results.append([0] * len(row))
        for column, value in zip(columns, softmax([row[column] for column in columns])):
            results[-1][column] = value
    return results


def transpose(rows):
    """The columns of a 2-D list, as rows."""
    return [list(column) for column in zip(*rows)]


def evaluate(g, inputs):
    """{node id: rows} of graph `g` in floating point, for inputs {name: rows}.

    Raises CompileError as `meaning` does.
    """
    values = {}
    for node in g.nodes:
        if node.op == "input":
            values[node.id] = inputs[node.attrs["name"]]
        elif node.op == "weight":
            values[node.id] = node.attrs["array"]
        else:
            values[node.id] = meaning(node, [values[i] for i in node.ins])
    return values


def too_large(node):
    """The CompileError of a node whose values no float can hold."""
    return CompileError(f"{node.op} {node.id}: its values are beyond the largest float; give "
                        "smaller weights or inputs")


def meaning(node, ins):
    """The real-number result (rows) of a node's operation on its operands' rows.

    Raises CompileError, naming the node, where a product's sum is beyond the largest float.
    """
    attrs = node.attrs
    if node.op == "matmul":
        columns = ins[1] if attrs["transpose_b"] else transpose(ins[1])
        try:
            return [[attrs["scale"] * dot(row, column) for column in columns] for row in ins[0]]
        except (OverflowError, ValueError):     # a partial sum past every float, or inf - inf
            raise too_large(node) from None
    if node.op == "softmax":
        return [softmax_row(row) for row in ins[0]]
    if node.op == "masked_softmax":
        return masked_rows(softmax_row, ins[0], attrs["seen"])
    if node.op == "probabilities":
        return [[ONE * p for p in softmax_row(row)] for row in ins[0]]
    if node.op == "add":
        return [[p + q for p, q in zip(*rows)] for rows in zip(*ins)]
    if node.op == "relu":
        return [[max(0.0, value) for value in row] for row in ins[0]]
    if node.op == "concat":
        return ins[0] + ins[1]
    if node.op in ("slice", "part"):
        return ins[0][attrs["start"]:attrs["start"] + attrs["count"]]
    if node.op == "argmax":
        return [[float(row.index(max(row)))] for row in ins[0]]
    return ins[0]                               # output
