"""Figures 16.1 to 16.6 as SVG, drawn from the JSON files that the chapter's scripts wrote.

    python3 tools/ch16_figures.py [--data DIR] [--out DIR]

    16.1  two blocks of example A side by side      16.4  one block against four steps, by unit
    16.2  the mask: keys each row's slice contains  16.5  measured speedup against k, per draft
    16.3  cycles of the seven runs                  16.6  derived speedup against k, per acceptance

Reads ch16_run.json, ch16_example_a.json and ch16_example_b.json in out/ (or in --data); writes
fig16_1.svg to fig16_6.svg. Every number in a picture is read or computed from those files.
"""

import paths

import argparse
import json
import sys
from collections import namedtuple
from pathlib import Path

import cli
import svg
from block_figure import BOX, CELL, draw_block, draw_legend
from svg import (BLACK, BLUE, GREEN, GREY, LIGHT, MIDDLE, ORANGE, PURPLE, SKY, VERMILION, Picture,
                 Scale)

RUN = "ch16_run"
EXAMPLE_A = "ch16_example_a"
EXAMPLE_B = "ch16_example_b"
SCRIPT = {RUN: "tools/ch16_run.py", EXAMPLE_A: "tools/ch16_example_a.py",
          EXAMPLE_B: "tools/ch16_example_b.py"}

SMALL = 12
STYLES = tuple(zip((BLUE, GREEN, ORANGE, PURPLE, VERMILION), svg.MARKERS,
                   ("none", "9 3", "3 3", "9 3 3 3", "14 4")))


# ---- 16.1 ----------------------------------------------------------------------------------------

def blocks(data):
    """Two blocks: the first with every guess accepted, and the first with not all."""
    trace = data["trace"]
    full = next(i for i, entry in enumerate(trace) if entry["accepted"] == len(entry["block"]) - 1)
    short = next(i for i, entry in enumerate(trace) if entry["accepted"] < len(entry["block"]) - 1)
    shown = [(i + 1, trace[i]) for i in sorted((full, short))]
    words = "; ".join(f"block {number}: guesses {spaced(entry['block'][1:])}, choices "
                      f"{spaced(entry['choice'])}, {entry['accepted']} accepted"
                      for number, entry in shown)
    width = 128 + sum((len(entry["block"]) + 1) * CELL + 42 for _, entry in shown)
    picture = Picture("fig16_1", width, 356, "Figure 16.1: two blocks of example A",
                      f"Guesses stand above the target's choices for the same position. {words}.")
    picture.text(24, 36, "Two blocks of example A", size=16, bold=True)
    for y, words in ((128, "the block"), (196, "target's choices"), (264, "new tokens")):
        picture.text(24, y + BOX / 2 + 4, words)
    left = 146
    for number, entry in shown:
        draw_block(picture, left, 70, number, entry)
        left += (len(entry["block"]) + 1) * CELL + 42
    draw_legend(picture, 24, 333)
    return picture


# ---- 16.2 ----------------------------------------------------------------------------------------

def mask(data):
    """Which of the cached rows and of the block's own rows each row of the block sees."""
    cached = data["mask"]["cached"]
    rows = data["mask"]["rows"]
    columns = max(first + count for row in rows for first, count in (row["keys"],))
    size = 44
    left, top = 168, 116
    picture = Picture(
        "fig16_2", left + columns * size + 190, top + len(rows) * size + 62,
        "Figure 16.2: the mask made of slices",
        f"{cached} cached rows and a block of {len(rows)}. " + "; ".join(
            f"row {i} sees keys {first} to {first + count - 1}"
            for i, (first, count) in enumerate(row["keys"] for row in rows)) + ".")
    picture.text(24, 36, f"Keys each row of the block sees ({cached} cached rows, block of "
                 f"{len(rows)})", size=16, bold=True)
    for first, end, words in ((0, cached, "cached rows"), (cached, columns, "rows of the block")):
        x1, x2 = left + first * size + 4, left + end * size - 4
        picture.text((x1 + x2) / 2, 74, words, size=SMALL, anchor="middle")
        picture.polyline([(x1, 87), (x1, 81), (x2, 81), (x2, 87)], stroke=GREY)
    for j in range(columns):
        picture.text(left + (j + 0.5) * size, top - 10, str(j), size=SMALL, anchor="middle",
                     fill=GREY)
    for i, row in enumerate(rows):
        draw_mask_row(picture, left, top + i * size, size, i, row, cached, columns)
    y = top + len(rows) * size + 34
    x = left
    for colour, words in ((SKY, "seen, from the cache"), (ORANGE, "seen, from the block")):
        picture.rect(x, y - 12, 15, 15, fill=colour, stroke=BLACK)
        if colour == ORANGE:
            picture.circle(x + 7.5, y - 4.5, 3)
        picture.text(x + 23, y, words, size=SMALL)
        x += 164
    picture.rect(x, y - 12, 15, 15, fill="#ffffff", stroke=MIDDLE, stroke_dasharray="3 3")
    picture.text(x + 23, y, "not in the slice", size=SMALL)
    return picture


