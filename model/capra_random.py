"""Random graphs by seed, for Capra's battery.

    plain_graph(seed)   every operation but the slice
    slice_graph(seed)   slices of every kind of tensor, feeding every kind of operation

Both return a Case. A Maker adds the tensors and keeps four rules in mind:

1. Sizes. It knows each tensor's rough size (root mean square) and picks the factors of a product
   so that the result is near 1: small enough for softmax's fixed scale, large enough to be seen.
2. Pins. Tensors that share their numbers share a scale, and softmax fixes it; groups with
   different pins are never joined, nor numbers near 1 with probabilities, whose scale ends at 1.
3. Rows differ. The rows of an input or weight have different sizes, so that a wrong row shows, or
   the scale of a few rows in place of their source's.
4. Ranges. Calibration's numbers lie at the ends of their intervals, the fresh ones anywhere
   inside, so that these hardly ever leave the ranges measured.
"""

import math
import random
from collections import namedtuple

from capra_graph import Graph

# calib: inputs to calibrate on; ranges: {tag: range}; fresh: inputs that calibration never saw
Case = namedtuple("Case", "graph calib ranges fresh")

CALIBRATION = 12                                # samples
FRESH = 2
ROW_SIZES = (1.0, 0.7, 0.45)                    # of the rows of an input or weight
WIDTHS = (3, 4, 5, 6, 7)                        # columns: full tiles and all kinds of rests
SPREAD = 0.45                                   # root mean square of numbers drawn with size 1
DEPTH = 4                                       # roundings between an input and an output, at most
LOGIT, PROBABILITY = "logit", "probability"     # what a softmax pins: its input, its result

SLICED = ("input", "weight", "matmul", "concat", "slice", "relu", "add", "softmax")
USES = ("matmul left", "matmul right", "softmax", "scores", "argmax", "add", "output")


def plain_graph(seed):
    """A Case of six to eleven random operations, their loose ends put out."""
    m = Maker(seed)
    steps = (m.multiply, m.multiply, m.mix, m.softmax, m.relu, m.add, m.add, m.concat, m.concat,
             m.argmax)
    for _ in range(m.rng.randrange(6, 12)):
        m.rng.choice(steps)(m.operand())
    return m.case()


def slice_graph(seed):
    """A Case of three to five slices, taken first and used later in another order."""
    m = Maker(seed)
    plans = []
    for _ in range(m.rng.randrange(3, 6)):
        use = m.rng.choice(USES)
        source = m.sliceable(for_softmax=use == "softmax")
        plans.append((m.slice(source, least=2 if use == "scores" else 1), use))
    while plans:
        view, use = plans.pop(m.rng.randrange(len(plans)))
        m.use(view, use)
    return m.case()


