"""The programs that compare the chip with the reference simulator.

    directed(words)                  every instruction at its extremes, one idea a program
    ends(words)                      the part of them that depends on `words`
    far_end(lat)                     one record, for the largest external memory there is
    random_programs(count, seed)     seeded programs of 10 to 25 instructions over random operands

Only external memory and the counters are compared, so nearly every program loads a window of memory
into the scratchpad, works in it and stores the whole window: a result that is wrong and a word that
should not have been written both show. `words` is the size of the external memory; the window does
not grow with it, which keeps the replay quick.
"""

import random
from collections import namedtuple

import ga2_isa
from ga2_isa import K_MAX, SPAD, TILE, build
from ga2_progs import MAX_INSTRUCTIONS

Program = namedtuple("Program", "name code ext")

WINDOW = 1024                                   # most words a directed program works in
RANDOM_WINDOW = 512                             # and a random one
LEAST_WORDS = 1024                              # external memory the directed programs need
MOST_WORDS = 1 << 16                            # external memory that 16 address bits reach
FAR_PC = ("pc=32766",)                          # for far_end: every bit of the pc changes
INT32_MIN = -(1 << 31)
INT32_MAX = (1 << 31) - 1
HALT = build("HALT")


def directed(words=ga2_isa.EXT):
    """List of Program(name, code, ext) for an external memory of `words` words."""
    return (_halts() + ends(words) + _maxima() + _sums() + _requants() + _softmaxes() + _products()
            + _sequences() + _restarts())


def ends(words=ga2_isa.EXT):
    """The directed programs that reach the end of the external memory, or move all that fits."""
    if not LEAST_WORDS <= words <= ga2_isa.EXT:
        raise ga2_isa.IsaError(f"the directed programs take an external memory of {LEAST_WORDS} to "
                               f"{ga2_isa.EXT} words, not {words} (set GA2_EXT for more)")
    return _transfers(words) + _longest(words)


def far_end(lat=ga2_isa.LAT):
    """The record of a program that crosses every power of 2 up to the end of MOST_WORDS words.

    `build` and `encode` take addresses below EXT only, so the far ones are put in afterwards.
    """
    code = []
    for bits in range(10, 17):
        edge = 1 << bits
        count = 8 if edge < MOST_WORDS else 4
        code += [dict(_load(16 * bits, 0, count), b=edge - 4),
                 _store(16 * bits, 16 * bits, count),
                 dict(_store(16 * bits - 1, 0, count), b=edge - 4)]
    code.append(HALT)
    before = [ga2_isa.s32(0x9E3779B1 * word) for word in range(MOST_WORDS)]
    after = ga2_isa.Machine(before, MOST_WORDS).run(code).ext
    numbers = [len(code)]
    for ins in code:
        word = ga2_isa.encode(dict(ins, b=0)) | ins["b"] << ga2_isa.FIELDS["b"][0]
        numbers += [(word >> low) & 0xFFFFFFFF for low in (96, 64, 32, 0)]
    numbers += [word & 0xFFFFFFFF for word in before + after]
    return numbers + list(ga2_isa.cycle_counts(code, lat))


# ---- data and frames -----------------------------------------------------------------------------

def mixed(rng, count):
    """`count` words that do not die to 0: small, extreme, full words, and int8 under junk bits."""
    makers = (
        lambda: rng.randrange(-20, 21),
        lambda: rng.randrange(-127, 128),
        lambda: rng.choice((-128, -127, -1, 0, 1, 127)),
        lambda: rng.randrange(INT32_MIN, INT32_MAX + 1),
        lambda: rng.randrange(INT32_MIN, INT32_MAX + 1) >> rng.randrange(8, 24),
        lambda: rng.choice((INT32_MIN, INT32_MIN + 1, INT32_MAX, 0x7FFFFF80, -256)),
    )
    return [rng.choice(makers)() for _ in range(count)]


def junk(rng, value):
    """A word whose low 8 bits are `value` and whose upper 24 bits mean nothing."""
    return ga2_isa.s32(rng.randrange(1 << 24) << 8 | value & 0xFF)


def _load(dst, src, count):
    return build("LD", dst=dst, src=src, len=count)


