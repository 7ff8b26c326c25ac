"""Tests of reading and drawing, on small made-up workspaces, without a Jupyter kernel."""

import contextlib
import io
import json
import math
import os
import struct
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from unittest import mock

import fold_stacks
import notebook_tool
import random_llama2
import warpbook_results as wb
from PIL import Image
from warpbook_results import answers, counts, handouts, predictions, profiles, rooflines

ROOT = Path(__file__).absolute().parent.parent


def row(**changes):
    """A line of bench.jsonl as common/bench/record.c writes it."""
    raw = {
        "schema": 1,
        "time": "2026-01-02T03:04:05Z",
        "commit": "0123456789abcdef",
        "lab": "02_gpu_matmul",
        "subject": "labs",
        "stage": "v1_thread_an_output",
        "op": "matmul",
        "shape": "1x5632x2048",
        "dtype": "fp32",
        "device": {"kind": "gpu", "name": "NVIDIA Example", "modelled": False, "threads": 1},
        "ms": {"min": 1.0, "median": 2.0, "max": 3.0, "runs": 5},
        "bytes": 4e6,
        "flops": 2e6,
        "gb_per_s": 2.0,
        "gflop_per_s": 1.0,
        "peer": None,
        "peer_ratio": None,
        "figure": None,
        "figure_value": None,
    }
    raw.update(changes)
    return raw


def ms(median):
    return {"min": median, "median": median, "max": median, "runs": 5}


CPU = {"kind": "cpu", "name": "Example CPU", "modelled": False, "threads": 2}
SIMT = {"kind": "gpu", "name": "simt:h200", "modelled": True, "threads": 1}


