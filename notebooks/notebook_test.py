"""Executes one notebook on the recorded results and checks its output.

usage: notebook_test.py NOTEBOOK.ipynb
"""

import base64
import sys
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import expected
import matplotlib.pyplot  # noqa: F401  builds the cache of fonts before a cell can speak of it
import nbformat
import notebook_tool


def outputs(notebook):
    return [output for cell in notebook.cells for output in cell.get("outputs", [])]


def figures(notebook):
    """The data, caption lines and pictures of each figure."""
    found = []
    for output in outputs(notebook):
        about = output.get("metadata", {}).get("warpbook")
        if about:
            found.append((about, output["data"]))
    return found


def words(notebook):
    """Tables and notes, as text."""
    found = [o["data"].get("text/markdown", "") for o in outputs(notebook) if "data" in o]
    return [text for text in found if text]


class Notebook(unittest.TestCase):
    path = None

    @classmethod
    def setUpClass(cls):
        cls.root = Path(__file__).absolute().parent.parent
        cls.run_ = notebook_tool.execute_pristine(cls.path, cls.root)
        cls.saved = nbformat.read(cls.path, as_version=4)

    def test_says_nothing_but_figures_tables_and_notes(self):
        for output in outputs(self.run_):
            self.assertEqual(output["output_type"], "display_data", output)
        self.assertFalse([text for text in words(self.run_) if "Not readable" in text])

    def test_every_axes_holds_data(self):
        self.assertGreaterEqual(len(figures(self.run_)), 3)
        for about, _ in figures(self.run_):
            self.assertTrue(about["marks"], about)
            self.assertGreater(min(about["marks"]), 0, about)

    def test_figures_hold_as_many_marks_as_the_files_have_rows(self):
        held = {}
        for about, data in figures(self.run_):
            verb = data["text/plain"].split("\n")[1].split(" ")[0].strip(";").lower()
            held[about["title"], verb] = sum(about["marks"])
        wanted = expected.of(self.path.stem, self.root / "notebooks" / "results")
        self.assertTrue(wanted)
        for figure, marks in wanted.items():
            self.assertIn(figure, held)
            self.assertGreater(marks, 0, figure)
            self.assertEqual(held[figure], marks, figure)

    def test_every_figure_says_whose_numbers_it_shows(self):
        for about, data in figures(self.run_):
            title, first, rest = data["text/plain"].split("\n", 2)
            self.assertEqual(title, about["title"])
            self.assertRegex(first, "^(Measured|Modelled)\\b")
            self.assertRegex(first + rest, r"20\d\d-\d\d-\d\d")
            self.assertIn("notebooks/results/", rest)
            self.assertNotIn("your results", first)

    def test_pictures_are_whole(self):
        for about, data in figures(self.run_):
            picture = ElementTree.fromstring(data["image/svg+xml"])
            self.assertEqual(picture.get("aria-label"), about["title"])
            self.assertIn("prefers-color-scheme:dark", data["image/svg+xml"])
            self.assertNotRegex(
                data["image/svg+xml"], "(?i)(fill|stroke): *(#000000|black|#ffffff)"
            )
            self.assertEqual(base64.b64decode(data["image/png"])[:8], b"\x89PNG\r\n\x1a\n")

    def test_saved_outputs_are_those_of_the_recorded_results(self):
        how = "bazel run //notebooks:refresh, or git checkout if you saved a notebook with your results"
        self.assertEqual(len(outputs(self.saved)), len(outputs(self.run_)), how)
        self.assertEqual(words(self.saved), words(self.run_), how)
        for (old, _), (new, _) in zip(figures(self.saved), figures(self.run_), strict=True):
            self.assertEqual(old, new, how)


if __name__ == "__main__":
    Notebook.path = Path(sys.argv.pop(1)).absolute()
    unittest.main(verbosity=2, warnings="ignore")