class Maker:
    """A graph in the making. Every method that adds a tensor returns its node id."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.g = Graph()
        self.size = {}                          # node id: rough root mean square of its numbers
        self.depth = {}                         # node id: roundings behind it
        self.group = {}                         # node id: number of its group, which shares a scale
        self.pin = {}                           # group: None, LOGIT or PROBABILITY
        self.row_sizes = {}                     # input name: size of each row
        self.ranges = {}                        # tag: range
        self.pool = []                          # tensors that may be operands
        self.placed = set()                     # parts of a concatenation

    # ---- tensors ---------------------------------------------------------------------------------

    def input(self, rows, columns=None, size=1.0):
        """A new input; one in four is tagged and given a range, a little too large."""
        columns = columns or self.rng.choice(WIDTHS)
        name = f"x{len(self.row_sizes)}"
        node = self.g.input(name, (rows, columns))
        self.row_sizes[name] = self.draw_row_sizes(rows, size)
        if self.rng.randrange(4) == 0:
            self.g.tag(node, f"tag {name}")
            self.ranges[f"tag {name}"] = 1.25 * size
        return self.note(node, SPREAD * size, 0)

    def weight(self, rows, columns, size=1.0):
        """A new weight."""
        array = self.numbers(self.draw_row_sizes(rows, size), columns)
        return self.note(self.g.weight(f"w{len(self.g.nodes)}", array), SPREAD * size, 0)

    def product(self, a, b, transposed=False, size=1.0):
        """scale * a x b (or b transposed), the scale chosen to give the result `size`."""
        inner = self.shape(a)[1]
        grows = inner / 1.5 if a == b else math.sqrt(inner)     # squares add up, nothing cancels
        scale = size / (grows * self.size[a] * self.size[b])
        node = self.g.matmul(a, b, transpose_b=transposed, scale=scale)
        return self.note(node, size, self.behind(a, b))

    def times_weight(self, a, columns=None, size=1.0):
        """`a` times a new weight, plain or transposed; half the time the weight is to scale."""
        rows = self.shape(a)[1]
        columns = columns or self.rng.choice(WIDTHS)
        transposed = self.rng.randrange(2) == 1
        shape = (columns, rows) if transposed else (rows, columns)
        if self.rng.randrange(2):
            return self.product(a, self.weight(*shape), transposed, size)
        factor = size / (math.sqrt(rows) * self.size[a] * SPREAD)
        node = self.g.matmul(a, self.weight(*shape, size=factor), transpose_b=transposed)
        return self.note(node, size, self.behind(a))

    def slice(self, a, least=1):
        """`least` or more rows of `a`, anywhere in it; in one case of eight all of them."""
        rows, _ = self.shape(a)
        if self.g.nodes[a].op == "relu":
            least = 2                           # a single row may be all zeros
        count = least + self.rng.randrange(max(1, rows - least))
        if self.rng.randrange(8) == 0:
            count = rows
        node = self.g.slice_rows(a, self.rng.randrange(rows - count + 1), count)
        return self.tied(self.note(node, self.size[a], self.depth[a]), a)

    # ---- steps of a plain graph: each takes an operand and adds a tensor -------------------------

    def multiply(self, a):
        return self.times_weight(a)

    def mix(self, a):
        """A matmul with another tensor of the graph where one fits, else with one transposed."""
        inner = self.shape(a)[1]
        right = [i for i in self.shallow() if self.shape(i)[0] == inner and i != a]
        if right:
            return self.product(a, self.rng.choice(right))
        transposed = [i for i in self.shallow() if self.shape(i)[1] == inner]
        return self.product(a, self.rng.choice(transposed), transposed=True)

    def softmax(self, a):
        """The softmax of `a`, causal or not; of a product of it where its scale is not free or does
        not suit its numbers."""
        if self.pin[self.group[a]] == PROBABILITY or not 0.6 <= self.size[a] <= 2:
            a = self.times_weight(a, size=1.5)
        self.pin[self.group[a]] = LOGIT
        rows, columns = self.shape(a)
        if rows <= columns and self.rng.randrange(3) == 0:
            softmax = self.g.causal_softmax(a, 1 + self.rng.randrange(columns - rows + 1))
        else:
            softmax = self.g.softmax(a)
        node = self.note(softmax, 1.2 / columns, self.behind(a))
        self.pin[self.group[node]] = PROBABILITY
        return node

    def relu(self, a):
        product = self.times_weight(a, size=1.5)
        self.pool.remove(product)
        return self.tied(self.note(self.g.relu(product), 1.0, self.depth[product]), product)

    def add(self, a):
        """The sum with another tensor of that shape, or with a new one, larger or smaller."""
        others = [i for i in self.shallow() if self.shape(i) == self.shape(a) and i != a]
        size = self.rng.choice((0.3, 1.0, 1.5))
        b = self.rng.choice(others) if others else self.like(a, size)
        if self.rng.randrange(2):
            a, b = b, a
        size = math.hypot(self.size[a], self.size[b])
        return self.note(self.g.add(a, b), size, self.behind(a, b))

    def concat(self, a):
        """`a` and another tensor of its width, in any order, parts of no other concatenation."""
        if not self.is_free(a):
            a = self.times_weight(a)
        others = [i for i in self.shallow() if self.is_free(i) and self.joinable(a, i)]
        b = self.rng.choice(others) if others else self.like(a, self.rng.choice((0.5, 1.0)))
        if not self.joinable(a, b):             # beside probabilities, only probabilities
            a = self.times_weight(a, self.shape(b)[1])
        if self.rng.randrange(2):
            a, b = b, a
        node = self.note(self.g.concat_rows(a, b), max(self.size[a], self.size[b]),
                         max(self.depth[a], self.depth[b]))
        self.placed.update((a, b))
        return self.tied(node, a, b)

    def argmax(self, a):
        self.g.argmax(a)

    def like(self, a, size):
        """A new tensor of a's shape: an input, or a product of one."""
        rows, columns = self.shape(a)
        if self.rng.randrange(3) == 0:
            return self.input(rows, columns, size)
        return self.times_weight(self.input(rows), columns, size)

    # ---- steps of a slice graph ------------------------------------------------------------------

    def sliceable(self, for_softmax):
        """A tensor of two rows or more, of a random kind, new or used already."""
        kind = self.rng.choice(SLICED)
        if kind == "slice":
            return self.slice(self.sliceable(for_softmax), least=2)
        old = [i for i in self.pool if self.g.nodes[i].op == kind]
        if old and not for_softmax and self.rng.randrange(3) == 0:
            return self.rng.choice(old)
        size = 4.0 if for_softmax else 1.0
        if kind == "weight":
            return self.weight(self.rows(), self.rng.choice(WIDTHS), size)
        x = self.input(self.rows(), size=size)
        if kind == "matmul":
            return self.times_weight(x, size=1.5)
        if kind == "concat":
            return self.concat(x)
        if kind == "relu":
            return self.relu(x)
        if kind == "add":
            return self.add(x)
        if kind == "softmax" and not for_softmax:
            return self.softmax(self.times_weight(x, size=1.5))
        return x

    def use(self, view, use):
        """Feed a slice to an operation and put the result out."""
        rows, columns = self.shape(view)
        if use == "matmul left":
            result = self.times_weight(view)
        elif use == "matmul right":
            if self.rng.randrange(2):
                result = self.product(self.input(self.rows(), columns), view, transposed=True)
            else:
                result = self.product(self.input(self.rows(), rows), view)
        elif use == "softmax":
            result = self.softmax(view)
        elif use == "scores":
            result = self.product(view, view, transposed=True)
            if self.rng.randrange(2):
                result = self.product(self.softmax(result), view)
        elif use == "argmax":
            result = self.g.argmax(view)
        elif use == "add":
            result = self.add(view)
        else:
            result = view
        self.out(result)

    # ---- bookkeeping -----------------------------------------------------------------------------

    def note(self, node, size, depth):
        """Enter a new tensor in the books, in a group of its own."""
        self.size[node] = size
        self.depth[node] = depth
        self.group[node] = node
        self.pin[node] = None
        self.pool.append(node)
        return node

    def tied(self, node, *sources):
        """`node`, put into one group with the tensors whose numbers it holds."""
        pins = [self.pin[self.group[i]] for i in sources]
        self.pin[node] = next((pin for pin in pins if pin), None)
        for old in [self.group[i] for i in sources]:
            self.group = {i: node if number == old else number for i, number in self.group.items()}
        return node

    def behind(self, *operands):
        return 1 + max(self.depth[i] for i in operands)

    def shape(self, a):
        return self.g.nodes[a].shape

    def rows(self):
        return self.rng.randrange(2, 7)

    def shallow(self):
        """Tensors that another operation may still take."""
        return [i for i in self.pool if self.depth[i] < DEPTH]

    def operand(self):
        """A recent tensor of the graph, or a new input."""
        if not self.pool or self.rng.randrange(6) == 0:
            return self.input(self.rows(), size=self.rng.choice((1.0, 4.0)))
        recent = self.shallow()[-4:]
        return self.rng.choice(recent)

    def is_free(self, a):
        """Whether `a` may become a part of a concatenation."""
        return a not in self.placed and self.g.nodes[a].op != "slice"

    def joinable(self, a, b):
        """Whether `a` and `b` can share a scale, and their rows one tensor."""
        pins = {self.pin[self.group[a]], self.pin[self.group[b]]}
        sizes = (self.size[a], self.size[b])
        return (a != b and self.shape(a)[1] == self.shape(b)[1] and max(sizes) <= 3 * min(sizes)
                and (PROBABILITY not in pins or len(pins) == 1))

    def out(self, a):
        self.g.output(a, f"out{len(self.g.nodes)}")

    # ---- numbers ---------------------------------------------------------------------------------

    def draw_row_sizes(self, rows, size):
        return [size * self.rng.choice(ROW_SIZES) for _ in range(rows)]

    def numbers(self, row_sizes, columns):
        """Rows of numbers, each uniform between minus and plus its row's size."""
        return [[size * (2 * self.rng.random() - 1) for _ in range(columns)] for size in row_sizes]

    def ends(self, row_sizes, columns):
        """Rows of numbers, each minus or plus its row's size."""
        return [[size * self.rng.choice((-1, 1)) for _ in range(columns)] for size in row_sizes]

    def sample(self, draw):
        """A sample of every input, drawn by one of the two methods above."""
        return {node.attrs["name"]: draw(self.row_sizes[node.attrs["name"]], node.shape[1])
                for node in self.g.nodes if node.op == "input"}

    def case(self):
        """The finished graph, its loose ends put out, with inputs to calibrate and to test it."""
        for node in list(self.g.nodes):
            if node.op != "output" and not self.g.consumers(node.id):
                self.out(node.id)
        calib = [self.sample(self.ends) for _ in range(CALIBRATION)]
        return Case(self.g, calib, self.ranges, [self.sample(self.numbers) for _ in range(FRESH)])
