"""GA-2's instruction set: one table, and all that is driven by it.

An instruction is a 128-bit word: an opcode and ten fields, always in the same place. In Python it
is a dict: ins["op"] is the name, the other keys are the field letters.

    build / check        an instruction from operand names; every limit the chip relies on
    encode / decode      to and from the 128-bit word
    assemble / disassemble   to and from readable text, one instruction a line
    cycle_counts         what the chip's five counters will show
    Machine              the reference simulator, compared with rtl/ga2.v word for word

Memory holds one value per 32-bit word: SPAD words of scratchpad on the chip, EXT words outside.
"""

import operator
import os
from collections import namedtuple

import quant
import softmax_gold
from refusal import Refusal

SPAD = 4096                                     # words of scratchpad
LAT = 8                                         # cycles from an external address to its data
K_MAX = 64                                      # words of one operand row memory (rtl/rowmem.v)
TILE = 4                                        # rows and columns of the systolic array
SIGN = 1 << 31                                  # words hold -SIGN .. SIGN - 1
FETCH_ISSUE = 2                                 # cycles before a unit starts


class IsaError(Refusal):
    """An instruction, a program or a memory image that GA-2 does not take."""


def _is_number(text):
    """Whether `text` is decimal digits as Verilog knows them, too (no others of Unicode)."""
    return text.isascii() and text.isdecimal()


def _external_words():
    text = os.environ.get("GA2_EXT", "8192")
    if not _is_number(text) or not 1 <= int(text) <= 65536:
        raise IsaError(f"GA2_EXT={text}: the external memory has 1 to 65536 words; unset it or "
                       "give a number in that range")
    return int(text)


EXT = _external_words()                         # words of external memory

# The instruction word: field -> (lowest bit, width).
FIELDS = {
    "op": (124, 4),
    "a": (108, 16),
    "b": (92, 16),
    "c": (76, 16),
    "d": (52, 24),
    "e": (46, 6),
    "f": (38, 8),
    "g": (30, 8),
    "h": (22, 8),
    "fl": (18, 4),
    "x": (0, 18),
}
LETTERS = tuple(letter for letter in FIELDS if letter != "op")
FIELD_MAX = {letter: (1 << width) - 1 for letter, (_, width) in FIELDS.items()}

# An operand sits in `width` bits of field `letter`, from bit `low` of the field, and is low..high.
Operand = namedtuple("Operand", "name letter low width least most")
Instruction = namedtuple("Instruction", "name opcode unit operands busy spans")
# A span is a range of memory an instruction touches, the destination last in its list.
Span = namedtuple("Span", "operand memory first last")


def _address(name, letter):
    return Operand(name, letter, 0, 16, 0, 65535)


def _count(name, letter, most=65535, width=None):
    return Operand(name, letter, 0, width or FIELDS[letter][1], 1, most)


def _bits(name, letter, width=None, low=0):
    width = width or FIELDS[letter][1]
    return Operand(name, letter, low, width, 0, (1 << width) - 1)


def _vector(operand, memory, first, length):
    return Span(operand, memory, first, first + length - 1)


def _matrix(operand, first, rows, stride, columns):
    return Span(operand, "scratchpad", first, first + (rows - 1) * stride + columns - 1)


def _mm_spans(o):
    if o["tb"]:
        b_span = _matrix("B", o["B"], o["N"], o["ldb"], o["K"])
    else:
        b_span = _matrix("B", o["B"], o["K"], o["ldb"], o["N"])
    return (_matrix("A", o["A"], o["M"], o["lda"], o["K"]),
            b_span,
            _matrix("dst", o["dst"], o["M"], o["ldc"], o["N"]))


def _unary_spans(o):
    return (_vector("src", "scratchpad", o["src"], o["len"]),
            _vector("dst", "scratchpad", o["dst"], o["len"]))


def _mm_busy(o, lat):
    staging = o["M"] * o["K"] + o["K"] * o["N"]
    streaming = o["K"] + o["M"] + o["N"] - 2
    return staging + streaming + o["M"] * o["N"] + 7