@contextlib.contextmanager
def own(lines, readme=None):
    """A workspace whose only results are the reader's own."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "results").mkdir()
        text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
        (root / "results" / "bench.jsonl").write_text(text + "\n")
        if readme:
            (root / "labs" / "02_gpu_matmul").mkdir(parents=True)
            (root / "labs" / "02_gpu_matmul" / "README.md").write_text(readme)
        with mock.patch.dict(os.environ, {"WARPBOOK_WORKSPACE": folder}):
            os.environ.pop("WARPBOOK_RESULTS", None)
            yield wb.load()


class Records(unittest.TestCase):
    def test_reads_a_record(self):
        with own([row(peer="cuBLAS 13", peer_ratio=0.5)]) as results:
            (r,) = results
        self.assertEqual((r.ms, r.shape, r.device), (2.0, "1x5632x2048", "NVIDIA Example"))
        self.assertEqual((r.gb_per_s, r.gflop_per_s, r.peer_ms), (2.0, 1.0, 1.0))
        self.assertEqual(r.source.label, "measured on NVIDIA Example (your results)")

    def test_lines_that_are_none_are_named_and_left_out(self):
        wrong = ["{", "[1]", json.dumps(row(schema=2)), json.dumps(row(ms={"median": None}))]
        wrong += [json.dumps(row(ms=3)), json.dumps(row(ms=ms(-1.0))), '{"schema": 1}']
        with own([row(), *wrong, row()]) as results:
            self.assertEqual(len(results), 2)
            self.assertEqual(len(results.problems), len(wrong))
            for number, problem in enumerate(results.problems, 2):
                self.assertTrue(problem.startswith(f"results/bench.jsonl:{number}: "), problem)
            self.assertIn("schema 2", results.problems[2])

    def test_missing_fields_are_null(self):
        raw = row()
        for name in ("peer", "peer_ratio", "figure", "figure_value", "bytes", "flops", "commit"):
            del raw[name]
        del raw["device"]["modelled"]
        with own([raw]) as results:
            (r,) = results
        self.assertEqual((r.bytes, r.gb_per_s, r.peer_ms, r.value), (None, None, None, None))
        self.assertFalse(r.source.modelled)

    def test_measured_and_modelled_are_two_sources(self):
        with own([row(), row(device=SIMT), row(device=CPU)]) as results:
            labels = [source.label for source in results.sources()]
        self.assertEqual(len(labels), 2)  # the CPU is the GPU's host
        self.assertIn("modelled by simt for an H200, no GPU was timed (your results)", labels)

    def test_a_cpu_beside_simt_is_a_source_of_its_own(self):
        with own([row(device=SIMT), row(device=CPU)]) as results:
            self.assertEqual([s.device for s in results.sources()], ["simt:h200", "Example CPU"])

    def test_the_newest_of_a_row_counts(self):
        old, new = row(ms=ms(9.0)), row(ms=ms(1.0), time="2026-02-02T00:00:00Z")
        with own([new, old]) as results:
            self.assertEqual([r.ms for r in results.latest()], [1.0])

    def test_results_can_lie_elsewhere(self):
        with own([row()]) as results, tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "other.jsonl"
            path.write_text(json.dumps(row()) + "\n" + json.dumps(row()) + "\n")
            with mock.patch.dict(os.environ, {"WARPBOOK_RESULTS": str(path)}):
                self.assertEqual((len(results), len(wb.load())), (1, 2))


class Figures(unittest.TestCase):
    """The contents of figures; your own results have separate figures."""

    LADDER = [
        row(
            stage=f"v{n}_step", ms=ms(8.0 / n), bytes=4e7, flops=8e8, time=f"2026-01-02T03:04:0{n}Z"
        )
        for n in (1, 2, 3)
    ]

    def test_marks_are_counted(self):
        figure, (axes,) = wb.look.new("A title")
        axes.barh([0, 1], [1.0, 2.0])
        axes.scatter([1, 2, float("nan")], [1, 2, 3])
        axes.plot([1, 2, 3], [1, 2, 3])
        axes.plot([1, 2], [1, 2], label=wb.look.GUIDE)
        self.assertEqual(wb.look.finish(figure, "measured", "x").marks, [2 + 2 + 3])

    def test_a_digest_is_that_of_data_and_words(self):
        def digest(value, title="t"):
            figure, (axes,) = wb.look.new(title)
            axes.barh([0], [value])
            return wb.look.finish(figure, "measured", "x").digest

        self.assertEqual(digest(1.0), digest(1.0))
        self.assertNotEqual(digest(1.0), digest(1.01))
        self.assertNotEqual(digest(1.0), digest(1.0, "u"))

    def test_a_picture_follows_the_scheme(self):
        figure, (axes,) = wb.look.new('A < "title"')
        axes.barh([0], [1.0], color=wb.look.LIGHT["blue"])
        svg = wb.look.finish(figure, "measured", "x").svg()
        self.assertEqual(ElementTree.fromstring(svg).get("aria-label"), 'A < "title"')
        self.assertIn("var(--wb-blue)", svg)
        self.assertNotIn(wb.look.LIGHT["text"], svg.split("</style>")[1])

    def test_numbers_in_words_are_not_rounded(self):
        figure, (axes,) = wb.look.new("t")
        axes.set_xlabel("0.123456")
        self.assertIn("0.123456", wb.look.finish(figure, "measured", "x").svg())

    def test_number(self):
        values = {
            0.0456: "0.0456",
            12.34: "12.3",
            4.0: "4.00",
            1234.5: "1,234",
            0.0: "0",
            163.0: "163",
        }
        for value, text in values.items():
            self.assertEqual(wb.look.number(value), text)

    def test_your_ladder_has_its_figures(self):
        modelled = [dict(r, device=SIMT) for r in self.LADDER]
        with own([*self.LADDER, *modelled]) as results:
            things = rooflines.ladders(results)
            self.assertEqual([t.marks[0] for t in things], [3, 3])
            self.assertTrue(
                things[0].caption.startswith("Measured on NVIDIA Example (your results)")
            )
            self.assertTrue(things[1].caption.startswith("Modelled by simt"))
            self.assertEqual(len(rooflines.overview(results)), 2)

    def test_without_data_a_line_says_what_makes_them(self):
        with own([]) as results:
            calls = [
                wb.stages.bert_stages, wb.stages.bert_batches, wb.stages.llama2_stages,
                wb.stages.bus_bytes, wb.stages.token_positions, wb.stages.epilogue_launches,
                wb.stages.model_launches, wb.training.steps, wb.gains.kernel_and_model, rooflines.overview,
                rooflines.ladders, profiles.copies, predictions.course_kernels,
            ]  # fmt: skip
            for call in calls:
                things = call(results)
                self.assertTrue(things, call)
                for thing in things:
                    self.assertRegex(thing.text, r"^\*\*Not recorded:\*\* .* Made by `", call)
            for things in (wb.stages.decoder_ladder(), profiles.operators("bert"), profiles.kernels(),
                           profiles.flames("x", "X", "main"), predictions.calibration(),
                           predictions.transfers()):  # fmt: skip
                self.assertRegex(things[0].text, r"^\*\*Not recorded:\*\*")

    def test_summary_names_problems(self):
        with own([row(), "nonsense"]) as results:
            _, problem = wb.summary(results)
        self.assertIn("results/bench.jsonl:2", problem.text)

    def test_a_colour_of_few_pixels_stays_in_the_picture(self):
        for picture in profiles.operators("bert"):
            png = Image.open(io.BytesIO(picture.png())).convert("RGB")
            shown = [pixel for _, pixel in png.getcolors(png.width * png.height)]
            for patch in picture.figure.legends[0].get_patches():
                wanted = [255 * part for part in patch.get_facecolor()[:3]]
                self.assertLess(min(math.dist(wanted, pixel) for pixel in shown), 8)

    def test_a_table_keeps_bars(self):
        self.assertIn("a\\|b", wb.Table(["x"], [["a|b"]]).markdown())


class Training(unittest.TestCase):
    """The table of training steps."""

    SHAPE = "BERT C768 L12, 16x128 tokens"

    def step(self, stage, median, **changes):
        tokens = {"figure": "tokens_per_second", "figure_value": 2048e3 / median}
        made = row(lab="11_training", subject="solutions", op="training_step", stage=stage,
                   shape=self.SHAPE, dtype="bf16", ms=ms(median), flops=3e9, bytes=None)  # fmt: skip
        return {**made, **tokens, **changes}

    def pytorch(self, stage, median, **changes):
        return self.step(stage, median, subject="pytorch 2.11.0+cu130", **changes)

    def cells(self, thing):
        return [[*line[:3], float(line[3]), *line[6:]] for line in thing.rows]

    def test_ours_stand_beside_what_pytorch_compiled_in_the_same_type(self):
        launches = self.step("v5_tensor", 8.0, op="training_launches", figure="launches_per_step",
                             figure_value=321, flops=None)  # fmt: skip
        lines = [
            self.step("v1_plain", 40.0), self.step("v2_rows", 20.0), self.step("v5_tensor", 8.0),
            launches, self.pytorch("compile", 10.0), self.pytorch("eager", 12.0),
            self.pytorch("compile", 90.0, dtype="fp32"), self.step("v5_tensor", 60.0, dtype="fp32"),
            self.pytorch("compile", 30.0, dtype="tf32"), self.pytorch("compile + graph", 6.0),
        ]  # fmt: skip
        with own(lines) as results:
            table, note = wb.training.steps(results)
        texts = "BERT C768 L12, 16 of 128 tokens"
        wanted = [
            [texts, "fp32", "PyTorch 2.11.0, compile", 90.0, "–", "–", "–"],
            [texts, "fp32", "v5 tensor", 60.0, "–", "1.50x", "1.50x"],
            [texts, "tf32", "PyTorch 2.11.0, compile", 30.0, "–", "–", "–"],
            [texts, "bf16", "PyTorch 2.11.0, compile", 10.0, "–", "–", "–"],
            [texts, "bf16", "PyTorch 2.11.0, compile + graph", 6.0, "–", "–", "–"],
            [texts, "bf16", "PyTorch 2.11.0, eager", 12.0, "–", "–", "–"],
            [texts, "bf16", "v1 plain", 40.0, "–", "0.25x", "0.15x"],
            [texts, "bf16", "v5 tensor", 8.0, "321", "1.25x", "0.75x"],
        ]
        self.assertEqual(self.cells(table), wanted)
        self.assertRegex(note.text, "^Measured on NVIDIA Example .*2026-01-02; commit 012345678;")

    def test_of_pytorchs_versions_the_newest_measured_is_beside_ours(self):
        old = {"subject": "pytorch 2.10.0+cu130", "time": "2026-01-01T03:04:05Z"}
        lines = [
            self.step("v5_tensor", 8.0), self.step("compile + graph", 2.0, **old),
            self.step("compile", 4.0, **old), self.pytorch("compile", 10.0),
        ]  # fmt: skip
        with own(lines) as results:
            table, _ = wb.training.steps(results)
        self.assertEqual(self.cells(table)[-1][-2:], ["1.25x", "1.25x"])

    def test_modelled_steps_are_not_taken_for_measured_ones(self):
        lines = [self.step("v5_tensor", 8.0, device=SIMT), self.pytorch("compile", 10.0)]
        with own(lines) as results:
            table, note, line = wb.training.steps(results)
        self.assertEqual([cells[-2:] for cells in table.rows], [["–", "–"]])
        self.assertIn("no GPU was timed", note.text)
        self.assertRegex(line.text, r"^\*\*Not recorded:\*\* training steps of BERT-base on a GPU")

    def test_a_try_on_the_cpu_is_not_taken_for_the_gpu_beside_it(self):
        lines = [self.step("v5_tensor", 8.0), self.pytorch("compile", 900.0, device=CPU)]
        with own(lines) as results:
            table, _ = wb.training.steps(results)
        self.assertEqual(self.cells(table), [[*table.rows[0][:3], 8.0, "–", "–", "–"]])

    def test_records_whose_texts_are_not_told_are_left_out(self):
        with own([self.step("v5_tensor", 8.0, shape="BERT C768 L12, 16x128 tokens, bf16")]) as results:
            (line,) = wb.training.steps(results)
        self.assertIn("Not recorded", line.text)


class Roofs(unittest.TestCase):
    def test_modelled_ones_are_those_of_the_model(self):
        text = (ROOT / "common" / "simt" / "MODEL.md").read_text()
        names = next(line for line in text.splitlines() if line.startswith("| | t4 |"))
        names = [f"simt:{cell.strip()}" for cell in names.split("|")[2:-1]]
        self.assertEqual(names, list(rooflines.SIMT))
        fields = {
            "multiprocessors": "multiprocessors",
            "clock, GHz": "ghz",
            "fp32 lanes a multiprocessor": "lanes",
            "tensor, fp16 operations a clock (`mma`)": "tensor",
            "device memory, GB/s": "gb_per_s",
        }
        for label, field in fields.items():
            line = next(line for line in text.splitlines() if line.startswith(f"| {label} |"))
            values = [float(cell) for cell in line.split("|")[2:-1]]
            self.assertEqual(
                values, [getattr(gpu, field) for gpu in rooflines.SIMT.values()], label
            )

    def test_share_of_the_lower_roof(self):
        limits = [rooflines.Roof(100.0, False, "fp32"), rooflines.Roof(10.0, True, "memory")]
        with own([row(ms=ms(1000.0), bytes=20.0, flops=20.0)]) as results:
            self.assertAlmostEqual(rooflines.share(results[0], limits), 2.0)  # 20 a second of 10
        with own([row(ms=ms(1000.0), bytes=1.0, flops=50.0)]) as results:
            self.assertAlmostEqual(rooflines.share(results[0], limits), 0.5)
            self.assertIsNone(rooflines.share(results[0], limits[:1]))

    def test_least_bytes_of_epilogues(self):
        def least(op):
            fused = row(lab="06_fused_epilogues", op=op, shape="2x3x5", bytes=None, flops=60.0)
            with own([fused]) as results:
                return rooflines.least_bytes(results[0])

        self.assertEqual(least("linear"), 4 * (10 + 15 + 3 + 6))
        self.assertEqual(least("linear_add_norm"), 4 * (10 + 15 + 3 + 6 + 6 + 6))

    def test_a_copy_is_the_memory_roof(self):
        copied = row(peer="device-to-device copy", peer_ratio=0.5, bytes=3e9, ms=ms(2000.0))
        with own([copied]) as results:
            limits = rooflines.roofs(results, results.sources()[0])
        self.assertEqual([(r.value, r.per_byte) for r in limits], [(3e9, True)])


class Gains(unittest.TestCase):
    def test_the_lone_add(self):
        kernel = [row(lab="06_fused_epilogues", op="linear_add", shape="8192x768x768", stage=f"v{n}_x",
                      ms=ms(1.0 / n)) for n in (1, 2)]  # fmt: skip
        model = [row(lab="06_fused_epilogues", op="bert_batch", shape="BERT", stage=stage, ms=ms(value))
                 for stage, value in (("nothing fused", 10.0), ("the lone add fused", 8.0))]  # fmt: skip
        with own([*kernel, *model]) as results:
            (gain,) = wb.gains.gains(results, results.sources()[0])
            (figure,) = wb.gains.kernel_and_model(results)
        self.assertEqual(gain.factors, (2.0, 1.25))
        self.assertEqual(figure.marks, [2])


class Stacks(unittest.TestCase):
    SCRIPT = """\
