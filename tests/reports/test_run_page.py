"""The report of a run: what it says, in which state, of which size, and that text stays text."""

from __future__ import annotations

import dataclasses
import json
import pathlib

import numpy as np
import pytest
from builders_data import make_images
from builders_pages import Page
from builders_runs import (
    LAST,
    RESULT,
    SMALL,
    hash_run,
    individual_record,
    retraining,
    table_records,
    write_run,
)
from conftest import REPOSITORY

from jaxevo.config import replace
from jaxevo.datasets import Images
from jaxevo.reports import run_tables
from jaxevo.reports.run_page import render_run, write_report
from jaxevo.run.confusion import Confusion
from jaxevo.run.mistakes import choose_mistakes, write_mistakes
from jaxevo.run.reader import load_run
from jaxevo.run.workdir import Workdir

EVIL = "<script>alert(1)</script>\"'&{{7*7}}"


def finish(workdir: Workdir, names: tuple[str, ...], **changes: object) -> None:
    """Makes a run complete whose winner takes half of the first class for the second."""
    workdir.result.write_text(json.dumps(RESULT | changes))
    counts = np.zeros((len(names), len(names)), np.int64)
    counts[0, :2] = 30, 30
    Confusion(names, counts).write(workdir.confusion)
    images = Images(make_images(4, (8, 8, 1)), np.zeros(4, np.int32))
    write_mistakes(workdir.mistakes, choose_mistakes(images, np.array([1, 1, 0, 1]), names))


@pytest.fixture
def finished(tmp_path: pathlib.Path) -> Workdir:
    """The run of the hand-worked table, complete."""
    records = [*table_records(), individual_record(LAST), retraining(2, 0, 0.64)]
    workdir = write_run(tmp_path / "run", records)
    finish(workdir, ("cat", "dog"))
    return workdir


def test_a_finished_run_with_its_pictures(finished: Workdir):
    write_report(load_run(finished), finished.report)
    page = Page(finished.report.read_text())
    said = " ".join(" ".join(page.texts.values()).split())
    for words in (
        *("complete", "55.00%", "95 % interval 50.00% to 60.00%, 100 images", "Data: digits"),
        *("Weakest classes: cat 50.00%; cat is taken for dog 30 times", "the winner"),
        *("node 0 = concat( conv_3x3(input), identity(input) )", "same as 2", "failed: diverged"),
        *(f"--weights={finished.path}/best", f"jaxevo.load('{finished.path}/best')"),
        *("population_size", "jaxevo 0.", "cat, taken for dog (image 1)", "Trainings of all"),
    ):
        assert words in said, words
    pictures = [attributes["alt"] or "" for attributes in page.of("img")]
    assert [text for text in pictures if "Image" in text] == [
        f"Image {k}, of class cat" for k in (0, 1, 3)
    ]
    described = " ".join(pictures)
    assert "conv_3x3(input)" in described and "loss goes from 0.5 to 0.25" in described
    assert len(pictures) == 3 + 5  # cells, progress, sizes, confusion, training
    assert page.of("body") == [{}]


def test_the_table_of_candidates_has_a_cell_for_each_heading(finished: Workdir):
    text = render_run(load_run(finished))
    table = text[text.index('<table class="candidates">') :].partition("</table>")[0]
    head, body = table.split("</thead>")
    rows = body.split("<tr ")[1:]
    assert len(rows) == 7
    assert {row.count("<td>") for row in rows} == {head.count("<th ")} == {9}


def test_parents_are_links_and_the_best_is_first(finished: Workdir):
    text = render_run(load_run(finished))
    assert '<a href="#i3">3</a> <a href="#i2">2</a> </td><td>crossover, op_mutation' in text
    rows = run_tables.candidates(load_run(finished))
    assert [row.id for row in rows] == [3, 5, 2, 4, 0, 6, 1]
    assert rows[-1].fitness is None and rows[2].remark == "the winner"


def test_a_run_that_goes_on_loads_its_page_anew(tmp_path: pathlib.Path):
    workdir = write_run(tmp_path / "run", table_records()[:4])
    page = Page(render_run(load_run(workdir), reload=5))
    assert page.of("body") == [{"data-reload": "5"}]
    said = " ".join(page.texts.values())
    assert "incomplete: in generation 1 of 2, 4 candidates known" in said
    assert "best fitness so far" in said and "70.00%" in said
    # A curve stands in place of charts, which take long to be drawn.
    assert page.of("img") == [] and "M630.0 10.0h0" in str(page.of("path"))