def draw_mask_row(picture, left, y, size, i, row, cached, columns):
    first, count = row["keys"]
    name = "row 0: last token" if i == 0 else f"row {i}: guess {i}"
    picture.text(left - 14, y + size / 2 + 5, name, anchor="end")
    for j in range(columns):
        x = left + j * size
        if not first <= j < first + count:
            picture.rect(x + 3, y + 3, size - 6, size - 6, fill="#ffffff", stroke=MIDDLE, rx=3,
                         stroke_dasharray="3 3")
            continue
        picture.rect(x + 3, y + 3, size - 6, size - 6, fill=SKY if j < cached else ORANGE,
                     stroke=BLACK, rx=3)
        if j >= cached:
            picture.circle(x + size / 2, y + size / 2, 4)
    picture.text(left + columns * size + 14, y + size / 2 + 5,
                 f"slice {first} \u2026 {first + count - 1}: {count} keys", size=SMALL)


# ---- 16.3 ----------------------------------------------------------------------------------------

def runs(rows):
    """A bar for the cycles of each of the seven runs."""
    measured = all(row["rtl_cycles"] is not None for row in rows)
    cycles = [row["rtl_cycles"] if measured else row["model_cycles"] for row in rows]
    unit = "RTL" if measured else "model"
    left, top, pitch, bar = 214, 64, 34, 22
    height = top + pitch * len(rows) + 62
    picture = Picture(
        "fig16_3", 760, height, "Figure 16.3: cycles of the seven runs",
        f"Clock cycles ({unit}) for 32 tokens. " + "; ".join(
            f"{row['run']}: {count:,}" for row, count in zip(rows, cycles)) + ".")
    picture.text(24, 36, "Cycles for 32 tokens", size=16, bold=True)
    scale = Scale(0, svg.round_up(max(cycles), 50000), left, 610)
    bottom = top + pitch * len(rows) + 2
    for tick in scale.ticks(50000):
        picture.line(scale(tick), top - 4, scale(tick), bottom, stroke=LIGHT)
        picture.text(scale(tick), bottom + 18, f"{tick:,}", size=SMALL, anchor="middle")
    picture.text((left + 610) / 2, bottom + 42, f"clock cycles ({unit})", anchor="middle")
    stripes = picture.hatch(BLUE, 45)
    for i, (row, count) in enumerate(zip(rows, cycles)):
        y = top + i * pitch + (pitch - bar) / 2
        fill = "#8a8a86" if row["blocks"] is None else stripes
        picture.text(left - 12, y + bar / 2 + 5, row["run"], anchor="end")
        picture.rect(left, y, scale(count) - left, bar, fill=fill, stroke=BLACK)
        picture.text(scale(count) + 8, y + bar / 2 + 5, f"{count:,}", size=SMALL, bold=True)
        picture.text(736, y + bar / 2 + 5, f"{row['speedup']:.2f}\u00d7", anchor="end")
    picture.line(left, top - 4, left, bottom)
    picture.text(736, top - 12, "speedup", size=SMALL, anchor="end", fill=GREY)
    return picture


# ---- 16.4 ----------------------------------------------------------------------------------------

