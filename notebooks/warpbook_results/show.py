"""The output of a notebook's cell: figures, tables and one-line notes."""


class Note:
    """One line of text."""

    def __init__(self, text):
        self.text = text

    def _repr_mimebundle_(self, **_):
        return {"text/markdown": self.text, "text/plain": self.text}


def missing(what, *commands):
    """The line that stands where data are missing: what, and which commands make them."""
    steps = ", then ".join(f"`{command}`" for command in commands)
    return Note(f"**Not recorded:** {what}. Made by {steps}.")


class Table:
    """A table; cells are text or numbers."""

    def __init__(self, head, rows):
        self.head = list(head)
        self.rows = [[str(cell) for cell in row] for row in rows]

    def markdown(self):
        lines = [self.head, ["---"] * len(self.head), *self.rows]
        safe = [[cell.replace("|", "\\|").replace("\n", " ") for cell in line] for line in lines]
        return "\n".join("| " + " | ".join(line) + " |" for line in safe)

    def _repr_mimebundle_(self, **_):
        return {"text/markdown": self.markdown(), "text/plain": self.markdown()}


def summary(results):
    """How many records there are and whose; and the lines that could not be read."""
    rows = []
    for source in results.sources():
        mine = results.of(source)
        days = sorted({r.time[:10] for r in mine})
        when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
        rows.append([source.label, len(mine), when, ", ".join(sorted({r.path for r in mine}))])
    things = [Table(["numbers", "records", "from", "in"], rows)]
    things += [Note(f"**Not readable:** {problem}") for problem in results.problems]
    if not any(source.yours for source in results.sources()):
        line = "**No results of your own yet:** each `bazel run //labs/NN_topic:bench` adds some to `results/`."
        things.append(Note(line))
    return things


def show(*things):
    """Displays figures, tables and notes, and what lists hold of them, one below the other."""
    from IPython.display import display

    for thing in things:
        if isinstance(thing, (list, tuple)):
            show(*thing)
        else:
            display(thing)


def number(value, digits=3):
    """A number with few digits, as people write it: 1234, 12.3, 0.0456."""
    if value == 0:
        return "0"
    text = f"{value:#.{digits}g}".rstrip(".")
    if "e" in text:
        text = f"{value:,.0f}" if abs(value) >= 1 else f"{value:.2e}"
    return text