def test_a_run_without_candidates_and_one_that_only_failed(tmp_path: pathlib.Path):
    empty = Page(render_run(load_run(write_run(tmp_path / "empty", []))))
    assert "incomplete" in empty.texts["span"] and "settings" in str(empty.tags)
    failed = load_run(write_run(tmp_path / "failed", table_records()[1:2]))
    write_report(failed, tmp_path / "report.html")
    page = Page((tmp_path / "report.html").read_text())
    assert "failed: diverged" in page.texts["td"] and page.of("img") == []


def test_text_of_others_stays_text(tmp_path: pathlib.Path):
    records = [*table_records(), individual_record(LAST)]
    records[1]["failure"] = EVIL
    records[3]["operators"] = [EVIL]
    about = replace(SMALL, {"dataset": f"/data/{EVIL}"})
    workdir = write_run(tmp_path / "run", records, about)
    finish(workdir, (EVIL, "dog"), dataset=EVIL, no_baseline=EVIL, session_seconds={EVIL: 2.0})
    document = json.loads(workdir.config.read_text())
    document |= {"summary": EVIL, "preset": EVIL, "device": EVIL}
    document["versions"] |= {EVIL: EVIL}
    workdir.config.write_text(json.dumps(document))
    page = Page(render_run(load_run(workdir)))  # has one script, which is ours
    said = " ".join(page.texts.values())
    assert said.count("<script>alert(1)</script>") > 8 and "{{7*7}}" in said
    assert "49" not in page.texts["h1"]
    assert f"Image 0, of class {EVIL}" in [attributes["alt"] for attributes in page.of("img")]


def test_a_run_of_two_thousand_candidates_is_below_a_megabyte(tmp_path: pathlib.Path):
    sizes = {"population_size": 10, "num_offspring": 10, "num_generations": 200}
    run = hash_run(tmp_path / "run", 2010, strategy="nsga2", **sizes)
    winner = max(run.candidates.values(), key=lambda each: each.fitness or 0.0)
    names = tuple(f"class {number}" for number in range(40))
    finish(Workdir(run.path), names, id=winner.id, first_id=None, first_fitness=None)
    history = tmp_path / "run" / "history.jsonl"
    history.write_text(history.read_text() + '{"kind": "stop", "reason": "enough"}\n')
    run = load_run(Workdir(run.path))
    assert run.result is not None and len(run.candidates) == 2010
    write_report(run, tmp_path / "report.html")
    assert 300_000 < (tmp_path / "report.html").stat().st_size < 1_000_000
    page = Page((tmp_path / "report.html").read_text())
    assert len(page.of("tr")) > 2010 and "front" in str(page.of("section"))


def test_of_very_many_candidates_the_best_are_shown(tmp_path: pathlib.Path, monkeypatch):
    monkeypatch.setattr(run_tables, "MAX_ROWS", 3)
    run = load_run(write_run(tmp_path / "run", table_records()))
    assert [row.id for row in run_tables.candidates(run)] == [3, 5, 2]
    assert "3 less fit ones are left out" in " ".join(render_run(run).split())


def test_a_run_of_an_earlier_version_says_what_it_does_not_have(finished: Workdir, tmp_path):
    finished.confusion.unlink()
    finished.mistakes.unlink()
    document = json.loads(finished.config.read_text())
    del document["streams"]
    finished.config.write_text(json.dumps(document))
    said = " ".join(" ".join(Page(render_run(load_run(finished))).texts.values()).split())
    assert "There is no table of classes" in said
    assert "Pictures of what is confused are left out" in said
    old = load_run(Workdir(REPOSITORY / "tests" / "golden" / "run-0.2.0"))
    write_report(old, tmp_path / "report.html")
    assert "incomplete" in Page((tmp_path / "report.html").read_text()).texts["span"]


def test_a_result_on_validation_images_alone_says_so(finished: Workdir):
    run = load_run(finished)
    assert run.result is not None
    nothing = dict.fromkeys(("test_accuracy", "test_interval", "test_images"))
    run = dataclasses.replace(run, result=dataclasses.replace(run.result, **nothing))
    said = " ".join(Page(render_run(run)).texts.values())
    assert "Some of the validation images" in said and "test accuracy" not in said
