import math

import numpy as np
import pytest
from numpy.typing import NDArray
from processes import CLUSTERED, INDEPENDENT, Process
from rates import Rates, Sized
from simulation import Simulation

from rtmeter.errors import RtmeterError
from rtmeter.statistics.compare import Comparison, compare
from rtmeter.statistics.estimates import Estimates, estimates
from rtmeter.statistics.gate import judge_gate, parse_gate
from rtmeter.statistics.quantiles import OVER_RUNS
from rtmeter.statistics.views import LATER

N = 60_000
TEN_MINUTES = 600_000
SHORT = 5_000
DEADLINE = 400_000
EXPONENTIAL = Process("exponential")


def draw(generator: np.random.Generator, factor: float = 1.0, n: int = N) -> np.ndarray:
    return np.rint(EXPONENTIAL.draw(generator, n) * factor).astype(np.int64)


def pair(generator: np.random.Generator, factor: float) -> tuple[Estimates, Estimates]:
    return estimates(draw(generator), DEADLINE), estimates(draw(generator, factor), DEADLINE)


def outcomes(found: Comparison) -> dict[str, str]:
    return {shift.quantity: shift.outcome for shift in found.shifts}


def outcome_of_two_alike(generator: np.random.Generator, process: Process) -> str:
    deadline = round(process.level_ns(1e-3))
    a, b = (estimates(process.draw(generator, N), deadline) for _ in range(2))
    return compare([(a, b)]).outcome


def outcome_of_pairs_alike(generator: np.random.Generator, process: Process, pairs: int) -> str:
    deadline = round(process.level_ns(1e-3))
    runs = [(process.draw(generator, SHORT), process.draw(generator, SHORT)) for _ in range(pairs)]
    known = [tuple(estimates(run, deadline, percents=OVER_RUNS) for run in pair) for pair in runs]
    return compare([(a, b) for a, b in known]).outcome


def p999_of_a_tail_a_tenth_later(generator: np.random.Generator, process: Process) -> str:
    a, b = (process.draw(generator, TEN_MINUTES) for _ in range(2))
    late = b > process.level_ns(0.01)
    b[late] = np.rint(b[late] * 1.1).astype(np.int64)
    return outcomes(compare([(estimates(a, None), estimates(b, None))]))["p99.9"]


ALIKE = "two runs of one distribution are called different"


@pytest.mark.parametrize("process", INDEPENDENT + CLUSTERED, ids=lambda process: process.name)
def test_runs_of_one_distribution_are_seldom_called_different(
    process: Process, simulate: Simulation, rates: Rates, sized: Sized
) -> None:
    found = simulate(outcome_of_two_alike, sized("pairs", reduced=12, full=2000), process)
    different = (outcome in ("worse", "better") for outcome in found)
    rates.at_most(0.05, different, ALIKE, process.name, weak=True)


def test_runs_of_one_distribution_are_seldom_called_different_in_all_cases_together(
    simulate: Simulation, rates: Rates, sized: Sized
) -> None:
    size = sized("pairs", reduced=12, full=2000)
    cases = [simulate(outcome_of_two_alike, size, process) for process in INDEPENDENT + CLUSTERED]
    different = (outcome in ("worse", "better") for found in cases for outcome in found)
    rates.at_most(0.05, different, ALIKE, "all cases")


FOUND_OUT = "10 % more at p99.9 is found in 10 minutes of 1 kHz"


@pytest.mark.parametrize("process", INDEPENDENT, ids=lambda process: process.name)
def test_ten_percent_more_at_p999_is_found_in_ten_minutes(
    process: Process, simulate: Simulation, rates: Rates, sized: Sized
) -> None:
    found = simulate(p999_of_a_tail_a_tenth_later, sized("pairs", reduced=8, full=2000), process)
    worse = (outcome == "worse" for outcome in found)
    rates.at_least(0.90, worse, FOUND_OUT, process.name, weak=True)


def test_ten_percent_more_at_p999_is_found_in_all_cases_together(
    simulate: Simulation, rates: Rates, sized: Sized
) -> None:
    """The same runs: so that the reduced size, too, tells what is found from what is overlooked."""
    size = sized("pairs", reduced=8, full=2000)
    cases = [simulate(p999_of_a_tail_a_tenth_later, size, process) for process in INDEPENDENT]
    rates.at_least(0.90, (one == "worse" for found in cases for one in found), FOUND_OUT, "all cases")


def test_what_is_later_is_worse_and_what_is_earlier_improved(generator: np.random.Generator) -> None:
    slower, faster = compare([pair(generator, 1.3)]), compare([pair(generator, 0.7)])
    assert slower.outcome == "worse" and outcomes(slower)["p50"] == "worse"
    assert faster.outcome == "better" and outcomes(faster)["miss_ratio"] == "better"
    assert slower.pairs == 0


