"""Queueing disciplines and cgroup net_prio: set, read back and undone on this kernel, or refused by name."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from namespaces import Pair, two_namespaces

from front import rtmeter, running
from rtmeter.campaign.condition_options import SystemSettings
from rtmeter.conditions.settings import Settings
from rtmeter.errors import RtmeterError
from rtmeter.host.root import Root
from rtmeter.host.state import VARIABLE
from rtmeter.results import store
from stored import cell_json
from waiting import LIMIT_S, until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="not root")
CAMPAIGN = Path(__file__).parents[2] / "campaigns" / "ros2-roundtrip-2018.yaml"
BUCKET = "tbf rate 10mbit burst 16kbit latency 50ms"


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def pair() -> Iterator[Pair]:
    with two_namespaces() as made:
        yield made


def shown(pair: Pair) -> str:
    command = ["tc", "-n", pair.left, "qdisc", "show", "dev", pair.left_device]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def settings(**asked: object) -> Settings:
    return Settings(SystemSettings.model_validate(asked), Root())


def test_a_qdisc_is_set_read_back_and_undone(pair: Pair) -> None:
    before, device = shown(pair), f"{pair.left}/{pair.left_device}"
    with settings(qdisc={device: BUCKET}) as made:
        assert "qdisc tbf" in shown(pair)
        (effective,) = made.facts()["effective"]["settings"][f"qdisc.{device}"].values()
        assert "tbf rate 10Mbit burst 2Kb lat 50ms" in effective
    assert shown(pair) == before
    assert made.doubts() == []


def kernel_has(pair: Pair, words: str) -> bool:
    """Whether this kernel takes the qdisc from tc itself."""
    tc, root = ["tc", "-n", pair.left, "qdisc"], ["dev", pair.left_device, "root"]
    if subprocess.run([*tc, "add", *root, *words.split()], capture_output=True, check=False).returncode:
        return False
    subprocess.run([*tc, "del", *root], check=True)
    return True


@pytest.mark.parametrize(
    "words", ["pfifo limit 10", "prio", "mqprio num_tc 2 map 0 1 queues 1@0 1@0 hw 0", "nosuch"]
)
def test_a_kind_is_set_where_the_kernel_has_it_and_named_where_not(pair: Pair, words: str) -> None:
    device, kind = f"{pair.left}/{pair.left_device}", words.split()[0]
    before = shown(pair)
    if kernel_has(pair, words):
        with settings(qdisc={device: words}):
            assert f"qdisc {kind}" in shown(pair)
    else:
        with pytest.raises(RtmeterError) as raised, settings(qdisc={device: words}):
            pass
        assert (raised.value.field, raised.value.value) == (f"conditions.qdisc.{device}", words)
        assert f"CONFIG_NET_SCH_{kind.upper()}" in str(raised.value.remedy)
    assert shown(pair) == before


def test_a_qdisc_that_somebody_chose_is_left_alone(pair: Pair) -> None:
    chosen = ["tc", "-n", pair.left, "qdisc", "add", "dev", pair.left_device, "root", *BUCKET.split()]
    subprocess.run(chosen, check=True)
    before, device = shown(pair), f"{pair.left}/{pair.left_device}"
    with pytest.raises(RtmeterError, match="somebody chose"), settings(qdisc={device: "pfifo limit 10"}):
        pass
    assert shown(pair) == before


@pytest.mark.parametrize(
    ("device", "words", "said"),
    [
        ("no-such-device", BUCKET, "there is no network device no-such-device; see `ip link` for"),
        ("no-such-namespace/eth0", BUCKET, "no network device eth0; see `ip -n no-such-namespace link` for"),
        ("{}", "tbf rate fast", 'illegal value for "rate"'),
    ],
)
def test_what_cannot_be_set_is_quoted(pair: Pair, device: str, words: str, said: str) -> None:
    device = device.format(f"{pair.left}/{pair.left_device}")
    with pytest.raises(RtmeterError) as raised, settings(qdisc={device: words}):
        pass
    assert said in str(raised.value)


def test_restore_undoes_a_qdisc_after_a_kill(pair: Pair, tmp_path: Path) -> None:
    before, device = shown(pair), f"{pair.left}/{pair.left_device}"
    asked = ["--condition", f"qdisc.{device}={BUCKET}", "--duration", "10min", "--out", tmp_path / "cell"]
    with running("measure", "wakeup", "--adapter", "posix", *asked) as front:
        until(lambda: "qdisc tbf" in shown(pair), of=front)
        front.send_signal(signal.SIGKILL)
        front.wait(LIMIT_S)
    assert "qdisc tbf" in shown(pair)
    done = rtmeter("restore")
    assert done.code == 0, done.err
    assert shown(pair) == before


@pytest.fixture
def net_prio(tmp_path: Path) -> Iterator[Path]:
    """The controller's cgroups, mounted for the test unless they are."""
    folder = tmp_path / "net_prio"
    folder.mkdir()
    command = ["mount", "-t", "cgroup", "-o", "net_prio", "net_prio", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"net_prio cannot be mounted here: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        # Others that run beside may just look into it.
        until(lambda: subprocess.run(["umount", str(folder)], check=False).returncode == 0)


def test_the_probes_get_the_priority_of_their_group(net_prio: Path, tmp_path: Path) -> None:
    asked = ["--condition", "net_prio.lo=5", "--samples", "10", "--warm-up", "0s", "--out", tmp_path / "cell"]
    done = rtmeter("measure", "roundtrip", "--adapter", "posix", *asked)
    assert done.code == 0, done.err
    effective = cell_json(tmp_path / "cell")["conditions"]["effective"]["settings"]
    assert [list(effective[name].values()) for name in ("net_prio", "net_prio.lo")] == [["made"], ["5"]]
    assert not (net_prio / "rtmeter").exists()


def test_the_cell_of_2018s_future_has_its_traffic_go_first(
    pair: Pair, net_prio: Path, tmp_path: Path
) -> None:
    """Future.network of the campaign, idle, on devices of the test's own."""
    before, device = shown(pair), f"{pair.left}/{pair.left_device}"
    text = CAMPAIGN.read_text(encoding="utf-8").replace("load: erle_pc", "load: idle")
    text = text.replace(
        "{net_prio: {eth0: 6}, qdisc: {eth0: prio}", f"{{net_prio: {{lo: 6}}, qdisc: {{{device}: prio}}"
    )
    assert device in text
    campaign = tmp_path / "campaign.yaml"
    campaign.write_text(text, encoding="utf-8")
    chosen = ["--only", "block == floor and variant == Future.network", "--scale", "0.0005"]
    done = rtmeter("run", campaign, *chosen, "--out", tmp_path / "out")
    assert done.code in (0, 2, 3), done.err  # whatever the verdict
    [folder] = store.cell_folders(tmp_path / "out")
    cell = cell_json(folder)
    assert (cell["status"], cell["valid"]) == ("complete", True)
    made = cell["conditions"]["effective"]["settings"]
    assert [list(made[name].values()) for name in ("net_prio", "net_prio.lo")] == [["made"], ["6"]]
    left_out = cell["conditions"].get("left_out", {})
    assert (f"qdisc.{device}" in made) != ("qdisc" in left_out)
    assert left_out.keys() <= {"qdisc"} and all("kind is unknown" in why for why in left_out.values())
    assert cell["conditions"]["achieved"]["traffic"]["forward"]["rate"] > 0
    assert shown(pair) == before
    assert not (net_prio / "rtmeter").exists()


def test_a_device_that_is_not_there_has_no_priority(net_prio: Path) -> None:
    with pytest.raises(RtmeterError, match="there is no nosuch in"), settings(net_prio={"nosuch": 5}):
        pass
    assert not (net_prio / "rtmeter").exists()


def test_net_prio_that_is_not_mounted_says_how(tmp_path: Path) -> None:
    for cgroups, words in (("net_prio 0 1 1", "mount -t cgroup -o net_prio"), ("", "CONFIG_CGROUP_NET_PRIO")):
        (tmp_path / "proc").mkdir(exist_ok=True)
        (tmp_path / "proc" / "cgroups").write_text(cgroups)
        asked = SystemSettings.model_validate({"net_prio": {"eth0": 5}})
        with pytest.raises(RtmeterError) as raised, Settings(asked, Root(tmp_path)):
            pass
        assert words in str(raised.value)
