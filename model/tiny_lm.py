"""A tiny language model: one layer, one head, 16 tokens; in floating point and on the chip.

    x = E[token];  q, k, v = x Wq, x Wk, x Wv;  K, V = cache plus the new row
    a = softmax(q K^T / sqrt(D)) V;  h = x + a Wo;  y = h + relu(h W1) W2;  logits = y Wout

The next token is the first largest logit. The embedding E stays on the host, as the chip has no
gather. `mdl` is a model here and everywhere: {kind, E, Wq, ..}, as make_model returns it.
"""

import math
import random

import capra
from capra_graph import dot, is_integer, is_number, mv, shape_of, softmax_row
from capra_scales import largest
from ga2_isa import K_MAX

V = 16                                          # tokens
D = 16                                          # width of the model
HID = 32                                        # width of the feed-forward layer
SHAPES = {"E": (V, D), "Wq": (D, D), "Wk": (D, D), "Wv": (D, D), "Wo": (D, D), "W1": (D, HID),
          "W2": (HID, D), "Wout": (D, V)}
MATRICES = tuple(name for name in SHAPES if name != "E")        # what the chip loads
TAGS = ("x", "k", "v")                          # tensors whose range the chapter's programs share


def f_next(token):
    """The structured model's rule: the token after `token`."""
    return (5 * token + 3) % V


def make_model(kind="structured", seed=1, noise=0.45):
    """A model: {kind, E (V x D), Wq, Wk, Wv, Wo (D x D), W1 (D x HID), W2 (HID x D), Wout (D x V)}.

    "structured" follows the rule f_next by construction, `noise` being the size of its random
    matrices; "random" has no rule. Raises ValueError for another kind.
    """
    if kind not in ("structured", "random"):
        raise ValueError(f"make_model: kind {kind!r} is unknown; it is 'structured' or 'random'")
    R = random.Random(seed)
    root = math.sqrt(D)
    if kind == "random":
        E = [[value / 4 for value in row] for row in gauss_matrix(R, V, D, 1.0)]
        Wout = gauss_matrix(R, D, V, 1 / root)
        size = 1.0
    else:
        E = [[(-1) ** bin(i & j).count("1") / 4 for j in range(D)] for i in range(V)]
        before = {f_next(token): token for token in range(V)}
        Wout = [[8 * E[before[j]][i] for j in range(V)] for i in range(D)]
        size = noise
    model = {"kind": kind, "E": E}
    for name in ("Wq", "Wk", "Wv", "Wo"):
        model[name] = gauss_matrix(R, D, D, size / root)
    model["W1"] = gauss_matrix(R, D, HID, size / root)
    model["W2"] = gauss_matrix(R, HID, D, size / math.sqrt(HID))
    model["Wout"] = Wout
    return model


def gauss_matrix(R, rows, columns, sd):
    """A matrix of normal numbers, drawn row by row from the generator `R`."""
    return [[R.gauss(0, sd) for _ in range(columns)] for _ in range(rows)]


# ---- what may be asked ---------------------------------------------------------------------------

def check_model(mdl):
    """Raise ValueError, naming the matrix, where `mdl` lacks one or it is not a model's.

    Each matrix has the rows and columns of SHAPES, filled with finite numbers.
    """
    for name, (rows, columns) in SHAPES.items():
        if name not in mdl:
            raise ValueError(f"the model has no matrix {name}; it takes {', '.join(SHAPES)}")
        check_matrix(f"matrix {name} of the model", mdl[name], rows, columns)


def check_matrix(what, matrix, rows, columns):
    """Raise ValueError, naming `what`, unless `matrix` is rows x columns of finite numbers."""
    if shape_of(matrix) != (rows, columns):
        raise ValueError(f"{what} must be {rows} rows of {columns} numbers")
    for row in matrix:
        for value in row:
            if not is_number(value):
                raise ValueError(f"{what} holds {value!r:.40}; every entry must be a finite number")


def is_count(value):
    """Whether `value` is an integer of 0 or more; True and False are none."""
    return is_integer(value) and value >= 0


def check_count(what, value):
    """Raise ValueError, naming `what`, where `value` is not an integer of 0 or more."""
    if not is_count(value):
        raise ValueError(f"{what} = {value!r} must be an integer, 0 or more")


