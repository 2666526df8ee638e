"""Where each tensor lies, and for how long.

One buffer per tensor, except views. A view names another tensor's buffer and an offset in words: a
concatenation's parts lie in its result, a fused relu's matmul in the relu's place, a slice in its
source. A matmul requantized in parts has a buffer, too, for its sums, until the last part. Buffers
take turns in the scratchpad through a first-fit allocator.
"""

from collections import namedtuple

from capra_graph import CompileError
from ga2_isa import SPAD

Place = namedtuple("Place", "buffer offset")    # buffer: id of the node that owns it; offset: words


def words(node):
    """Size of a node's tensor in words."""
    rows, columns = node.shape
    return rows * columns


def places(g):
    """{node id: Place} of every node."""
    place = {}
    for node in reversed(g.nodes):              # a view of a later node: its consumer decides
        if node.op in ("slice", "output"):
            continue                            # a view of an earlier node, see below
        home = place.setdefault(node.id, Place(node.id, 0))
        if node.op == "concat":
            first, second = node.ins
            place[first] = home
            place[second] = Place(home.buffer, home.offset + words(g.nodes[first]))
        elif node.op == "relu":
            place[node.ins[0]] = home
    for node in g.nodes:                        # a view of an earlier node
        if node.op == "slice":
            source = place[node.ins[0]]
            offset = source.offset + node.attrs["start"] * node.shape[1]
            place[node.id] = Place(source.buffer, offset)
        elif node.op == "output":
            place[node.id] = place[node.ins[0]]
    return place


def lifetimes(g, place):
    """{buffer: (first node, last node)}: from its first writer or reader to its last reader.

    An input or weight is loaded at its first consumer, so it does not live before.
    """
    life = {}
    for node in g.nodes:
        touched = list(node.ins)
        if node.op not in ("input", "weight"):
            touched.append(node.id)
        for i in touched:
            buffer = place[i].buffer
            first, _ = life.get(buffer, (node.id, node.id))
            life[buffer] = (first, node.id)
    return life


class Allocator:
    """First fit over the scratchpad; a released block joins its free neighbours."""

    def __init__(self, size=SPAD):
        self.size = size
        self.free = [(0, size)]                 # (address, words), by address
        self.high = 0                           # words up to the highest ever allocated

    def take(self, count, what):
        """The address of `count` free words; CompileError naming `what` where there is no room."""
        for position, (address, room) in enumerate(self.free):
            if room >= count:
                rest = [(address + count, room - count)] if room > count else []
                self.free[position:position + 1] = rest
                self.high = max(self.high, address + count)
                return address
        most = max((room for _, room in self.free), default=0)
        raise CompileError(f"{what} needs {count} words of scratchpad; the largest free block has "
                           f"{most} of {self.size}")

    def release(self, address, count):
        """Give back the `count` words at `address`."""
        blocks = sorted(self.free + [(address, count)])
        self.free = []
        for address, room in blocks:
            if self.free and sum(self.free[-1]) == address:
                address, before = self.free.pop()
                room += before
            self.free.append((address, room))