# name, opcode, the counter it is charged to, operands, busy cycles, memory it touches.
_TABLE = (
    Instruction("HALT", 0, None, (), lambda o, lat: 0, lambda o: ()),
    Instruction(
        "LD", 1, "dma",
        (_address("dst", "a"), _address("src", "b"), _count("len", "c")),
        lambda o, lat: o["len"] + lat + 1,
        lambda o: (_vector("src", "external memory", o["src"], o["len"]),
                   _vector("dst", "scratchpad", o["dst"], o["len"]))),
    Instruction(
        "ST", 2, "dma",
        (_address("src", "a"), _address("dst", "b"), _count("len", "c")),
        lambda o, lat: o["len"] + 2,
        lambda o: (_vector("src", "scratchpad", o["src"], o["len"]),
                   _vector("dst", "external memory", o["dst"], o["len"]))),
    Instruction(
        "MM", 3, "matrix",
        (_address("dst", "a"), _address("A", "b"), _address("B", "c"),
         _count("M", "f", TILE), _count("K", "g", K_MAX), _count("N", "h", TILE),
         _bits("tb", "fl", 1), _bits("lda", "d", 12), _bits("ldb", "d", 12, low=12),
         _bits("ldc", "x", 12)),
        _mm_busy, _mm_spans),
    Instruction(
        "RQ", 4, "vector",
        (_address("dst", "a"), _address("src", "b"), _count("len", "c"),
         _bits("mantissa", "d"), _bits("shift", "e"), _bits("relu", "fl", 1)),
        lambda o, lat: o["len"] + 2,
        _unary_spans),
    Instruction(
        "SM", 5, "vector",
        (_address("dst", "a"), _address("src", "b"), _count("len", "c")),
        lambda o, lat: 3 * o["len"] + 41 + 6,
        _unary_spans),
    Instruction(
        "VADD", 6, "vector",
        (_address("dst", "a"), _address("src1", "b"), _address("src2", "c"),
         _count("len", "d", width=16)),
        lambda o, lat: 2 * o["len"] + 2,
        lambda o: (_vector("src1", "scratchpad", o["src1"], o["len"]),
                   _vector("src2", "scratchpad", o["src2"], o["len"]),
                   _vector("dst", "scratchpad", o["dst"], o["len"]))),
    Instruction(
        "AMAX", 7, "vector",
        (_address("dst", "a"), _address("src", "b"), _count("len", "c")),
        lambda o, lat: o["len"] + 3,
        lambda o: (_vector("src", "scratchpad", o["src"], o["len"]),
                   _vector("dst", "scratchpad", o["dst"], 1))),
)
INSTRUCTIONS = {row.name: row for row in _TABLE}
BY_OPCODE = {row.opcode: row for row in _TABLE}
# These stream word by word: a destination that overlaps a source must be that source.
STREAMING = ("RQ", "SM", "VADD")


def s8(word):
    """The low 8 bits of `word` as a signed integer."""
    return ((word & 0xFF) ^ 0x80) - 0x80


def s32(word):
    """The low 32 bits of `word` as a signed integer."""
    return ((word & 0xFFFFFFFF) ^ 0x80000000) - 0x80000000


# ---- one instruction -----------------------------------------------------------------------------

def build(name, **operands):
    """The instruction `name` from its operand names, checked: build("LD", dst=0, src=16, len=4).

    Operands that are left out are 0. Raises IsaError as `check` does.
    """
    row = _row(name)
    known = {operand.name: operand for operand in row.operands}
    ins = dict.fromkeys(("op",) + LETTERS, 0)
    ins["op"] = name
    for key, value in operands.items():
        if key not in known:
            raise IsaError(f"{name} has no operand {key}; it takes {', '.join(known) or 'none'}")
        operand = known[key]
        _check_range(name, key, value, 0, (1 << operand.width) - 1)
        ins[operand.letter] |= value << operand.low
    check(ins)
    return ins


def operands(ins):
    """{operand name: value} of an instruction, in the order of the table."""
    return {operand.name: (ins.get(operand.letter, 0) >> operand.low) & ((1 << operand.width) - 1)
            for operand in _row(ins["op"]).operands}