def _store(src, dst, count):
    return build("ST", src=src, dst=dst, len=count)


def _unary(name, dst, src, count, **more):
    return build(name, dst=dst, src=src, len=count, **more)


def _around(name, body, ext=None, base=0):
    """`body` on a scratchpad window at `base` that holds `ext` (or mixed words), then stored."""
    if ext is None:
        ext = mixed(random.Random(name), WINDOW)
    frame = [_load(base, 0, len(ext))] + body + [_store(base, 0, len(ext)), HALT]
    return Program(name, frame, ext)


def _mm(dst, A, B, M, K, N, tb=0, **strides):
    """A product whose strides are those of dense matrices unless given."""
    dense = {"lda": K, "ldb": K if tb else N, "ldc": N}
    dense.update(strides)
    return build("MM", dst=dst, A=A, B=B, M=M, K=K, N=N, tb=tb, **dense)


# ---- directed programs ---------------------------------------------------------------------------

def _halts():
    unreached = [_load(0, 0, 4), _store(0, 8, 4), HALT]
    return [
        Program("HALT alone", [HALT], [1, 2, 3]),
        Program("HALT first", [HALT] + unreached, [1, 2, 3, 4]),
    ]


def _maxima():
    top, bottom = INT32_MAX, INT32_MIN
    cases = (
        ("one word", [bottom]),
        ("first of ties", [3, 9, 9, 2, 9]),
        ("all equal", [5] * 9),
        ("all lowest", [bottom] * 5),
        ("largest first", [7, 6, 5]),
        ("largest last", [1, 2, 3, 4]),
        ("all negative", [-9, -3, -4, -3]),
        ("int32 extremes", [bottom, top, bottom, top]),
        ("sign bit", [1, bottom, -1, 0]),
        ("upper bits decide", [0x100, 0x7F, 0x10000, 0xFF, 0x1000000, 0xFFFFFF]),
        ("lowest bit decides", [top - 1, top, top - 1]),
        ("largest far from the first", [5] * 700 + [6] + [5] * 299),
    )
    programs = []
    for name, scores in cases:
        body = [_unary("AMAX", len(scores), 0, len(scores))]
        programs.append(_around(f"AMAX {name}", body, scores + [-1, -1]))
    several = [_unary("AMAX", 512 + n, n, n + 1) for n in range(64)]
    programs.append(_around("AMAX again and again, lengths 1 to 64", several))
    falling = [_unary("AMAX", 8 + n, n, 2) for n in range(4)]
    programs.append(_around("AMAX of less than before", falling, [90, 80, 7, 6, -5] + [-1] * 8))
    onto = [_unary("AMAX", 3, 0, 8)]
    programs.append(_around("AMAX onto its source", onto, [4, 4, 5, 6, 7, 0, 1, 2]))
    ends = [_unary("AMAX", SPAD - 1, SPAD - 8, 8), _unary("AMAX", SPAD - 8, SPAD - 1, 1)]
    programs.append(_around("AMAX at the end", ends, [1, 2, 8, 3, 8, 4, 5, 6], SPAD - 8))
    return programs


def _sums():
    rng = random.Random("sums")
    extremes = (-128, -127, -126, -64, -63, -1, 0, 1, 63, 64, 126, 127)
    pairs = [(one, two) for one in extremes for two in extremes]
    ones = [junk(rng, one) for one, _ in pairs]
    twos = [junk(rng, two) for _, two in pairs]
    count = len(pairs)
    operands = ones + twos

    def add(dst, src1, src2, length):
        return build("VADD", dst=dst, src1=src1, src2=src2, len=length)

    return [
        _around("VADD saturates", [add(2 * count, 0, count, count)], operands + [9] * count),
        _around("VADD onto its first source", [add(0, 0, count, count)], operands),
        _around("VADD onto its second source", [add(count, 0, count, count)], operands),
        _around("VADD doubles in place", [add(0, 0, 0, count)], operands),
        _around("VADD of itself", [add(count, 0, 0, count)], operands),
        _around("VADD of overlapping sources", [add(2 * count, 0, 1, count)],
                operands + [9] * count),
        _around("VADD lengths", [add(512 + 16 * n, n, 64 - n, n + 1) for n in range(16)]),
        _around("VADD at the ends", [add(SPAD - 1, SPAD - 2, SPAD - 3, 1),
                                     add(SPAD - 8, SPAD - 4, SPAD - 4, 4)],
                mixed(rng, 8), SPAD - 8),
    ]


