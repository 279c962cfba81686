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
        ("conditions: {irq_cpus: {eth0: [1]}}", "rigs.a.set.conditions.irq_cpus.eth0", "is a list"),
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


@pytest.mark.parametrize(
    ("place", "field"), [("'-p x'", "rigs.a.place"), ("--help", "rigs.a.place"), ("imx8-3", None)]
)
def test_a_place_that_could_be_an_option_is_no_name(tmp_path: Path, place: str, field: str | None) -> None:
    file = file_of(tmp_path, {"a": f"place: {place}"})
    if field is None:
        assert read_rigs(file)[0].place == place
        return
    with pytest.raises(RtmeterError, match="is no name") as caught:
        read_rigs(file)
    assert caught.value.field == field


@pytest.mark.parametrize("address", ["local", "board"])
def test_no_rig_is_told_to_be_this_machine(tmp_path: Path, address: str) -> None:
    file = tmp_path / "rigs.yaml"
    file.write_text(f"rigs: {{a: {{address: {address}}}}}\n")
    with pytest.raises(RtmeterError, match=r"is no host; write ssh://user@host, .*; this machine is no rig"):
        read_rigs(file)


@pytest.mark.parametrize("given", ["samples: 100", "duration: 50ms"])
@pytest.mark.parametrize("place", ["block", "defaults", "variant"])
@pytest.mark.parametrize("said", ["samples: 10000", "duration: 10s", "duration: [10s, 20s]"])
def test_how_long_a_rig_measures_takes_the_place_of_what_the_campaign_says_in_either_way(
    tmp_path: Path, given: str, place: str, said: str
) -> None:
    rigs = file_of(tmp_path, {"a": f"set: {{{given}}}", "b": "patience: 1s"})
    by_place = {
        "block": f"cells: [{{measurement: wakeup, adapter: posix, {said}}}]",
        "defaults": f"defaults: {{{said}}}\ncells: [{{measurement: wakeup, adapter: posix}}]",
        "variant": f"cells: [{{measurement: wakeup, adapter: posix, variants: {{v: {{{said}}}}}}}]",
    }
    campaign = tmp_path / "c.yaml"
    campaign.write_text(f"name: c\n{by_place[place]}\n")
    cells = read_campaign(campaign, rigs=read_rigs(rigs)).cells
    samples = [cell.config["samples"] for cell in cells if cell.rig is not None and cell.rig.name == "a"]
    assert samples == [100 if "samples" in given else 50]
    others = [cell.config["samples"] for cell in cells if cell.rig is not None and cell.rig.name == "b"]
    assert others == ([10_000, 20_000] if "[" in said else [10_000])


def test_a_variant_says_how_long_in_the_place_of_its_block(tmp_path: Path) -> None:
    campaign = tmp_path / "c.yaml"
    variants = "variants: {short: {samples: 100}, long: {}}"
    campaign.write_text(
        f"name: c\ncells: [{{measurement: wakeup, adapter: posix, duration: 10s, {variants}}}]\n"
    )
    assert [cell.config["samples"] for cell in read_campaign(campaign).cells] == [100, 10_000]


def test_two_rigs_of_one_place_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RtmeterError, match="is also that of a") as caught:
        read_rigs(file_of(tmp_path, {"a": "place: imx8-3", "b": "place: imx8-3"}))
    assert (caught.value.field, caught.value.value) == ("rigs.b.place", "imx8-3")


def test_a_rig_without_patience_is_not_waited_for_and_one_that_says_nothing_two_minutes(
    tmp_path: Path,
) -> None:
    first, second = read_rigs(file_of(tmp_path, {"a": "patience: '0'", "b": "labels: {site: north}"}))
    assert (first.patience_ns, second.patience_ns) == (0, 120_000_000_000)


def test_the_host_of_the_servers_is_none_of_a_rig_s(tmp_path: Path) -> None:
    """On the command line: it is refused and not passed over."""
    (tmp_path / "c.yaml").write_text("cells: [{measurement: roundtrip, adapter: posix}]\n")
    rigs = read_rigs(file_of(tmp_path, {"a": "labels: {site: north}"}))
    with pytest.raises(RtmeterError, match="both ends run there") as caught:
        read_campaign(tmp_path / "c.yaml", host="ssh://there", rigs=rigs)
    assert caught.value.field == "--host component"


def test_repeats_are_no_factor(tmp_path: Path) -> None:
    cells = "{measurement: wakeup, adapter: posix, scheduling: [other, 'fifo:80']}"
    (tmp_path / "c.yaml").write_text(f"repeat: 2\ncells: [{cells}]\n")
    found = [one.factors for one in read_campaign(tmp_path / "c.yaml").cells]
    assert found == [{"scheduling": "other"}, {"scheduling": "fifo:80"}] * 2