def block_cost(data):
    """One verifier block against the single steps it stands for, stacked by unit."""
    sums = [sum(column) for column in zip(*data["single"])]
    bars = ((f"one block of {len(data['mask']['rows'])}", by_unit(data["verify"])),
            (f"{len(data['single'])} single steps", by_unit(sums)))
    totals = [sum(parts.values()) for _, parts in bars]
    left, right, top, bar = 150, 640, 66, 44
    picture = Picture(
        "fig16_4", 760, 338, "Figure 16.4: cost of one block against the steps it stands for",
        "Clock cycles by unit. " + "; ".join(
            f"{name}: {total:,} (" + ", ".join(f"{unit} {count:,}" for unit, count in parts.items())
            + ")" for (name, parts), total in zip(bars, totals)) + ".")
    picture.text(24, 36, f"One block: {totals[0]:,} cycles; the steps it stands for: {totals[1]:,}",
                 size=16, bold=True)
    fills = dict(zip(bars[0][1], (BLUE, picture.hatch(ORANGE, 45), picture.hatch(GREEN, -45, 5),
                                  "#ffffff")))
    scale = Scale(0, svg.round_up(max(totals), 5000), left, right)
    bottom = top + 2 * bar + 36
    for tick in scale.ticks(5000):
        picture.line(scale(tick), top - 4, scale(tick), bottom, stroke=LIGHT)
        picture.text(scale(tick), bottom + 18, f"{tick:,}", size=SMALL, anchor="middle")
    picture.text((left + right) / 2, bottom + 40, "clock cycles", anchor="middle")
    for i, ((name, parts), total) in enumerate(zip(bars, totals)):
        y = top + 6 + i * (bar + 18)
        picture.text(left - 12, y + bar / 2 + 5, name, anchor="end")
        done = 0
        for unit, count in parts.items():
            picture.rect(scale(done), y, scale(done + count) - scale(done), bar, fill=fills[unit],
                         stroke=BLACK)
            done += count
        picture.text(scale(total) + 9, y + bar / 2 + 5, f"{total:,}", bold=True)
    picture.line(left, top - 4, left, bottom)
    draw_unit_legend(picture, left, bottom + 74, bars, fills)
    return picture


def by_unit(five):
    """{unit: cycles} of the chip's five counters; what no unit was busy in is fetch and issue."""
    total, matrix, dma, vector, _ = five
    return {"matrix": matrix, "DMA": dma, "vector": vector,
            "fetch, issue": total - matrix - dma - vector}


def draw_unit_legend(picture, x, y, bars, fills):
    """The units as columns, with the cycles of both bars below their names."""
    for i, (name, _) in enumerate(bars):
        picture.text(x - 12, y + 22 * (i + 1), name, size=SMALL, anchor="end", fill=GREY)
    for j, (unit, fill) in enumerate(fills.items()):
        column = x + j * 126
        picture.rect(column, y - 12, 18, 15, fill=fill, stroke=BLACK)
        picture.text(column + 26, y, unit, size=SMALL)
        for i, (_, parts) in enumerate(bars):
            picture.text(column + 26, y + 22 * (i + 1), f"{parts[unit]:,}", size=SMALL)


# ---- 16.5 and 16.6 -------------------------------------------------------------------------------

Line = namedtuple("Line", "name k speedup best_k")

def measured_speedup(data):
    """The speedup on the chip against k, a line per draft."""
    lines = {}
    for row in data["grid"]:
        lines.setdefault(row["noise"], []).append((row["k"], row["speedup"]))
    picture = Picture(
        "fig16_5", 720, 430, "Figure 16.5: measured speedup against the number of guesses",
        "A line per noise in the draft. " + "; ".join(
            f"noise {noise}: " + ", ".join(f"{value:.2f} at k = {k}" for k, value in points)
            for noise, points in lines.items()) + ".")
    picture.text(24, 36, f"Measured: {data['tokens']} tokens of the structured model", size=16,
                 bold=True)
    lines = [Line(f"noise {noise}", *zip(*points), None) for noise, points in lines.items()]
    draw_lines(picture, lines, tick=0.5)
    return picture


