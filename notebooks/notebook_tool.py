#!/usr/bin/env python3
"""Executes the notebooks without a browser.

usage: notebook_tool.py refresh FOLDER    run each notebook on the recorded results alone and save
                                          it with its outputs: what is committed
       notebook_tool.py html FOLDER OUT   run each on all results, yours among them, and write pages
"""

import os
import re
import sys
import tempfile
from pathlib import Path

import nbformat
from jupyter_client.manager import AsyncKernelManager
from jupyter_core.utils import run_sync
from nbclient import NotebookClient

NAMES = [
    "stage_timings",
    "roofline",
    "where_time_goes",
    "prediction_vs_measurement",
    "training",
]
TIMEOUT = 300  # seconds for a cell


def without_answers(text):
    """A handout with the prediction table of a fresh clone."""

    def blank(found):
        lines = found[0].split("\n")
        return "\n".join(
            (
                re.sub(r"^(\|(?:[^|\\]|\\.)*\|).*", r"\1 | |", line)
                if line.startswith("|") and "your prediction" not in line and "---" not in line
                else line
            )
            for line in lines
        )

    return re.sub(r"^## Predict first$.*?(?=^## |\Z)", blank, text, flags=re.M | re.S)


def pristine(root, folder):
    """Makes a workspace in `folder` with the project's recorded results and none of the reader's."""
    (folder / "notebooks").mkdir(parents=True)
    for name in ("results", "warpbook_results"):
        (folder / "notebooks" / name).symlink_to((root / "notebooks" / name).absolute())
    for path in (root / "labs").glob("*/README.md"):
        copy = folder / "labs" / path.parent.name / "README.md"
        copy.parent.mkdir(parents=True)
        copy.write_text(without_answers(path.read_text(encoding="utf-8")), encoding="utf-8")
    return folder


def execute(path, root):
    """The notebook with its outputs, run on the workspace `root`; raises the exception of a failing cell."""
    notebook = nbformat.read(path, as_version=4)
    os.environ["WARPBOOK_WORKSPACE"] = str(root)
    resources = {"metadata": {"path": str(path.parent)}}
    # A socket's path may have some hundred bytes, which a test's own folder can exceed.
    with tempfile.TemporaryDirectory(prefix="warpbook-") as folder:
        os.environ["JUPYTER_RUNTIME_DIR"] = folder
        sockets = {"transport": "ipc", "connection_file": f"{folder}/kernel.json"}
        manager = AsyncKernelManager(kernel_name="python3", **sockets)
        options = {"timeout": TIMEOUT, "resources": resources, "record_timing": False}
        try:
            NotebookClient(notebook, km=manager, **options).execute()
        finally:
            run_sync(manager.shutdown_kernel)(now=True)
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
    notebook.metadata["language_info"] = {"name": "python"}  # not the version that ran it
    return notebook


def execute_pristine(path, root):
    """The same on the recorded results only."""
    os.environ.pop("WARPBOOK_RESULTS", None)
    with tempfile.TemporaryDirectory() as folder:
        return execute(path, pristine(root, Path(folder) / "workspace"))


def refresh(folder):
    for name in NAMES:
        path = folder / f"{name}.ipynb"
        notebook = execute_pristine(path, folder.parent)
        part = path.with_suffix(".part")
        nbformat.write(notebook, part)
        part.replace(path)
        print(path)


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">
<style>
body {{ max-width: 1100px; margin: 2em auto; padding: 0 1em; line-height: 1.5;
  font-family: system-ui, sans-serif; color: #1f2328; background: #fffffe; }}
a {{ color: #0550ae; }} .anchor-link, .jp-InputPrompt, .jp-OutputPrompt, .prompt {{ display: none; }}
pre {{ overflow-x: auto; padding: .6em; background: #f2f4f7; }}
table {{ border-collapse: collapse; font-size: .85em; display: block; overflow-x: auto; }}
td, th {{ border: 1px solid #d8dee5; padding: .25em .6em; text-align: left; }}
@media (prefers-color-scheme: dark) {{
  body {{ color: #e6edf3; background: #0d1117; }} a {{ color: #6cb6ff; }}
  pre {{ background: #1a212a; }} td, th {{ border-color: #2d343d; }} }}
</style></head><body>
{body}
</body></html>
"""


def page(notebook, title):
    """A page that follows the reader's light or dark scheme, with the figures in it."""
    from nbconvert import HTMLExporter

    exporter = HTMLExporter(template_name="basic", embed_images=False)
    exporter.exclude_input_prompt = exporter.exclude_output_prompt = True
    body, _ = exporter.from_notebook_node(notebook)
    return _PAGE.format(title=title.replace("_", " "), body=body)


def html(folder, out):
    out.mkdir(parents=True, exist_ok=True)
    for name in NAMES:
        path = out / f"{name}.html"
        text = page(execute(folder / f"{name}.ipynb", folder.parent), name)
        path.write_text(
            text.replace(".ipynb)", ".html)").replace('.ipynb"', '.html"'), encoding="utf-8"
        )
        print(path)


def main(arguments):
    if len(arguments) == 2 and arguments[0] == "refresh":
        refresh(Path(arguments[1]).absolute())
    elif len(arguments) == 3 and arguments[0] == "html":
        html(Path(arguments[1]).absolute(), Path(arguments[2]).absolute())
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
