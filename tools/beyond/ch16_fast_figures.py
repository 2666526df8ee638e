"""The pictures of ch16_fast.py and ch16_best_k.py, drawn from their rows."""

import svg
from ga2_isa import TILE
from svg import BLACK, BLUE, GREY, LIGHT, MIDDLE, ORANGE, SKY, VERMILION, Picture, Scale

SMALL = 12
UNITS = (("matrix", BLUE, None), ("dma", ORANGE, 45), ("vector", SKY, -45), ("fetch", GREY, None))


# ---- ch16_fast.svg -------------------------------------------------------------------------------

BAR = 15                                        # height of a bar
GROUP = 2 * BAR + 22                            # from one run to the next
LEFT = 196
RIGHT = 770
TOP = 84


def bars(rows):
    """Cycles of each run by unit, the chapter's programs above the three improvements together."""
    shown = [row for row in rows if row["k"] is not None]
    plain = rows[0]["units"]["chapter"]["total"]
    words = "; ".join(f"{row['run']}: {row['units']['chapter']['total']:,} cycles, improved "
                      f"{row['units']['all']['total']:,}, limit {row['limit']:,}" for row in shown)
    bottom = TOP + GROUP * len(shown)
    picture = Picture("ch16_fast", 840, bottom + 62, "Cycles for 32 tokens by unit",
                      f"{words}. One token a program takes {plain:,} cycles.")
    picture.text(20, 32, "32 tokens: the chapter's programs, and the improved ones below", size=15,
                 bold=True)
    fills = legend(picture)
    x = Scale(0, svg.round_up(plain, 50000), LEFT, RIGHT)
    for tick in x.ticks(50000):
        picture.line(x(tick), TOP - 8, x(tick), bottom, stroke=LIGHT)
        picture.text(x(tick), bottom + 18, f"{tick:,}", size=SMALL, anchor="middle", fill=GREY)
    picture.line(x(plain), TOP - 8, x(plain), bottom, stroke=BLACK, stroke_dasharray="5 3")
    picture.text(x(plain), bottom + 34, "one by one", size=SMALL, anchor="middle")
    for number, row in enumerate(shown):
        y = TOP + number * GROUP
        picture.text(LEFT - 10, y + BAR + 4, row["run"], size=SMALL, anchor="end")
        for form, dy in (("chapter", 0), ("all", BAR + 2)):
            stack(picture, x, y + dy, row["units"][form], row["speedup"][form], fills)
        picture.line(x(row["limit"]), y - 3, x(row["limit"]), y + 2 * BAR + 5, stroke=VERMILION,
                     stroke_width=2.5)
    picture.text((LEFT + RIGHT) / 2, bottom + 40, "cycles", size=SMALL, anchor="middle")
    return picture


def legend(picture):
    """Draw the legend; returns {unit: fill}."""
    fills = {}
    at = 20
    for unit, colour, angle in UNITS:
        fills[unit] = colour if angle is None else picture.hatch(colour, angle)
        picture.rect(at, 48, 14, 12, fill=fills[unit])
        name = "fetch, issue" if unit == "fetch" else unit
        picture.text(at + 20, 58, name, size=SMALL)
        at += 44 + 7 * len(name)
    picture.line(at + 6, 46, at + 6, 62, stroke=VERMILION, stroke_width=2.5)
    picture.text(at + 14, 58, "limit: the weights loaded and multiplied, nothing else", size=SMALL)
    return fills


def stack(picture, x, y, units, speedup, fills):
    """One bar, a piece per unit, its speedup behind it."""
    at = 0
    for unit, _, _ in UNITS:
        picture.rect(x(at), y, x(at + units[unit]) - x(at), BAR, fill=fills[unit])
        at += units[unit]
    picture.text(x(at) + 6, y + BAR - 3, f"{speedup:.2f}x", size=SMALL, halo=True)


# ---- ch16_best_k.svg -----------------------------------------------------------------------------

PANEL = 320                                     # width of one target's panel
CURVES = (                                      # key of a point, words, colour, marker, dash
    ("fast", "improved", BLUE, "circle", "none"),
    ("formula", "the formula for it", ORANGE, "diamond", "3 3"),
    ("chapter", "the chapter's programs", MIDDLE, "square", "9 3"),
)


def sweeps(panels):
    """Speedup against k, a panel per target; panels: {title: [{k, fast, formula, chapter}]}."""
    points = [point for sweep in panels.values() for point in sweep]
    most = svg.round_up(max(point[key] for point in points for key, *_ in CURVES), 0.5)
    words = "; ".join("{}: best {fast:.2f} at k = {k}".format(title, **best_of(sweep))
                      for title, sweep in panels.items())
    picture = Picture("ch16_best_k", 24 + PANEL * len(panels), 400, "Speedup against k", words)
    picture.text(20, 32, "Speedup against k, the guesses in a block", size=15, bold=True)
    at = 20
    for _, name, colour, marker, dash in CURVES:
        picture.line(at, 52, at + 28, 52, stroke=colour, stroke_width=2, stroke_dasharray=dash)
        picture.marker(marker, at + 14, 52, fill=colour)
        picture.text(at + 36, 56, name, size=SMALL)
        at += 66 + 7 * len(name)
    for number, (title, sweep) in enumerate(panels.items()):
        panel(picture, 24 + number * PANEL, title, sweep, most)
    return picture


def best_of(sweep):
    """The fastest point of a sweep."""
    return max(sweep, key=lambda point: point["fast"])


def panel(picture, left, title, sweep, most):
    """One target's curves, the k whose blocks fill their row tiles marked."""
    x = Scale(0, len(sweep) + 0.5, left + 26, left + PANEL - 20)
    y = Scale(0, most, 346, 96)
    picture.text(left, 82, title, size=13, bold=True)
    for tick in y.ticks(0.5):
        picture.line(x.first, y(tick), x.last, y(tick), stroke=LIGHT)
        picture.text(x.first - 6, y(tick) + 4, f"{tick:.1f}", size=SMALL, anchor="end", fill=GREY)
    for k in (point["k"] for point in sweep):
        full = (k + 1) % TILE == 0
        if full:
            picture.line(x(k), y(0), x(k), y(most), stroke=LIGHT, stroke_dasharray="2 3")
        picture.text(x(k), 364, str(k), size=SMALL, anchor="middle", bold=full,
                     fill=BLACK if full else GREY)
    for key, _, colour, marker, dash in reversed(CURVES):
        places = [(x(point["k"]), y(point[key])) for point in sweep]
        picture.polyline(places, stroke=colour, stroke_width=2, stroke_dasharray=dash)
        for place in places:
            picture.marker(marker, *place, size=4, fill=colour)
    best = best_of(sweep)
    picture.text(x(best["k"]), y(best["fast"]) - 10, f"{best['fast']:.2f}x", size=SMALL,
                 anchor="middle", bold=True, halo=True)
    picture.text((x.first + x.last) / 2, 384, f"k (bold: full row tiles of {TILE})", size=SMALL,
                 anchor="middle")
