"""Program images: what the testbench loads, and what it must find afterwards."""

import ga2_isa

MAX_INSTRUCTIONS = 1024


def record(code, ext, lat=ga2_isa.LAT, words=ga2_isa.EXT):
    """The 32-bit words (unsigned) of one program in an image.

    Number of instructions; each instruction as four words, most significant first; the `words`
    words of external memory before; the same after, from the reference simulator; the five counters
    expected with a latency of `lat`.
    """
    if len(code) > MAX_INSTRUCTIONS:
        raise ga2_isa.IsaError(f"a program of {len(code)} instructions; the testbench holds "
                               f"{MAX_INSTRUCTIONS}")
    machine = ga2_isa.Machine(ext, words)
    numbers = [len(code)]
    for ins in code:
        ga2_isa.check(ins, words)
        word = ga2_isa.pack(ins)
        numbers += [(word >> low) & 0xFFFFFFFF for low in (96, 64, 32, 0)]
    numbers += [word & 0xFFFFFFFF for word in machine.ext]
    numbers += [word & 0xFFFFFFFF for word in machine.run(code).ext]
    return numbers + list(ga2_isa.cycle_counts(code, lat))


def image(records):
    """The text of an image: the number of programs, then their records, a word a line in hex."""
    words = [len(records)]
    for one in records:
        words += one
    return "".join(f"{word:08x}\n" for word in words)