def check_token(what, token):
    """`token`, if it is one; ValueError naming `what` it came from otherwise."""
    if not (is_count(token) and token < V):
        raise ValueError(f"{what} {token!r} is not a token; tokens are 0 to {V - 1}")
    return token


def check_starts(starts):
    """Raise ValueError where there is nothing to calibrate on, or a start is no token."""
    if not starts:
        raise ValueError("there is no start to calibrate on; give at least one token")
    for start in starts:
        check_token("start", start)


# ---- floating point ------------------------------------------------------------------------------

def argmax(row):
    """The index of the first largest number."""
    return row.index(max(row))


def float_step(mdl, tok, kc, vc):
    """One decode step: (logits, k, v, parts) for token `tok` after the cached rows kc, vc.

    kc and vc are lists of rows of D numbers and are not changed; parts is {tag: row} of every
    tensor of the step, by the tags of `build_graph`.
    """
    x = mdl["E"][tok]
    q, k, v = mv(x, mdl["Wq"]), mv(x, mdl["Wk"]), mv(x, mdl["Wv"])
    keys = kc + [k]
    values = vc + [v]
    weights = softmax_row([dot(q, key) / math.sqrt(D) for key in keys])
    attn = mv(weights, values)
    proj = mv(attn, mdl["Wo"])
    h = [p + r for p, r in zip(x, proj)]
    hidden = [max(0.0, value) for value in mv(h, mdl["W1"])]
    ff = mv(hidden, mdl["W2"])
    y = [p + r for p, r in zip(h, ff)]
    logits = mv(y, mdl["Wout"])
    parts = {"x": x, "q": q, "k": k, "v": v, "attn": attn, "proj": proj, "h": h, "hidden": hidden,
             "ff": ff, "y": y, "logits": logits}
    return logits, k, v, parts


def float_generate(mdl, start, n):
    """[start, t1, .., tn]: n tokens by greedy decoding in floating point.

    Raises ValueError for a start that is no token, an n below 0 and what is not a model.
    """
    check_model(mdl)
    check_token("start", start)
    check_count("n", n)
    tokens = [start]
    kc, vc = [], []
    for _ in range(n):
        logits, k, v, _ = float_step(mdl, tokens[-1], kc, vc)
        kc, vc = kc + [k], vc + [v]
        tokens.append(argmax(logits))
    return tokens


# ---- on the chip ---------------------------------------------------------------------------------

def build_graph(mdl, L):
    """One decode step with L tokens in context, the new one included.

    Inputs x (1 x D) and, for L > 1, kc and vc (L-1 x D); outputs tok, logits, k_new, v_new.
    """
    check_context(L)
    g = capra.Graph()
    W, x, q, k_new, v_new = project(g, mdl, 1)
    keys, values = append_to_cache(g, L - 1, k_new, v_new)
    scores = g.matmul(q, keys, transpose_b=True, scale=1 / math.sqrt(D))
    attn = g.tag(g.matmul(g.softmax(scores), values), "attn")
    outputs(g, feed_forward(g, W, x, attn), k_new, v_new)
    return g


def check_context(L):
    """Raise CompileError where a token would have more in context than the chip can attend to."""
    if L > K_MAX:
        raise capra.CompileError(f"token {L}: its attention would sum over {L} rows of values; the "
                                 f"chip multiplies at most {K_MAX} (end the run at {K_MAX} tokens)")


def project(g, mdl, rows):
    """(W, x, q, k_new, v_new): the weights {name: node}, the input and its three projections."""
    x = g.tag(g.input("x", (rows, D)), "x")
    W = {name: g.weight(name, mdl[name]) for name in MATRICES}
    q = g.tag(g.matmul(x, W["Wq"]), "q")
    k_new = g.tag(g.matmul(x, W["Wk"]), "k")
    v_new = g.tag(g.matmul(x, W["Wv"]), "v")
    return W, x, q, k_new, v_new


def append_to_cache(g, cached, k_new, v_new):
    """Nodes (keys, values): the new rows behind `cached` ones, which are the inputs kc and vc."""
    if cached == 0:
        return k_new, v_new
    kc = g.tag(g.input("kc", (cached, D)), "k")
    vc = g.tag(g.input("vc", (cached, D)), "v")
    return (g.tag(g.concat_rows(kc, k_new), "k"), g.tag(g.concat_rows(vc, v_new), "v"))


