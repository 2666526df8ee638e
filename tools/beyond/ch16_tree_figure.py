"""The picture of a tree block: its guesses as a tree, and which row sees what."""

from svg import BLACK, BLUE, GREY, LIGHT, MIDDLE, ORANGE, Picture
from tree_lm import paths

SMALL = 12
CELL = 26                                       # of the mask, a row and a column
NARROW = 12                                     # a cached column
TOP = 108
LEFT = 24
DEPTH = 62                                      # from a guess to the next


def block(entry):
    """The Picture of a block {c, parents, tokens, path}: a line a row, the tree beside its mask."""
    c, parents, tokens, path = (entry[key] for key in ("c", "parents", "tokens", "path"))
    m = len(parents)
    ways = paths(parents)
    deepest = max(map(len, ways))
    mask = LEFT + DEPTH * deepest + 100
    new = mask + NARROW * c                     # where the block's own columns begin
    width = new + CELL * m + 24
    picture = Picture("ch16_tree", max(width, 640), TOP + CELL * m + 88,
                      f"A tree of {m} rows behind {c} cached ones", words(entry))
    picture.text(20, 32, f"One block, {m} rows behind {c}: a tree of guesses and its mask", size=15,
                 bold=True)
    picture.text(LEFT, 62, "the last token and the guesses", size=SMALL, fill=GREY)
    picture.text(mask, 62, f"what each row sees: {c} cached rows, then the block's {m}", size=SMALL,
                 fill=GREY)
    for row in range(m):
        draw_guess(picture, row, ways, parents, tokens, path)
        y = TOP + CELL * row
        picture.text(mask - 12, y + 17, f"row {row}", size=SMALL, anchor="end",
                     bold=row in path, fill=BLACK if row in path else GREY)
        for column in range(c):
            picture.rect(mask + NARROW * column + 1, y + 1, NARROW - 2, CELL - 2, fill=LIGHT)
        for column in range(m):
            draw_cell(picture, new + CELL * column, y, column in ways[row], row in path)
    for column in range(m):
        picture.text(new + CELL * column + CELL / 2, TOP - 8, str(column), size=SMALL,
                     anchor="middle")
    draw_legend(picture, LEFT, TOP + CELL * m + 34, path, c)
    return picture


def words(entry):
    """The picture in words."""
    lines = [f"Row {row}, token {token}, sees the cache and rows {', '.join(map(str, way))}."
             for row, (token, way) in enumerate(zip(entry["tokens"], paths(entry["parents"])))]
    return " ".join(lines) + f" Accepted: rows {', '.join(map(str, entry['path']))}."


def draw_guess(picture, row, ways, parents, tokens, path):
    """A token at its depth, and the line from its parent."""
    x, y = LEFT + DEPTH * (len(ways[row]) - 1), TOP + CELL * row
    kept = row in path
    if parents[row] is not None:
        above = TOP + CELL * parents[row] + CELL / 2 + 10
        from_x = x - DEPTH + 15
        picture.polyline([(from_x, above), (from_x, y + CELL / 2), (x, y + CELL / 2)],
                         stroke=BLUE if kept else MIDDLE, stroke_width=3 if kept else 1.2)
    picture.rect(x, y + 3, 30, CELL - 6, fill=BLUE if kept else "#ffffff",
                 stroke=BLUE if kept else MIDDLE, rx=4, stroke_width=1.4,
                 stroke_dasharray="none" if kept else "4 3")
    picture.text(x + 15, y + 18, str(tokens[row]), size=SMALL, anchor="middle", bold=kept,
                 fill="#ffffff" if kept else GREY)


def draw_cell(picture, x, y, seen, kept):
    """A square of the mask: full where the row sees the column, else a zero."""
    colour = BLUE if kept else ORANGE
    picture.rect(x + 1, y + 1, CELL - 2, CELL - 2, fill=colour if seen else "#ffffff", stroke=LIGHT)
    if not seen:
        picture.text(x + CELL / 2, y + 17, "0", size=SMALL, anchor="middle", fill=MIDDLE)


def draw_legend(picture, x, y, path, c):
    for colour, text in ((LIGHT, "cached"), (BLUE, "seen by a row of the accepted path"),
                         (ORANGE, "seen by another row")):
        picture.rect(x, y - 11, 14, 14, fill=colour, stroke=LIGHT)
        picture.text(x + 20, y, text, size=SMALL)
        x += 36 + 7 * len(text)
    kept = ", ".join(map(str, path))
    picture.text(LEFT, y + 28, f"Rows {kept} are accepted. The cache keeps them and no other, as "
                 f"rows {c} to {c + len(path) - 1}.", size=SMALL)
