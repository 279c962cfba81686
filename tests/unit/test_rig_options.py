"""What a rig sets of its own, and what of that is refused, with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from rigs_here import file_of
from rtmeter.campaign.file import read_campaign
from rtmeter.campaign.rigs import read_rigs
from rtmeter.errors import RtmeterError


@pytest.mark.parametrize(
    ("given", "field", "message"),
    [
        ("cpus: []", "rigs.a.set.cpus", "is a list: a rig has one value"),
        ("cpus: [1, 2]", "rigs.a.set.cpus", "is a list: a rig has one value"),
        ("load: {cpu: [1, 2]}", "rigs.a.set.load.cpu", "is a list: a rig has one value"),
        ("options: [1]", "rigs.a.set.options", "is no mapping of keys to values"),
        ("options: 5", "rigs.a.set.options", "is no mapping of keys to values"),
        ("server_options: tcp", "rigs.a.set.server_options", "is no mapping of keys to values"),
        ("conditions: {governer: performance}", "rigs.a.set.conditions", "is not known"),
        ("period: soon", "rigs.a.set.period", "is not a number with a unit"),
    ],
)
def test_what_a_rig_cannot_set_is_an_error_of_the_rigs_file(
    tmp_path: Path, given: str, field: str, message: str
) -> None:
    rigs = file_of(tmp_path, {"a": f"set: {{{given}}}"})
    campaign = tmp_path / "c.yaml"
    campaign.write_text("cells:\n- {measurement: wakeup, adapter: posix}\n")
    with pytest.raises(RtmeterError, match=message) as caught:
        read_campaign(campaign, rigs=read_rigs(rigs))
    assert caught.value.field == field
    assert "c.yaml" not in str(caught.value)
