"""What the batteries of the compiler's operations share: make(seed) gives a random Case of one."""

import random

import capra
import capra_tests
import ga2_progs
import hw
from capra import CompileError, Graph
from comparing import assert_same
from ga2_isa import SPAD, Machine, cycle_counts
from quant import requant
from softmax_gold import softmax

BOUND = 0.40                                    # relative error of outputs, as for slice graphs


def check_rule(make, seeds, columns):
    """Problems of masked softmaxes, whose integers are worked out here from the chip's arithmetic.

    A row must hold the chip's softmax of the columns it sees, requantized, and zeros elsewhere.
    columns(seen, width): what the rows should see, from the node's `seen` and number of columns.
    """
    problems = []
    for seed in seeds:
        case = make(seed)
        P = capra.compile_graph(case.graph, case.calib, reuse=False, ranges=case.ranges)
        machine = capra.simulate(P, capra.ext_image(P, case.fresh[0]))
        for node in case.graph.nodes:
            if node.op != "masked_softmax":
                continue
            source = node.ins[0]
            scores = capra.read_tensor(P, machine, source)
            result = capra.read_tensor(P, machine, node.id)
            for row, got, seen in zip(scores, result,
                                      columns(node.attrs["seen"], node.shape[1])):
                exps = dict(zip(seen, softmax([row[j] for j in seen])))
                wanted = [requant(exps[j], *capra.multiplier(127 / 65536)) if j in exps else 0
                          for j in range(len(row))]
                if got != wanted:
                    problems.append(f"check_rule {seed}: masked_softmax {node.id} is not the rule's "
                                    f"in a row that sees {list(seen)}")
            if (P.scale[source], P.scale[node.id]) != (1 / 16, 1 / 127):
                problems.append(f"check_rule {seed}: masked_softmax {node.id}: scales "
                                f"{P.scale[source]} and {P.scale[node.id]}, not 1/16 and 1/127")
    return problems


def check_junk(make, seeds):
    """Problems of outputs that depend on what the scratchpad held before."""
    problems = []
    for seed in seeds:
        case = make(seed)
        R = random.Random(seed)
        for reuse in (True, False):
            P = capra.compile_graph(case.graph, case.calib, reuse=reuse, ranges=case.ranges)
            images = []
            for spad in ([0] * SPAD, [R.randrange(-2 ** 31, 2 ** 31) for _ in range(SPAD)]):
                machine = Machine(capra.ext_image(P, case.fresh[0]))
                machine.spad = spad
                images.append(machine.run(P.code).ext)
            if images[0] != images[1]:
                problems.append(f"check_junk {seed}: an output shows junk of the scratchpad "
                                f"(reuse={reuse})")
    return problems


def wrong_words(refused):
    """Problems of {name: (build, message)}: graphs accepted, or refused in other words."""
    return [f"check_errors: {name}: {refusal(build) or 'accepted'}"
            for name, (build, message) in refused.items() if refusal(build) != message]


def refusal(build):
    """What Capra says to the graph that build(g) makes; None where it compiles it."""
    g = Graph()
    try:
        build(g)
        capra.compile_graph(g, [capra_tests.ones(g)])
    except CompileError as error:
        return str(error)
    except Exception as fault:                  # not refused, but stumbled over
        return f"{type(fault).__name__}: {fault}"
    return None


def replay(test, make, seeds):
    """Replay the programs in both simulators: outputs and cycles must be the model's."""
    reason = hw.not_checked()
    if reason:
        test.skipTest(reason)
    programs = []
    for case in map(make, seeds):
        P = capra.compile_graph(case.graph, case.calib, ranges=case.ranges)
        programs.append((P.code, capra.ext_image(P, case.fresh[0])))
    records = [ga2_progs.record(code, ext) for code, ext in programs]
    for sim, ended in hw.replay(records).items():
        with test.subTest(simulator=sim):
            test.assertEqual(ended.status, 0, ended.output)
            assert_same(test, ended.counters, [cycle_counts(code) for code, _ in programs])