def feed_forward(g, W, x, attn):
    """The logits node: everything behind the attention, row by row."""
    return g.tag(g.matmul(last_hidden(g, W, x, attn), W["Wout"]), "logits")


def last_hidden(g, W, x, attn):
    """The node y in front of the logits."""
    proj = g.tag(g.matmul(attn, W["Wo"]), "proj")
    h = g.tag(g.add(x, proj), "h")
    hidden = g.tag(g.relu(g.tag(g.matmul(h, W["W1"]), "hidden")), "hidden")
    ff = g.tag(g.matmul(hidden, W["W2"]), "ff")
    return g.tag(g.add(h, ff), "y")


def outputs(g, logits, k_new, v_new):
    """Store what the host needs: tok, logits, k_new, v_new."""
    g.output(g.argmax(logits), "tok")
    g.output(logits, "logits")
    g.output(k_new, "k_new")
    g.output(v_new, "v_new")


def calibrate(mdl, steps, starts=range(V)):
    """(calib, ranges) from greedy float runs of `steps` tokens from every start.

    calib: {L: the inputs {x, kc, vc} seen with L tokens in context}; ranges: {"x", "k", "v": the
    largest absolute value of the embedding rows fed, of the keys and of the values, over all runs}.
    """
    check_model(mdl)
    check_count("steps", steps)
    check_starts(starts)
    calib = {L: [] for L in range(1, steps + 1)}
    ranges = dict.fromkeys(TAGS, 0.0)
    for start in starts:
        tok = start
        kc, vc = [], []
        for L in range(1, steps + 1):
            x = mdl["E"][tok]
            calib[L].append(step_inputs([x], kc, vc))
            logits, k, v, parts = float_step(mdl, tok, kc, vc)
            for tag in TAGS:
                ranges[tag] = max(ranges[tag], largest([parts[tag]]))
            kc, vc = kc + [k], vc + [v]
            tok = argmax(logits)
    return calib, ranges


def step_inputs(x, kc, vc):
    """The inputs of a step or block: rows x, and the cached rows where there are any."""
    return {"x": x, "kc": kc, "vc": vc} if kc else {"x": x}


class Chip:
    """The plain decoder on the chip: one program per context length, each compiled once.

    Calibrated on `steps` tokens from every start in `starts`. `m` is the model.
    """

    def __init__(self, mdl, steps, starts=range(V)):
        self.m = mdl
        self.steps = steps
        self.calib, self.ranges = calibrate(mdl, steps, starts)
        self.programs = {}

    def program(self, L):
        """The program for L tokens in context, 1 <= L <= steps, compiled once.

        Its scales are those that its own calibration gives.
        """
        if L not in self.programs:
            check_context(L)
            if L not in self.calib:
                raise capra.CompileError(f"context {L}: this chip was calibrated for 1 to "
                                         f"{self.steps} tokens; make it with more steps")
            self.programs[L] = capra.compile_graph(build_graph(self.m, L), self.calib[L],
                                                   ranges=self.ranges)
        return self.programs[L]

    def generate(self, start, n):
        """(tokens [start, t1, .., tn], records): n greedy tokens, and one record per program run.

        A record has L, code, ext (external memory before the run), logits (floats) and tok.
        """
        return decode(self.m, self.program, start, n)


def decode(mdl, program, start, n):
    """What Chip.generate returns, for program(L) -> the program for L tokens in context."""
    check_token("start", start)
    check_count("n", n)
    tokens = [start]
    records = []
    kc, vc = [], []
    for L in range(1, n + 1):
        P = program(L)
        ext = capra.ext_image(P, step_inputs([mdl["E"][tokens[-1]]], kc, vc))
        out = capra.run_image(P, ext)
        tok = out["tok"][0][0][0]
        records.append({"L": L, "code": P.code, "ext": ext, "logits": out["logits"][1][0],
                        "tok": tok})
        kc, vc = kc + out["k_new"][1], vc + out["v_new"][1]
        tokens.append(tok)
    return tokens, records
