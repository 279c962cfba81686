"""The adapter iceoryx keeps the contract: apart from the others, since a machine has one daemon of it."""

from __future__ import annotations

import pytest
from contract import assert_kept, check_adapter

from rtmeter.measure.probe.probes import find_probes


@pytest.mark.skipif("iceoryx" not in find_probes(), reason="the adapter iceoryx is not built")
@pytest.mark.full_only("its own tests run")
@pytest.mark.timeout(3600)
def test_iceoryx_keeps_the_contract() -> None:
    assert_kept(*check_adapter("iceoryx"))
