"""The reference page of logs names what the importers know."""

from pathlib import Path

import pytest

from hedgerow.analysis.ingest.formats import FORMATS
from hedgerow.analysis.ingest.mapping import MAP_NAMES
from hedgerow.analysis.ingest.records import ENVELOPES

PAGE = (Path(__file__).parents[4] / "docs" / "reference" / "logs.md").read_text("utf-8")


@pytest.mark.parametrize("name", [each.name for each in FORMATS])
def test_every_format_has_one_row(name):
    assert PAGE.count(f"\n| {name} |") == 1


@pytest.mark.parametrize("name", MAP_NAMES)
def test_every_name_of_a_map_is_explained(name):
    assert f"`{name}`" in PAGE.split("## Any other log")[1].split("## What is left out")[0]


@pytest.mark.parametrize("name", [each for each in ENVELOPES if each.islower()])
def test_every_envelope_is_named(name):
    assert f"`{name}`" in PAGE or f'"{name}"' in PAGE


def test_formats_have_names_of_their_own():
    assert len({each.name for each in FORMATS}) == len(FORMATS)
