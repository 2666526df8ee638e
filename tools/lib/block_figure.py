"""Blocks of speculative decoding as pictures: guesses above the target's choices, what comes out.

Figure 16.1 shows two of them, `wrapped` a whole run.
"""

from collections import namedtuple

from svg import BLACK, BLUE, GREY, MIDDLE, ORANGE, VERMILION, Picture

SMALL = 12
CELL = 46                                       # width of a token's box
BOX = 34                                        # its height

Look = namedtuple("Look", "fill border width dash ink")
LOOK = {
    "last": Look("#ffffff", BLACK, 2, "none", BLACK),
    "kept": Look(BLUE, BLUE, 1.4, "none", "#ffffff"),
    "free": Look(ORANGE, BLACK, 2, "none", BLACK),
    "refused": Look("#ffffff", VERMILION, 2, "4 3", VERMILION),
    "unused": Look("#ffffff", MIDDLE, 1.4, "4 3", GREY),
}


def draw_block(picture, left, top, number, entry):
    """One block: a column per position, the last token's position first; its head at y = top."""
    block, choice, accepted, new = (entry[key] for key in ("block", "choice", "accepted", "new"))
    guesses = len(block) - 1
    picture.text(left, top, f"Block {number}: {accepted} of {guesses} accepted", bold=True)
    tokens = "token" if len(new) == 1 else "tokens"
    picture.text(left, top + 18, f"{len(new)} new {tokens} from one pass", size=SMALL, fill=GREY)
    picture.text(left + CELL / 2, top + 46, "last", size=SMALL, anchor="middle", fill=GREY)
    picture.text(left + CELL * (1 + guesses / 2), top + 46, f"{guesses} guesses", size=SMALL,
                 anchor="middle", fill=GREY)
    for i, token in enumerate(block):
        kind = "last" if i == 0 else "kept" if i <= accepted else "unused"
        if i == accepted + 1:
            kind = "refused"
        draw_token(picture, left + i * CELL, top + 58, token, kind)
    for i, token in enumerate(choice):
        x = left + (i + 1) * CELL
        kind = "kept" if i < accepted else "free" if i == accepted else "unused"
        draw_token(picture, x, top + 126, token, kind)
        if i < min(accepted + 1, guesses):
            sign, colour = ("=", BLUE) if i < accepted else ("\u2260", VERMILION)
            picture.text(x + CELL / 2, top + 114, sign, size=16, anchor="middle", fill=colour,
                         bold=True)
    for i, token in enumerate(new):
        kind = "kept" if i < accepted else "free"
        draw_token(picture, left + (i + 1) * CELL, top + 194, token, kind)


def draw_token(picture, x, y, token, kind):
    """A token's box; its fill and its border say what became of it."""
    look = LOOK[kind]
    picture.rect(x + 3, y, CELL - 6, BOX, fill=look.fill, stroke=look.border, rx=4,
                 stroke_width=look.width, stroke_dasharray=look.dash)
    picture.text(x + CELL / 2, y + BOX / 2 + 5, str(token), size=15, anchor="middle", fill=look.ink,
                 bold=kind in ("kept", "free"))


def draw_legend(picture, x, y):
    """What the boxes mean, on one line."""
    for kind, words, width in (("kept", "accepted", 108), ("free", "the target's, free", 164),
                               ("refused", "refused", 104), ("unused", "not used", 104)):
        look = LOOK[kind]
        picture.rect(x, y - 12, 20, 15, fill=look.fill, stroke=look.border, rx=3,
                     stroke_width=look.width, stroke_dasharray=look.dash)
        picture.text(x + 28, y, words, size=SMALL)
        x += width


# ---- a whole run ---------------------------------------------------------------------------------

WIDTH = 960
LINE = 250                                      # height of a line of blocks
GAP = 42                                        # between two blocks


def wrapped(name, title, desc, entries):
    """The Picture of a run's blocks, as many on a line as fit; entries as of draw_block."""
    places = []                                 # (left, line) of each block
    left, line = 24, 0
    for entry in entries:
        width = (len(entry["block"]) + 1) * CELL
        if places and left + width > WIDTH:
            left, line = 24, line + 1
        places.append((left, line))
        left += width + GAP
    wide = max([WIDTH] + [24 + (len(entry["block"]) + 1) * CELL + 24 for entry in entries])
    picture = Picture(name, wide, 70 + (line + 1) * LINE + 20, title, desc)
    picture.text(24, 36, title, size=16, bold=True)
    for number, (entry, (left, line)) in enumerate(zip(entries, places), 1):
        draw_block(picture, left, 70 + line * LINE, number, entry)
    draw_legend(picture, 24, picture.height - 22)
    return picture
