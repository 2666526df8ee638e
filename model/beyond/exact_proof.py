"""The argument of exact_lm carried out by machine: programs run on symbols, for all inputs at once.

In this simulation a word of memory holds a term instead of a number: a word of the input x at a
position, an integer of a weight, or what an instruction makes of other terms. Equal terms are one
computation on one set of inputs, so where the outputs of two programs are equal terms, they are
equal integers, whatever tokens are fed.

    steps   The plain step at position 0, 1, 2, .. runs first. Its cache is the key and value terms
            of the steps before it.
    blocks  The verifier for m rows behind c cached ones runs on the x of positions c .. c + m - 1
            and the steps' cache. Row i's logits, token, key and value must be the terms of the
            step at c + i.
    host    Between programs the cache is kept in floating point. The scales of x, kc, k_new, vc
            and v_new must be alike in all programs, and each of the 255 integers must come back
            from the host as itself.

`unproved` returns the faults. Where there are none, a verifier's row is the plain step's, bit for
bit, for every sequence of tokens, cached or guessed. The programs must mean on the chip what they
mean here: exact_proof_tests compares terms with the simulator, rtl_tests the simulator with the
Verilog.
"""

from capra_graph import CompileError
from ga2_isa import EXT, K_MAX, SPAD, prepare
from quant import INT8_MAX, multiplier, quantize

MOST = 8                                        # rows of the blocks that are proved
SHAPES = [(c, m) for m in range(1, MOST + 1) for c in range(K_MAX - m + 1)]
OUTPUTS = ("logits", "tok", "k_new", "v_new")   # of a step and of a verifier, a row per position
CROSSING = {"x": "x", "kc": "k_new", "k_new": "k_new", "vc": "v_new", "v_new": "v_new"}
ZERO = 0                                        # the term of the integer 0
ONE_TO_ONE = multiplier(1.0)                    # what leaves int8 as it is


# ---- terms ---------------------------------------------------------------------------------------

class Terms:
    """Every term once, numbered: memory holds the numbers, and equal terms have equal numbers.

    A term is a tuple:
        ("int", value)
        ("x", position, column)
        ("mm", a0, a1, .., b0, b1, ..)          the sum of s8(a) * s8(b)
        ("rq", word, mantissa, shift, relu)
        ("sm", column, scores ..)               the probability of that column
        ("vadd", a, b)
        ("amax", words ..)
    A sum leaves out where a is the integer 0. Requantizing 0, or with mantissa 0, gives 0;
    requantizing a requantized word by 1 gives that word.
    """

    def __init__(self):
        self.numbers = {}
        self.int8 = set()                       # numbers of requantized words
        self.number("int", 0)

    def number(self, *term):
        return self.numbers.setdefault(term, len(self.numbers))

    def requantized(self, word, mantissa, shift, relu):
        """The term of a requantized word."""
        if word == ZERO or mantissa == 0:
            return ZERO
        if (mantissa, shift, relu) == (*ONE_TO_ONE, 0) and word in self.int8:
            return word
        number = self.number("rq", word, mantissa, shift, relu)
        self.int8.add(number)
        return number

    def dot(self, row, column):
        """The term of an inner product."""
        if ZERO in row:
            kept = [k for k, word in enumerate(row) if word != ZERO]
            row, column = [row[k] for k in kept], [column[k] for k in kept]
        return self.number("mm", *row, *column) if row else ZERO