@pytest.mark.parametrize("pairs", [1, 3])
def test_a_quantile_that_is_the_maximum_says_nothing(generator: np.random.Generator, pairs: int) -> None:
    """Of 300 releases p99.9 is the latest one: of pairs that differ never so much, too."""
    drawn = [(draw(generator)[:300], draw(generator, 0.1)[:300]) for _ in range(pairs)]
    found = compare([(estimates(a, DEADLINE), estimates(b, DEADLINE)) for a, b in drawn])
    said = outcomes(found)
    assert said["p99.9"] == said["p99.99"] == "not enough data"
    only_there = compare(
        [(estimates(a, None, 0.95, ["99.9"]), estimates(b, None, 0.95, ["99.9"])) for a, b in drawn]
    )
    assert only_there.outcome == "not enough data"


@pytest.mark.parametrize("factor", [1, 0.6])
@pytest.mark.parametrize(
    ("late", "allowed"), [(0, {"better", "no difference"}), (8, {"not told"}), (-8, {"not told"})]
)
def test_where_p99_has_no_interval_it_may_not_be_seen_far_away(
    generator: np.random.Generator, factor: float, late: int, allowed: set[str]
) -> None:
    """Of 300 releases: a hundredfold p99 was no difference, or better where the median was."""

    def run(late: int, factor: float) -> NDArray[np.int64]:
        values = generator.permutation(np.arange(10_000, 10_300)) * factor
        values[: max(late, 0)] = 10**6
        return values.astype(np.int64)

    found = compare([(estimates(run(-late, 1), None), estimates(run(late, factor), None))])
    assert found.outcome in allowed


def test_a_good_answer_says_by_which_quantity_and_what_is_not_told(generator: np.random.Generator) -> None:
    steady = np.arange(10_000, 15_000)
    rare = steady.copy()
    rare[:8] = 10**6
    a, b, short = (estimates(generator.permutation(values), None) for values in (steady, rare, steady[:300]))
    assert (compare([(a, b)]).outcome, compare([(a, b)]).where) == ("no difference", " (not told of p99.9)")
    assert compare([(a, a)]).where == ""
    assert compare([(short, short)]).where == " by p90 (too short a run for p99)"


def test_worse_anywhere_is_worse(generator: np.random.Generator) -> None:
    b = draw(generator, 0.8)
    b[generator.random(N) < 0.01] += 10**7
    found = compare([(estimates(draw(generator), DEADLINE), estimates(b, DEADLINE))])
    assert found.outcome == "worse" and outcomes(found)["p50"] == "better"


def test_the_shift_is_stated_with_its_interval(generator: np.random.Generator) -> None:
    shift = {s.quantity: s for s in compare([pair(generator, 1.2)]).shifts}["p90"]
    assert shift.lower < 0.2 * EXPONENTIAL.level_ns(0.1) < shift.upper
    assert shift.relative == pytest.approx(0.2, abs=0.05)


def test_three_samples_are_not_enough() -> None:
    few = estimates(np.array([1, 2, 3]), None)
    assert compare([(few, few)]).outcome == "not enough data"


@pytest.mark.parametrize(("n", "told"), [(1, False), (7, False), (10, True)])
def test_a_ratio_without_a_miss_of_a_handful_of_releases_says_nothing(n: int, told: bool) -> None:
    few = estimates(np.full(n, 5_000), DEADLINE)
    assert outcomes(compare([(few, few)]))["miss_ratio"] == ("no difference" if told else "not told")
    assert compare([(few, few)]).outcome == ("no difference" if told else "not told")


def test_equal_constant_runs_do_not_differ() -> None:
    a, b = (estimates(np.full(N, value), DEADLINE) for value in (5_000, 6_000))
    assert compare([(a, a)]).outcome == "no difference"
    assert compare([(a, b)]).outcome == "worse"


def test_losses_are_worse(generator: np.random.Generator) -> None:
    lossy = draw(generator)
    lossy[generator.random(N) < 0.05] = LATER
    found = compare([(estimates(draw(generator), DEADLINE), estimates(lossy, DEADLINE))])
    assert outcomes(found)["p99"] == "worse" and outcomes(found)["miss_ratio"] == "worse"


def test_all_lost_twice_does_not_differ() -> None:
    lost = estimates(np.full(N, LATER), DEADLINE)
    assert compare([(lost, lost)]).outcome == "no difference"


# Interleaved pairs.


def test_pairs_see_through_what_both_runs_share(generator: np.random.Generator) -> None:
    pairs = []
    for slow in (1, 4, 2, 8, 3, 6):
        a, b = draw(generator, slow, 20_000), draw(generator, 1.1 * slow, 20_000)
        pairs.append((estimates(a, None, percents=("50",)), estimates(b, None, percents=("50",))))
    (shift,) = compare(pairs).shifts
    assert shift.outcome == "worse" and shift.relative == pytest.approx(0.1, rel=0.3)
    assert compare(pairs).pairs == 6


PAIRED = (EXPONENTIAL, Process("pareto", 0.4))