def _requants():
    rng = random.Random("requants")
    programs = []
    for mantissa in (0, 1, 3, 1 << 23, 0xB504F3, (1 << 24) - 1):
        per_shift = [_rounding_words(rng, mantissa, shift) for shift in range(64)]
        count = len(per_shift[0])
        for relu in (0, 1):
            body = [_unary("RQ", count * shift, count * shift, count, mantissa=mantissa,
                           shift=shift, relu=relu) for shift in range(64)]
            programs.append(_around(f"RQ mantissa {mantissa} relu {relu}, every shift", body,
                                    [word for words in per_shift for word in words]))
    apart = [_unary("RQ", 512 + 16 * n, 16 * n, n + 1, mantissa=1 << 23, shift=23 + n)
             for n in range(16)]
    programs.append(_around("RQ lengths", apart))
    ends = [_unary("RQ", SPAD - 1, SPAD - 2, 1, mantissa=1, shift=1),
            _unary("RQ", SPAD - 8, SPAD - 4, 4, mantissa=1, shift=1)]
    programs.append(_around("RQ at the end", ends, [1, -1, 3, -3, 5, -5, 7, -7], SPAD - 8))
    return programs


def _rounding_words(rng, mantissa, shift):
    """12 words at which acc * mantissa / 2**shift is a tie, just below one, saturated or 0."""
    words = [INT32_MIN, INT32_MAX, 0, rng.randrange(INT32_MIN, INT32_MAX + 1)]
    for twice in (1, 253):                      # 1/2 rounds to 1, 126 1/2 to 127
        tie = -(-(twice << shift) // (2 * mantissa or 1))
        for word in (tie, tie - 1, -tie, 1 - tie):
            words.append(max(INT32_MIN, min(INT32_MAX, word)))
    return words


def _softmaxes():
    rng = random.Random("softmaxes")
    spread = [junk(rng, rng.randrange(-128, 128)) for _ in range(600)]
    programs = [
        _around("SM of 1 score", [_unary("SM", n, n, 1) for n in range(6)],
                [-128, -1, 0, 1, 127, 0x7FFFFF80]),
        _around("SM of 2 equal scores", [_unary("SM", 2, 0, 2)], [-128, -128, 0, 0]),
        _around("SM of the widest distance", [_unary("SM", 2, 0, 2)], [-128, 127, 0, 0]),
        # The sum of the four exponentials is 2**17: two of the probabilities are ties.
        _around("SM of a sum that is a power of 2", [_unary("SM", 4, 0, 4)],
                [127, 126, 80, 49, 0, 0, 0, 0]),
        _around("SM of 600 equal scores", [_unary("SM", 0, 0, 600)], [-7] * 600),
        _around("SM of 600 spread scores", [_unary("SM", 0, 0, 600)], spread),
        _around("SM of 170 lowest scores", [_unary("SM", 0, 0, 170)], [-128] * 170),
        _around("SM of 4096 equal scores", [_unary("SM", 0, 0, SPAD)], [0] * 8),
        _around("SM of 500 spread scores, apart", [_unary("SM", 512, 0, 500)],
                spread + [0] * (WINDOW - 600)),
        _around("SM of rising, then of falling scores",
                [_unary("SM", 16, 0, 8), _unary("SM", 24, 8, 8)],
                list(range(-40, 40, 10)) + list(range(-40, -120, -10)) + [0] * 16),
        _around("SM lengths", [_unary("SM", 512 + 16 * n, 20 * n, n + 1) for n in range(16)]),
        _around("SM at the ends", [_unary("SM", SPAD - 4, SPAD - 8, 4),
                                   _unary("SM", SPAD - 8, SPAD - 1, 1)],
                [3, 9, -2, 5, 0, 0, 0, 1], SPAD - 8),
    ]
    pairs = [score for distance in range(256) for score in (127, 127 - distance)]
    programs.append(_around("SM of 2 scores at every distance",
                            [_unary("SM", 2 * n, 2 * n, 2) for n in range(256)], pairs))
    return programs + [_sm_rows(rng)]


def _sm_rows(rng):
    """Many rows of near scores: together they show an entry of the table that is wrong by one."""
    body = []
    scores = []
    for _ in range(192):
        row = [20 - rng.randrange(48) for _ in range(rng.randrange(1, 8))]
        row.insert(rng.randrange(len(row)), 20)
        body.append(_unary("SM", len(scores), len(scores), len(row)))
        scores += row
    return _around("SM of rows of near scores", body, scores)


def _transfers(words):
    corners = [(spad, ext) for spad in (0, SPAD - 1) for ext in (0, words - 1)]
    to_corners = []
    for n, (spad, ext) in enumerate(corners):
        to_corners += [_load(spad, ext, 1), _store(spad, 100 + n, 1)]
    from_corners = [_load(0, 10, 1), _load(SPAD - 1, 11, 1)]
    from_corners += [_store(0, words - 1, 1), _store(SPAD - 1, 0, 1)]
    from_corners += [_store(0, 1, 1), _store(SPAD - 1, words - 2, 1)]
    ext = mixed(random.Random("transfers"), words)
    lengths = []
    for n in range(1, 23):                      # shorter and longer than every latency tried
        lengths += [_load(24 * n, 7 * n, n), _store(24 * n, 490 + 23 * n, n)]
    chain = []
    for n in range(16):
        chain += [_load(n, 3 * n, 8), _store(n, 3 * n + 5, 8)]
    return [
        Program("LD at the corners", to_corners + [HALT], ext),
        Program("ST at the corners", from_corners + [HALT], ext),
        Program("LD and ST of 1 to 22 words", lengths + [HALT], ext),
        Program("LD of what ST just wrote", chain + [HALT], ext),
        _around("LD after LD, overlapping", [_load(n, 64 * n, 64 - n) for n in range(16)]),
        Program("ST after ST, overlapping",
                [_load(0, 0, 512)] + [_store(9 * n, 512 + n, 16) for n in range(16)] + [HALT],
                ext[:WINDOW]),
    ]


def _products():
    programs = []
    for M in range(1, TILE + 1):
        for N in range(1, TILE + 1):
            body = []
            for n, (K, tb) in enumerate(((1, 0), (1, 1), (5, 0), (6, 1), (K_MAX, 0), (K_MAX, 1))):
                body.append(_mm(512 + 16 * n, 0, 256, M, K, N, tb))
            ext = mixed(random.Random(M * TILE + N), 640)
            programs.append(_around(f"MM {M}x{N}", body, ext))
    every_k = [_mm(512 + 8 * (K - 1), 0, 128, 1 + K % 2, K, 1 + K % 3, K // 2 % 2)
               for K in range(1, K_MAX + 1)]
    programs.append(_around("MM every K", every_k))
    return programs + [_mm_extremes(), _mm_positions()] + _mm_strides()


def _mm_extremes():
    """The largest and smallest sums there are: 64 products of -128 and 127, under junk bits."""
    rng = random.Random("extremes")
    rows = [-128] * 64 + [127] * 64 + [-128, 127] * 32 + [127, -128] * 32
    ext = [junk(rng, value) for value in rows]
    body = [_mm(256, 0, 0, 4, 64, 4, 1)]
    return _around("MM of extremes", body, ext + [0] * 16)


def _mm_positions():
    """Operands that are all different: a lost or late one shows in what is missing from the sum."""
    body = []
    ext = [0] * 512
    for m in range(TILE):
        for k in range(8):
            ext[8 * m + k] = 10 * m + k + 1
    for k in range(8):
        for n in range(TILE):
            ext[32 + TILE * k + n] = 1 << (n + 1) if (k + n) % 3 else -k - 1
    for n, (M, N) in enumerate(((4, 4), (1, 4), (4, 1), (2, 3), (3, 2))):
        body.append(_mm(64 + 16 * n, 0, 32, M, 8, N))
    return _around("MM of numbered words", body, ext)


def _mm_strides():
    far = SPAD - 1                              # the widest stride: 12 bits
    at_end = SPAD - 8
    return [
        _around("MM of tiles of wider matrices",
                [_mm(512, 3, 200, 4, 20, 3, lda=41, ldb=7, ldc=11),
                 _mm(600, 3, 200, 3, 20, 4, 1, lda=41, ldb=33, ldc=100)]),
        _around("MM stride 0",
                [_mm(512, 0, 64, 4, 8, 4, lda=0), _mm(544, 0, 64, 4, 8, 4, ldb=0),
                 _mm(576, 0, 64, 4, 8, 4, 1, ldb=0), _mm(608, 0, 64, 4, 8, 4, ldc=0)]),
        _around("MM overlapping rows",
                [_mm(512, 0, 64, 4, 9, 4, lda=1, ldb=1, ldc=1),
                 _mm(544, 0, 64, 4, 9, 4, 1, lda=3, ldb=1, ldc=2)]),
        _around("MM onto its operands",
                [_mm(0, 0, 64, 4, 4, 4), _mm(80, 32, 80, 3, 5, 4), _mm(202, 190, 200, 4, 6, 4, 1)]),
        Program("MM widest strides",
                [_load(0, 0, 4), _load(far - 2, 4, 3), _mm(8, 0, 2, 2, 1, 2, lda=far),
                 _mm(16, 2, 0, 2, 2, 1, ldb=far), _mm(24, 2, 0, 2, 1, 2, 1, ldb=far),
                 _mm(0, 1, 2, 2, 1, 1, ldc=far),
                 _store(0, 0, 32), _store(far - 2, 32, 3), HALT],
                [3, -5, 7, 11, 13, -17, 19]),
        _around("MM at the end",
                [_mm(SPAD - 1, SPAD - 4, SPAD - 2, 1, 2, 1),
                 _mm(at_end, SPAD - 1, SPAD - 2, 1, 1, 2),
                 _mm(SPAD - 4, at_end, SPAD - 1, 4, 1, 1)],
                [2, 3, 5, 7, 11, -13, 17, -19], at_end),
    ]


def _sequences():
    """Orders of instructions: what one leaves behind must not reach the next."""
    rng = random.Random("sequences")
    names = ("LD", "ST", "MM", "RQ", "SM", "VADD", "AMAX")
    pairs = [_small(rng, name) for one in names for two in names for name in (one, two)]
    cleared = [_mm(512, 0, 256, 4, 64, 4), _mm(528, 0, 256, 4, 1, 4), _mm(544, 3, 300, 1, 1, 1)]
    filler = [_small(rng, rng.choice(names)) for _ in range(MAX_INSTRUCTIONS - 1)]
    ext = mixed(rng, WINDOW)
    return [
        _around("every pair of instructions", pairs),
        _around("MM after a long MM", cleared),
        _around("loaded words used at once",
                [_load(0, 100, 30), _mm(500, 0, 16, 2, 8, 2), _load(0, 200, 30),
                 build("VADD", dst=520, src1=28, src2=29, len=1), _load(0, 300, 30),
                 _unary("SM", 540, 0, 30), _load(0, 400, 30), _unary("AMAX", 580, 0, 30),
                 _load(0, 450, 30), _unary("RQ", 590, 0, 30, mantissa=1, shift=2)]),
        Program("1024 instructions", filler + [HALT], ext),
    ]


def _small(rng, name):
    """A short instruction within the window."""
    count = rng.randrange(1, 5)
    dst = rng.randrange(0, 500)
    src = rng.randrange(512, 1000)
    if name in ("LD", "ST"):
        return build(name, dst=dst, src=src, len=count)
    if name == "MM":
        K = rng.randrange(1, 4)
        return _mm(dst, src, src, count, K, rng.randrange(1, 5), rng.randrange(2))
    if name == "VADD":
        return build(name, dst=dst, src1=src, src2=rng.choice((src, dst)), len=count)
    if name == "RQ":
        return _unary(name, dst, src, count, mantissa=rng.randrange(1 << 24),
                      shift=rng.randrange(16, 50), relu=rng.randrange(2))
    return _unary(name, dst, src, count)


def _longest(words):
    """The longest vector each instruction takes, ending at the last word."""
    length = min(SPAD, words)
    base = SPAD - length
    ext = mixed(random.Random("longest"), length)
    units = {
        "LD and ST": [],
        "RQ": [_unary("RQ", 0, 0, SPAD, mantissa=1 << 23, shift=30)],
        "SM": [_unary("SM", 0, 0, SPAD)],
        "VADD": [build("VADD", dst=0, src1=0, src2=0, len=SPAD)],
        "AMAX": [_unary("AMAX", SPAD - 2, 0, SPAD)],
    }
    programs = []
    for name, body in units.items():
        # Stored one word off, so that a unit that moves nothing does not look right.
        store = _store(base, 1, length - 1)
        programs.append(Program(f"longest {name}", [_load(base, 0, length)] + body + [store, HALT],
                                ext))
    return programs


def _restarts():
    """After all the others: the counters start again, and so does the scratchpad."""
    return [
        Program("HALT after long programs", [HALT], [1, 2, 3]),
        Program("scratchpad starts at 0", [_store(0, 0, WINDOW), HALT], [-1] * WINDOW),
    ]


# ---- random programs -----------------------------------------------------------------------------

def random_programs(count, seed, words=ga2_isa.EXT):
    """`count` seeded programs; program n of a seed is the same whatever `count` is."""
    return [_random_program(f"random {seed}.{n}", words) for n in range(count)]


def _random_program(name, words):
    rng = random.Random(name)
    window = min(words, RANDOM_WINDOW)
    base = rng.choice((0, rng.randrange(SPAD - window + 1), SPAD - window))
    ext = mixed(rng, window)
    length = rng.randrange(10, 26)              # with the LD before, the ST and the HALT after
    body = [_random_instruction(rng, base, window, words) for _ in range(length - 3)]
    kept = rng.randrange(window // 2, window + 1)
    store = _store(base + rng.randrange(window - kept + 1), 0, kept)
    return Program(name, [_load(base, 0, window)] + body + [store, HALT], ext)


def _random_instruction(rng, base, window, words):
    """A random instruction the chip takes; one in eight reaches outside the window."""
    while True:
        low, room = (base, window) if rng.randrange(8) else (0, SPAD)
        try:
            ins = _draw(rng, low, room, words)
            ga2_isa.check(ins, words)
            return ins
        except ga2_isa.IsaError:                # past an end, or an overlap: draw again
            continue


def _draw(rng, low, room, words):
    name = rng.choice(("LD", "ST", "MM", "MM", "MM", "RQ", "RQ", "SM", "VADD", "AMAX"))
    length = rng.choice((1, 2, 3, 16, rng.randrange(1, 17), rng.randrange(1, 65),
                         rng.randrange(1, 201)))

    def place():
        return low + rng.randrange(room)

    if name == "LD":
        return build(name, dst=place(), src=rng.randrange(min(words, RANDOM_WINDOW)), len=length)
    if name == "ST":
        return build(name, src=place(), dst=rng.randrange(words), len=length)
    if name == "MM":
        return _draw_product(rng, place)
    source = place()
    dst = rng.choice((source, place()))
    if name == "VADD":
        other = rng.choice((source, dst, place()))
        return build(name, dst=dst, src1=source, src2=other, len=length)
    if name == "RQ":
        # From hardly any change (a shift of 22) down to where int32 words become 0.
        return _unary(name, dst, source, length, mantissa=rng.randrange(1 << rng.choice((8, 24))),
                      shift=rng.choice((rng.randrange(22, 48), rng.randrange(64))),
                      relu=int(rng.randrange(4) == 0))
    return _unary(name, dst, source, length)


def _draw_product(rng, place):
    M = rng.randrange(1, TILE + 1)
    K = rng.choice((1, rng.randrange(1, 17), rng.randrange(1, K_MAX + 1), K_MAX))
    N = rng.randrange(1, TILE + 1)
    tb = rng.randrange(2)
    strides = {}
    for key in ("lda", "ldb", "ldc"):
        if rng.randrange(2):
            strides[key] = rng.choice((0, 1, rng.randrange(100), rng.randrange(300)))
    return _mm(place(), place(), place(), M, K, N, tb, **strides)