def derived_speedup(data):
    """The derived speedup against k, a line per acceptance rate, the best k of each ringed."""
    curves = data["serve"]["curves"]
    cost = curves[0]["c"]
    picture = Picture(
        "fig16_6", 720, 430, "Figure 16.6: derived speedup against the number of guesses",
        f"E / (1 + k c) for a draft that costs c = {cost} of the target; derived, not measured. "
        + "; ".join(f"a = {curve['alpha']}: largest, {max(curve['speedup']):.2f}, at k = "
                    f"{curve['best_k']}" for curve in curves) + ".")
    words = f"Derived, not measured: a draft that costs {100 * cost:.0f} % of the target"
    picture.text(24, 36, words, size=16, bold=True)
    lines = [Line(f"a = {curve['alpha']}", curve["k"], curve["speedup"], curve["best_k"])
             for curve in curves]
    draw_lines(picture, lines, tick=1)
    return picture


def draw_lines(picture, lines, tick):
    """Speedup against k: axes, the line of plain decoding, and the given lines; best k ringed."""
    ks = lines[0].k
    across = Scale(ks[0], ks[-1], 92, 580)
    up = Scale(0, svg.round_up(max(max(line.speedup) for line in lines), tick), 360, 64)
    for value in up.ticks(tick):
        picture.line(78, up(value), 594, up(value), stroke=LIGHT)
        picture.text(70, up(value) + 4, f"{value:.1f}\u00d7", size=SMALL, anchor="end")
    for k in ks:
        picture.line(across(k), 360, across(k), 365)
        picture.text(across(k), 382, str(k), size=SMALL, anchor="middle")
    picture.line(78, 360, 594, 360)
    picture.text((78 + 594) / 2, 408, "k, guesses a block", anchor="middle")
    picture.upright(30, 212, "speedup over plain decoding")
    picture.line(78, up(1), 594, up(1), stroke=BLACK, stroke_dasharray="2 4", stroke_width=1.4)
    picture.text(602, up(1) + 4, "plain decoding", size=SMALL, fill=GREY)
    for line, (colour, marker, dash) in zip(lines, STYLES):
        places = [(across(k), up(value)) for k, value in zip(line.k, line.speedup)]
        picture.polyline(places, stroke=colour, stroke_width=2.2, stroke_dasharray=dash)
        for x, y in places:
            picture.marker(marker, x, y, fill=colour)
        x, y = places[-1]
        picture.text(602, y + 4, line.name, size=SMALL, bold=True)
        if line.best_k:
            best = line.speedup[line.k.index(line.best_k)]
            x, y = across(line.best_k), up(best)
            picture.circle(x, y, 10, fill="none", stroke=BLACK, stroke_width=1.6)
            picture.text(x, y - 17, f"k = {line.best_k}: {best:.2f}\u00d7", size=SMALL,
                         anchor="middle", halo=True)


# ---- the script ----------------------------------------------------------------------------------

FIGURES = (
    ("fig16_1", EXAMPLE_A, blocks),
    ("fig16_2", EXAMPLE_A, mask),
    ("fig16_3", RUN, runs),
    ("fig16_4", EXAMPLE_A, block_cost),
    ("fig16_5", EXAMPLE_B, measured_speedup),
    ("fig16_6", EXAMPLE_B, derived_speedup),
)


def draw(folder):
    """{name: SVG text} of all figures, from the JSON files in `folder`."""
    data = {name: read(folder, name) for name in SCRIPT}
    return {name: figure(data[source]).render() for name, source, figure in FIGURES}


def read(folder, name):
    """The JSON file that one of the scripts wrote."""
    path = folder / f"{name}.json"
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise cli.UserError(f"cannot read {path}: {error.strerror}; run python3 {SCRIPT[name]} "
                            "first") from error
    except ValueError as error:
        raise cli.UserError(f"{path} is not JSON ({error}); run python3 {SCRIPT[name]} "
                            "again") from error


def spaced(tokens):
    return " ".join(str(token) for token in tokens)


def main(argv=None):
    args = arguments(argv)
    for name, text in draw(args.data).items():
        cli.write_text(args.out / f"{name}.svg", text)
        print(args.out / f"{name}.svg")
    return 0


def arguments(argv):
    parser = argparse.ArgumentParser(
        description="Draw figures 16.1 to 16.6 from the recorded JSON files.")
    parser.add_argument("--data", type=Path, default=cli.OUT, metavar="DIR",
                        help="folder of the JSON files (default out/)")
    parser.add_argument("--out", type=Path, default=cli.OUT, metavar="DIR",
                        help="folder for the figures (default out/)")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(cli.run(main))
