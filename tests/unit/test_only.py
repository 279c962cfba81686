from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rtmeter.campaign.filters import compile_only, what_was_meant
from rtmeter.campaign.matrix import facts, parse_fact
from rtmeter.campaign.rules import settle
from rtmeter.errors import RtmeterError

GIVEN = {
    "measurement": "roundtrip",
    "adapter": "posix",
    "period": "1ms",
    "payload": "1KiB",
    "cpus": "1,0",
    "scheduling": "fifo:80",
    "options": {"transport": "udp"},
}


def holds(expression: str, **changes: Any) -> bool:
    known = facts(settle(GIVEN | changes), id="a-b", block=None, variant="A", repeat=2)
    return compile_only(expression, parse_fact)(known)


@pytest.mark.parametrize(
    "expression",
    [
        "adapter==posix",
        "adapter == 'posix'",
        'adapter != "null"',
        "adapter==posix and scheduling==fifo:80",
        "adapter==null or period==1000us",
        "adapter==null and adapter==null or adapter==posix",
        "not adapter==null",
        "not (adapter==posix and period>1ms)",
        "period >= 1ms and period <= 1ms and period < 2ms",
        "payload==1024",
        "cpus==0-1",
        "scheduling in (other, fifo:80)",
        "options.transport==udp",
        "options.nothing!=udp",
        "variant==A and repeat==2 and repeat<3 and id==a-b",
        "lock_memory==false",
        "samples==600000",
        "mode!=one_shot",  # does not apply, so equals nothing
    ],
)
def test_it_holds(expression: str) -> None:
    assert holds(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "adapter==null",
        "adapter==posix and period>1ms",
        "mode==one_shot",
        "block==x",
        "timeout<1s",  # none was given
        "scheduling in (other, rr:80)",
        "options.nothing==udp",
        "not not adapter==null",
        "(adapter==null or adapter==posix) and repeat==1",
    ],
)
def test_it_does_not_hold(expression: str) -> None:
    assert not holds(expression)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("", "'the end' where a name was expected"),
        ("adapter", "where a comparison was expected"),
        ("adapter=posix", "cannot be read from '=posix'"),
        ("adapter==", "where a value for adapter was expected"),
        ("adapter==posix extra", "'extra' where nothing more"),
        ("(adapter==posix", "where '\\)' was expected"),
        ("adaptor==posix", "did you mean adapter"),
        ("options==x", "is not known"),
        ("period==10", "has no unit"),
        ("repeat==x", "is no whole number"),
        ("scheduling<fifo:80", "by size, which has none"),
        ("lock_memory>false", "by size, which has none"),
        ("adapter in ()", "where a value for adapter was expected"),
        ("adapter in (posix", "where '\\)' was expected"),
        ("and==1", "is not known"),
        ("(" * 200 + "adapter==posix" + ")" * 200, "too deeply"),
        ("not " * 200 + "adapter==posix", "too deeply"),
    ],
)
def test_what_is_no_expression_says_why(expression: str, message: str) -> None:
    with pytest.raises(RtmeterError, match=message):
        holds(expression)


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("adapter==posxi", "no cell has adapter posxi; did you mean posix?"),
        ("adapter in (null, posxi)", "no cell has adapter null; adapter is posix or ros2"),
        ("lock_memory==false and period==10ms", "no cell has period 10ms; did you mean 1ms?"),
        ("period==7h", "no cell has period 7h; period is 1ms"),
        ("scheduling==fifo:81", "no cell has scheduling fifo:81; did you mean fifo:80?"),
        ("cpus==2", "no cell has cpus 2; cpus is 0-1"),
        ("options.transprot==udp", "no cell has options.transprot; did you mean options.transport?"),
        ("block==x", "no cell has block"),
        ("adapter==posix and adapter==ros2", None),
        ("adapter!=nothing and period<1us", None),
    ],
)
def test_what_chooses_nothing_says_what_is_near(expression: str, said: str | None) -> None:
    cells = [
        facts(settle(GIVEN | {"adapter": adapter}), id=adapter, block=None, variant="A", repeat=1)
        for adapter in ("posix", "ros2")
    ]
    assert what_was_meant(expression, parse_fact, cells) == said


@pytest.mark.parametrize(("count", "more"), [(8, ""), (9, " …")])
def test_eight_values_are_named_and_that_there_are_more(count: int, more: str) -> None:
    cells = [facts(settle(GIVEN), id="a", block=f"part{n}", variant=None, repeat=1) for n in range(count)]
    named = " or ".join(f"part{n}" for n in range(8))
    said = what_was_meant("block==whole", parse_fact, cells)
    assert said == f"no cell has block whole; block is {named}{more}"


@given(st.text(alphabet="adpter=!<>()'\", notrx:0", max_size=40))
@example("adapter==posix")
def test_any_text_is_an_expression_or_refused(text: str) -> None:
    try:
        assert holds(text) in (True, False)
    except RtmeterError as error:
        assert error.message