generate
            4012f0 matmul.arch_x86_64_v4 (/x/generate)
            401100 forward (/x/generate)
            400100 main (/x/generate)

generate
      ffffffff8100 page_fault ([kernel.kallsyms])
      ffffffff8200 do_fault ([kernel.kallsyms])
            401100 forward (/x/generate)
            400100 main (/x/generate)

"""

    def test_folds(self):
        counts = fold_stacks.fold(self.SCRIPT.splitlines())
        wanted = {("main", "forward", "matmul"): 1, ("main", "forward", "[kernel]"): 1}
        self.assertEqual(dict(counts), wanted)

    def test_boxes_hold_what_stands_on_them(self):
        counts = {("main", "a", "b"): 6, ("main", "a"): 2, ("main", "c"): 2}
        found = profiles.boxes(counts)
        wanted = {(0, 0, "main"): 10, (1, 0, "a"): 8, (1, 8, "c"): 2, (2, 0, "b"): 6}
        self.assertEqual(found, wanted)

    def test_from_a_function_inwards(self):
        counts = profiles.Counter({("main", "run", "profile_run", "work"): 3, ("main", "load"): 9})
        self.assertEqual(dict(profiles.below(counts, "run")), {("run", "work"): 3})

    def test_a_bad_line_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "x.folded"
            path.write_text("main;work 3\nmain\n")
            with self.assertRaisesRegex(ValueError, "x.folded:2"):
                profiles.read_folded(path)


HANDOUT = """# Lab
## Predict first