def check(ins, words=EXT):
    """The operands of `ins`, if GA-2 can execute it; IsaError naming instruction and field if not.

    `words` is the size of the external memory.
    """
    name = ins["op"]
    row = _row(name)
    reserved = RESERVED[name]
    for letter, value in ins.items():
        if letter == "op":
            continue
        if letter not in FIELDS:
            raise IsaError(f"{name}: there is no field {letter}; the fields are "
                           f"{', '.join(LETTERS)}")
        if not isinstance(value, int) or not 0 <= value <= FIELD_MAX[letter]:
            _check_range(name, f"field {letter}", value, 0, FIELD_MAX[letter])
        if value & reserved[letter]:
            raise IsaError(f"{name}: field {letter} = {value} sets bits that {name} does not use")
    values = operands(ins)
    for operand in row.operands:
        _check_range(name, operand.name, values[operand.name], operand.least, operand.most)
    spans = row.spans(values)
    for span in spans:
        size = SPAD if span.memory == "scratchpad" else words
        if span.last >= size:
            raise IsaError(f"{name}: {span.operand} covers words {span.first} to {span.last}, past "
                           f"the end of the {span.memory} ({size} words)")
    if name in STREAMING:
        _check_overlap(name, spans)
    return values


def _row(name):
    if name not in INSTRUCTIONS:
        raise IsaError(f"{name} is not an instruction; GA-2 has {', '.join(INSTRUCTIONS)}")
    return INSTRUCTIONS[name]


def _check_range(name, what, value, least, most):
    if not isinstance(value, int) or not least <= value <= most:
        raise IsaError(f"{name}: {what} = {value} must be an integer in {least}..{most}")


def _reserved_bits(row):
    unused = {letter: (1 << FIELDS[letter][1]) - 1 for letter in LETTERS}
    for operand in row.operands:
        unused[operand.letter] &= ~(((1 << operand.width) - 1) << operand.low)
    return unused


RESERVED = {row.name: _reserved_bits(row) for row in _TABLE}


def _check_overlap(name, spans):
    target = spans[-1]
    for source in spans[:-1]:
        apart = target.last < source.first or source.last < target.first
        if not apart and target.first != source.first:
            raise IsaError(f"{name}: dst at {target.first} overlaps {source.operand} at "
                           f"{source.first}; it must equal it or lie apart from it")


def encode(ins):
    """The 128-bit word of an instruction, checked."""
    check(ins)
    return pack(ins)


def pack(ins):
    """The 128-bit word of an instruction that `check` has taken."""
    word = INSTRUCTIONS[ins["op"]].opcode << FIELDS["op"][0]
    for letter in LETTERS:
        word |= ins.get(letter, 0) << FIELDS[letter][0]
    return word


def decode(word):
    """The instruction of a 128-bit word; an undefined opcode raises IsaError."""
    if not 0 <= word < 1 << 128:
        raise IsaError(f"decode: {word} is not a 128-bit word")
    values = {letter: (word >> low) & ((1 << width) - 1)
              for letter, (low, width) in FIELDS.items()}
    if values["op"] not in BY_OPCODE:
        raise IsaError(f"opcode {values['op']} is undefined; GA-2 has opcodes 0 to "
                       f"{len(_TABLE) - 1}")
    values["op"] = BY_OPCODE[values["op"]].name
    check(values)
    return values


# ---- text ----------------------------------------------------------------------------------------

def disassemble(code):
    """Readable text of a program, one instruction a line; `assemble` takes it back."""
    lines = []
    for ins in code:
        words = [f"{name}={value}" for name, value in operands(ins).items()]
        lines.append(" ".join([f"{ins['op']:4}"] + words).rstrip())
    return "".join(line + "\n" for line in lines)


def assemble(text):
    """The program in `text`: a line an instruction, `NAME operand=value ...`, `#` to its end.

    Raises IsaError with the number of the line at fault.
    """
    code = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#")[0].split()
        if not words:
            continue
        try:
            code.append(_assemble_line(words))
        except IsaError as error:
            raise IsaError(f"line {number}: {error}") from None
    return code


def _assemble_line(words):
    values = {}
    for word in words[1:]:
        key, _, value = word.partition("=")
        if not _is_number(value):
            raise IsaError(f"{words[0]}: '{word}' is not operand=number")
        if key in values:
            raise IsaError(f"{words[0]}: operand {key} is given twice")
        values[key] = int(value)
    return build(words[0], **values)


# ---- cycles --------------------------------------------------------------------------------------

