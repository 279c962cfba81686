"""A campaign on a target that boots in the middle of its second cell."""

from __future__ import annotations

_CAMPAIGN = """
name: boots
defaults:
  on: {url}
  adapter: posix
  measurement: wakeup
  period: {period}
  warm_up: 0ms
  conditions: {condition}
cells:
  - {{name: whole, samples: 20}}
  - {{name: cut, samples: {samples}}}
"""


def campaign(url: str, period: str, condition: str, samples: int) -> str:
    """``condition``: what is set there meanwhile; ``samples``: of the cell that is cut."""
    return _CAMPAIGN.format(url=url, period=period, condition=f"{{{condition}}}", samples=samples)