def execute(code, ext, terms):
    """Machine(ext).run(code).ext, with terms for numbers."""
    spad = [ZERO] * SPAD
    ext = list(ext)
    for name, o in prepare(code, len(ext)):
        if name == "LD":
            spad[o["dst"]:o["dst"] + o["len"]] = ext[o["src"]:o["src"] + o["len"]]
        elif name == "ST":
            ext[o["dst"]:o["dst"] + o["len"]] = spad[o["src"]:o["src"] + o["len"]]
        else:
            result, width, stride = COMPUTE[name](terms, spad, o)
            for r in range(len(result) // width):
                first = o["dst"] + r * stride
                spad[first:first + width] = result[r * width:(r + 1) * width]
    return ext


# Each returns the terms of the result, how many make a row, and the rows' distance in memory.

def _matmul(terms, spad, o):
    rows = [spad[o["A"] + m * o["lda"]:][:o["K"]] for m in range(o["M"])]
    step_k, step_n = (1, o["ldb"]) if o["tb"] else (o["ldb"], 1)
    columns = [[spad[o["B"] + n * step_n + k * step_k] for k in range(o["K"])]
               for n in range(o["N"])]
    return [terms.dot(row, column) for row in rows for column in columns], o["N"], o["ldc"]


def _requantize(terms, spad, o):
    words = spad[o["src"]:o["src"] + o["len"]]
    constants = o["mantissa"], o["shift"], o["relu"]
    return [terms.requantized(word, *constants) for word in words], o["len"], 0


def _softmax(terms, spad, o):
    scores = spad[o["src"]:o["src"] + o["len"]]
    return [terms.number("sm", column, *scores) for column in range(o["len"])], o["len"], 0


def _add(terms, spad, o):
    pairs = zip(spad[o["src1"]:o["src1"] + o["len"]], spad[o["src2"]:o["src2"] + o["len"]])
    return [terms.number("vadd", *pair) for pair in pairs], o["len"], 0


def _argmax(terms, spad, o):
    return [terms.number("amax", *spad[o["src"]:o["src"] + o["len"]])], 1, 0


COMPUTE = {"MM": _matmul, "RQ": _requantize, "SM": _softmax, "VADD": _add, "AMAX": _argmax}


# ---- programs on symbols -------------------------------------------------------------------------

def outputs(P, terms, inputs):
    """{output name: rows of terms} of program `P` for inputs {name: rows of terms}."""
    ext = [ZERO] * EXT
    for name, entry in P.ext.items():
        if entry["kind"] == "weight":
            weight = P.constants[entry["node"]]
            rows = [[terms.number("int", word) for word in row] for row in weight]
        elif entry["kind"] == "input":
            rows = inputs[name]
        else:
            continue
        flat = [word for row in rows for word in row]
        ext[entry["addr"]:entry["addr"] + len(flat)] = flat
    after = execute(P.code, ext, terms)
    results = {}
    for name, entry in P.ext.items():
        if entry["kind"] == "output":
            rows, columns = entry["shape"]
            results[name] = [after[entry["addr"] + r * columns:][:columns] for r in range(rows)]
    return results


def block_inputs(P, terms, c, m, cache):
    """The inputs of a step or verifier: x of positions c .. c + m - 1, and c cached rows."""
    columns = P.ext["x"]["shape"][1]
    inputs = {"x": [[terms.number("x", position, column) for column in range(columns)]
                    for position in range(c, c + m)]}
    if c:
        inputs["kc"] = cache["k_new"][:c]
        inputs["vc"] = cache["v_new"][:c]
    return inputs


def held(chip):
    """Yield every (c, m) that `chip` has room for.

    More rows behind a longer cache never need less.
    """
    for m in range(1, K_MAX + 1):
        for c in range(K_MAX - m + 1):
            try:
                chip._vprog(c, m)
            except CompileError:
                break
            yield c, m


def unproved(chip, shapes, length=K_MAX, step=None, names=OUTPUTS):
    """Sentences on programs of `chip`, an ExactChip, that do not compute the plain steps' integers.

    The plain steps, step(L) with L tokens in context, by default those of the chip's plan, are
    those of positions 0 .. length - 1; `shapes` are (c, m), c + m <= length; `names` the outputs.
    """
    step = step or chip.plan.step
    terms = Terms()
    first = step(1)
    steps = {name: [] for name in names}        # a row of terms for each position
    problems = not_returning(first)
    for position in range(length):
        P = step(position + 1)
        problems += other_scales(P, first, f"the step at position {position}")
        row = outputs(P, terms, block_inputs(P, terms, position, 1, steps))
        for name in names:
            steps[name] += row[name]
    for c, m in shapes:
        P = chip._vprog(c, m)
        where = f"{m} rows behind {c}"
        problems += other_scales(P, first, where)
        block = outputs(P, terms, block_inputs(P, terms, c, m, steps))
        for name in names:
            wrong = [i for i in range(m) if block[name][i] != steps[name][c + i]]
            if wrong:
                problems.append(f"{where}: {name} of row {wrong[0]} is not what the step at "
                                f"position {c + wrong[0]} computes")
    return problems


def other_scales(P, first, where):
    """Sentences on tensors of `P` that cross the host in other steps than in `first`."""
    def scale(program, name):
        return program.scale[program.ext[name]["node"]]

    return [f"{where}: the scale of {name} is not that of the step at position 0"
            for name, source in CROSSING.items()
            if name in P.ext and scale(P, name) != scale(first, source)]


def not_returning(P):
    """Sentences on integers that keys or values do not keep on their way through the host."""
    problems = []
    for name in ("k_new", "v_new"):
        scale = P.scale[P.ext[name]["node"]]
        lost = [q for q in range(-INT8_MAX, INT8_MAX + 1) if quantize(q * scale, scale) != q]
        if lost:
            problems.append(f"{name}: {lost[0]} in steps of {scale} comes back from the host as "
                            f"{quantize(lost[0] * scale, scale)}")
    return problems