def cycle_counts(code, lat=LAT):
    """(total, matrix, dma, vector, instructions) of a program, as the chip's five counters show it.

    Total counts fetch and issue too; instructions does not count the HALT.
    """
    cycles = {"matrix": 0, "dma": 0, "vector": 0}
    executed = _until_halt(code)
    for ins in executed:
        row = INSTRUCTIONS[ins["op"]]
        cycles[row.unit] += row.busy(operands(ins), lat)
    total = FETCH_ISSUE * (len(executed) + 1) + sum(cycles.values())
    return total, cycles["matrix"], cycles["dma"], cycles["vector"], len(executed)


def _until_halt(code):
    for position, ins in enumerate(code):
        if ins["op"] == "HALT":
            return code[:position]
    raise IsaError(f"a program of {len(code)} instructions has no HALT; end it with one")


# ---- the reference simulator ---------------------------------------------------------------------

def prepare(code, words=EXT):
    """[(name, operands)] of a program's instructions before its HALT, each checked by `check`."""
    return [(ins["op"], check(ins, words)) for ins in _until_halt(code)]


class Machine:
    """GA-2 without its clock: an external memory of `words` words, a scratchpad of zeros.

    `ext` is what the external memory starts with; zeros follow it. After run(code), .ext and .spad
    are the memories as signed 32-bit integers.
    """

    def __init__(self, ext=(), words=EXT):
        if len(ext) > words:
            raise IsaError(f"an external memory of {len(ext)} words; GA-2 has {words} here "
                           "(set GA2_EXT for more)")
        self.ext = list(ext) + [0] * (words - len(ext))
        if max(self.ext) >= SIGN or min(self.ext) < -SIGN:
            self.ext = [s32(word) for word in self.ext]
        self.spad = [0] * SPAD

    def run(self, code):
        """Execute `code` up to its HALT; returns the machine. Raises IsaError as `check` does."""
        return self.execute(prepare(code, len(self.ext)))

    def execute(self, prepared):
        """As `run`, for a program that `prepare` checked; for programs that run many times."""
        units = {
            "LD": self._load,
            "ST": self._store,
            "MM": self._matmul,
            "RQ": self._requantize,
            "SM": self._softmax,
            "VADD": self._add,
            "AMAX": self._argmax,
        }
        for name, values in prepared:
            units[name](**values)
        return self

    def _load(self, dst, src, len):
        self.spad[dst:dst + len] = self.ext[src:src + len]

    def _store(self, src, dst, len):
        self.ext[dst:dst + len] = self.spad[src:src + len]

    def _matmul(self, dst, A, B, M, K, N, tb, lda, ldb, ldc):
        spad = self.spad
        rows = [_low_bytes(spad[A + m * lda:A + m * lda + K]) for m in range(M)]
        step_k, step_n = (1, ldb) if tb else (ldb, 1)
        columns = [_low_bytes(_strided(spad, B + n * step_n, step_k, K)) for n in range(N)]
        for m, row in enumerate(rows):
            first = dst + m * ldc
            spad[first:first + N] = [sum(map(operator.mul, row, column)) for column in columns]

    def _requantize(self, dst, src, len, mantissa, shift, relu):
        self.spad[dst:dst + len] = [quant.requant(word, mantissa, shift, relu)
                                    for word in self.spad[src:src + len]]

    def _softmax(self, dst, src, len):
        self.spad[dst:dst + len] = softmax_gold.softmax(_low_bytes(self.spad[src:src + len]))

    def _add(self, dst, src1, src2, len):
        self.spad[dst:dst + len] = [
            quant.clamp8(s8(one) + s8(two))
            for one, two in zip(self.spad[src1:src1 + len], self.spad[src2:src2 + len])]

    def _argmax(self, dst, src, len):
        words = self.spad[src:src + len]
        self.spad[dst] = words.index(max(words))


def _strided(words, first, step, count):
    """`count` words from `first` on, `step` apart (0: one word again and again)."""
    if step == 0:
        return [words[first]] * count
    return words[first:first + (count - 1) * step + 1:step]


def _low_bytes(words):
    """[s8(word) for each word], quick where all are int8 already, as in every compiled program."""
    if -128 <= min(words) and max(words) <= 127:
        return words
    return [s8(word) for word in words]