@pytest.mark.parametrize("pairs", [3, 5])
@pytest.mark.parametrize("process", PAIRED, ids=lambda process: process.name)
def test_pairs_of_one_distribution_are_seldom_called_different(
    process: Process, pairs: int, simulate: Simulation, rates: Rates, sized: Sized
) -> None:
    found = simulate(outcome_of_pairs_alike, sized("comparisons", reduced=15, full=2000), process, pairs)
    different = (outcome in ("worse", "better") for outcome in found)
    claim = f"{pairs} pairs of one distribution are called different"
    rates.at_most(0.05, different, claim, process.name, weak=True)


def test_pairs_of_one_distribution_are_seldom_called_different_in_all_cases_together(
    simulate: Simulation, rates: Rates, sized: Sized
) -> None:
    size = sized("comparisons", reduced=15, full=2000)
    cases = [simulate(outcome_of_pairs_alike, size, process, pairs) for process in PAIRED for pairs in (3, 5)]
    different = (outcome in ("worse", "better") for found in cases for outcome in found)
    rates.at_most(
        0.05, different, "pairs of one distribution are called different", "3 or 5 pairs, all cases"
    )


def test_pairs_that_happen_to_agree_are_not_sure(generator: np.random.Generator) -> None:
    """Three pairs with one miss more each: no spread between them, and no evidence either."""
    pairs = []
    for _ in range(3):
        a = draw(generator, n=SHORT).clip(max=DEADLINE)
        b = a.copy()
        b[0] = DEADLINE + 1
        pairs.append((estimates(a, DEADLINE), estimates(b, DEADLINE)))
    shift = {shift.quantity: shift for shift in compare(pairs).shifts}["miss_ratio"]
    assert shift.difference == pytest.approx(1 / SHORT)
    assert shift.outcome == "not told" and shift.lower < 0 < shift.upper


def test_pairs_see_that_runs_differ_anyway(generator: np.random.Generator) -> None:
    pairs = []
    for first, second in ((0, 200_000), (250_000, 50_000), (100_000, 300_000), (350_000, 150_000)):
        a, b = draw(generator, n=20_000) + first, draw(generator, n=20_000) + second
        pairs.append((estimates(a, None), estimates(b, None)))
    assert compare(pairs[:1]).outcome == "worse"
    assert compare(pairs).outcome == "not told"


# Gates.


@pytest.mark.parametrize(
    ("text", "quantity", "factor", "allowance"),
    [
        ("p99.9<+5%", "p99.9", 1.05, 0),
        ("p50 < +10us", "p50", 1.0, 10_000),
        ("p99<-1ms", "p99", 1.0, -1_000_000),
        ("p99.99<-20%", "p99.99", 0.8, 0),
        ("miss_ratio<+1e-6", "miss_ratio", 1.0, 1e-6),
        ("miss_ratio<+50%", "miss_ratio", 1.5, 0),
    ],
)
def test_gates_are_read(text: str, quantity: str, factor: float, allowance: float) -> None:
    gate = parse_gate(text)
    assert (gate.quantity, gate.allowance) == (quantity, allowance)
    assert gate.factor == pytest.approx(factor)


@pytest.mark.parametrize(
    "text",
    ["p100<+5%", "p0<+5%", "max<+5%", "p99", "p99<5%", "p99>+5%", "p99<+5", "p99<+x%", "", "p99<+nan%"],
)
def test_what_is_no_gate_is_refused_with_a_remedy(text: str) -> None:
    with pytest.raises(RtmeterError) as error:
        parse_gate(text)
    assert error.value.field == "gate" and error.value.value == text and error.value.remedy


def test_a_gate_passes_fails_or_cannot_tell(generator: np.random.Generator) -> None:
    def judged(text: str, factor: float) -> str:
        return judge_gate(parse_gate(text), [pair(generator, factor)]).outcome

    assert judged("p90<+20%", 1.0) == "pass"
    assert judged("p90<+20%", 1.5) == "fail"
    assert judged("p90<+20%", 1.2) == "inconclusive"
    assert judged("p90<+30us", 1.1) == "pass"
    assert judged("p90<+1us", 1.3) == "fail"
    assert judged("p90<-10%", 0.7) == "pass"
    assert judged("miss_ratio<+0.01", 1.0) == "pass"
    assert judged("miss_ratio<+0.01", 2.0) == "fail"


def test_a_gate_judges_pairs_together(generator: np.random.Generator) -> None:
    pairs = [pair(generator, 1.0) for _ in range(6)]
    found = judge_gate(parse_gate("p90<+10%"), pairs)
    assert found.outcome == "pass" and found.excess.upper < 0


def test_a_gate_without_data_cannot_tell() -> None:
    few = estimates(np.array([1, 2, 3]), None)
    found = judge_gate(parse_gate("p99.9<+5%"), [(few, few)])
    assert found.outcome == "inconclusive" and math.isnan(found.excess.upper)