| question | your prediction | measured or modelled |
|---|---|---|
| Sectors a load of `weight` | 32 | |
| How many times as fast as the starter's is your best kernel there? | {guess} | |
| Tokens/s of Llama2 (15M shape) with your kernel | about 1k | 800 |

## Work

| not | a | prediction |
"""


class Predictions(unittest.TestCase):
    RESULTS = [
        row(stage="v1_a", ms=ms(10.0)),
        row(stage="v2_b", ms=ms(2.0)),
        row(op="decode", stage="02_gpu_matmul", figure="tokens_per_second", figure_value=500.0,
            shape="15M shape, random weights"),
    ]  # fmt: skip

    def test_tables_are_read(self):
        found = handouts.parse_table(HANDOUT.format(guess="4x"), "02_gpu_matmul")
        self.assertEqual([e.prediction for e in found], ["32", "4x", "about 1k"])
        self.assertEqual(found[2].measured, "800")
        self.assertEqual(handouts.parse_table("# no table", "x"), [])

    def test_numbers_of_a_cell(self):
        cells = {
            "12": [12], "1,024": [1024], "3.5x": [3.5], "about 1k": [1000], "1.1; 1.0": [1.1, 1.0],
            "1.5e3": [1500], "none": [], "": [], "61 million bytes": [61e6], ".5": [0.5], "v2": [],
        }  # fmt: skip
        for text, wanted in cells.items():
            self.assertEqual(handouts.numbers(text), wanted, text)
        self.assertEqual(handouts.numbers("1/8", "%"), [12.5])
        for text, wanted in {"0.5": 50, ".7": 70, "1.0": 100, "0.5%": 0.5, "1": 1, "70 %": 70}.items():
            self.assertEqual(handouts.numbers(text, "%"), [wanted], text)
        self.assertEqual(handouts.numbers("46 M", "MB, ms"), [46])

    def test_predictions_meet_your_own_results(self):
        with own(self.RESULTS, HANDOUT.format(guess="4x")) as results:
            source = results.sources()[0]
            found = [(p.predicted, p.found) for p in predictions.pairs(results, source)]
            self.assertEqual(found, [(4.0, 5.0), (1000.0, 500.0)])
            (figure,) = predictions.scatter(results)
            self.assertEqual(figure.marks, [2])
            self.assertIn("your results", figure.caption)
            text = predictions.table(results).markdown()
        self.assertIn("| 4x |  | 5.00x |", text)
        self.assertIn("| 32 |", text)  # answered by nobody's records, and still shown

    def test_none_yet(self):
        with own(self.RESULTS, HANDOUT.format(guess="").replace("about 1k", "")) as results:
            (note,) = predictions.scatter(results)
        self.assertIn("No predictions yet", note.text)

    def test_every_question_is_in_its_handout(self):
        for question in answers.QUESTIONS + counts.COUNTS:
            path = ROOT / "labs" / question.lab / "README.md"
            rows = handouts.parse_table(path.read_text(), question.lab)
            hits = [e for e in rows if e.question.startswith(question.begins)]
            self.assertEqual(len(hits), 1, question.begins)

    def test_order_of_pairs(self):
        rows = [("a", 1.0, 1.0), ("b", 2.0, 3.0), ("c", 4.0, 2.5), ("d", 4.1, 9.0)]
        self.assertEqual(predictions.ordered(rows), (4, 5))  # c against d is too close to count

    def test_handouts_can_be_emptied(self):
        text = HANDOUT.format(guess="4x")
        emptied = notebook_tool.without_answers(text)
        entries = handouts.parse_table(emptied, "x")
        self.assertEqual([(e.prediction, e.measured) for e in entries], [("", "")] * 3)
        self.assertEqual(emptied.split("## Work")[1], text.split("## Work")[1])


class Model(unittest.TestCase):
    def test_random_weights_have_the_size_their_header_says(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "m.bin"
            shapes = {"tiny": (8, 16, 2, 2, 2, 32, 4)}
            with mock.patch.object(random_llama2, "SHAPES", shapes):
                random_llama2.write("tiny", path)
            data = path.read_bytes()
            self.assertEqual(struct.unpack("<7i", data[:28]), shapes["tiny"])
            numbers = 32 * 8 + 2 * (8 + 4 * 64 + 8 + 3 * 128) + 8 + 2 * 4 * 2
            self.assertEqual(len(data), 28 + 4 * numbers)


class Requirements(unittest.TestCase):
    def test_all_are_pinned(self):
        path = Path(__file__).absolute().parent / "requirements.txt"
        lines = [
            line for line in path.read_text().splitlines() if line and not line.startswith("#")
        ]
        self.assertGreaterEqual(len(lines), 4)
        for line in lines:
            self.assertRegex(line, r"^[A-Za-z0-9_.-]+==[0-9][0-9a-z.]*$")


if __name__ == "__main__":
    unittest.main(verbosity=1, warnings="ignore")
