"""Cards of trained networks: facts of a network, and names that are text only."""

import dataclasses

from builders_classifiers import BUILDER, CLASSES, fresh_classifier

from jaxevo.training.model_card import FILE_NAME, write_card


def test_the_facts(tmp_path):
    classifier = fresh_classifier()
    write_card(tmp_path, classifier, ["test accuracy 97.00%"], training={"epochs": 3})
    lines = (tmp_path / FILE_NAME).read_text().splitlines()
    assert lines[:5] == [
        "---",
        "library_name: jaxevo",
        "pipeline_tag: image-classification",
        "---",
        "# An image classifier for digits",
    ]
    parameters = BUILDER.complexity(classifier.model).parameters
    assert any(f"with {parameters:,} parameters" in line for line in lines)
    assert f"- Classes (10): {', '.join(CLASSES)}." in lines
    assert "- test accuracy 97.00%" in lines
    assert "| epochs | 3 |" in lines
    full = dataclasses.replace(BUILDER.network, conv_kind="full")
    builder = dataclasses.replace(BUILDER, network=full)
    write_card(tmp_path, dataclasses.replace(classifier, builder=builder), [], training={})
    assert "A network of full convolutions, with two kinds" in (tmp_path / FILE_NAME).read_text()


def test_names_are_text(tmp_path):
    classifier = fresh_classifier()
    names = ("<script>alert(1)</script>", "[a](http://b)", "a|b\n# c", *map(str, range(150)))
    source = dataclasses.replace(classifier.source, class_names=names, dataset="*x*\n---\n`y`")
    hostile = dataclasses.replace(classifier, source=source)
    write_card(tmp_path, hostile, [], training={"name": "a|b"})
    text = (tmp_path / FILE_NAME).read_text()
    assert r"- Classes (153): \<script\>alert(1)\</script\>, \[a\](http://b), a\|b # c, 0," in text
    assert " and 53 more." in text
    assert r"# An image classifier for \*x\* --- \`y\`" in text
    assert r"| name | a\|b |" in text
    assert text.count("\n---\n") == 1 and text.count("\n# ") == 1
