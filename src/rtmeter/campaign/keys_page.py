"""The page of every key of a campaign, from the options' declaration:
``python -m rtmeter.campaign.keys_page docs/campaign-keys.md``."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rtmeter.campaign.option_types import For
from rtmeter.campaign.options import CellOptions
from rtmeter.campaign.schemas import campaign_schema
from rtmeter.values import format_duration

_Schema = Mapping[str, Any]

_HEAD = """# Every key of a campaign file

How lists, variants and defaults make a matrix, with examples, says [the campaign file](../spec/campaign.md);
[loop-500hz.yaml](../campaigns/loop-500hz.yaml) is a campaign to copy. This page is made of the options'
declaration: `python -m rtmeter.campaign.keys_page docs/campaign-keys.md`.
"""

_OPTIONS = """
## Options of a cell

In a block, in `defaults` and in a variant. Each may be a list, which is an axis. *For* says which
measurements an option means something for: for others it is an error in a block, and passed over in
`defaults`. Those of `rtmeter measure` are the same, with dashes: `--warm-up 1s`;
mappings are given key by key, `--option KEY=VALUE`, so too `--condition`, `--host`, `--server-option` and
`--server-condition`; a mapping of `explain` is `--explain-with`. `requirement` groups
`deadline`, `miss_ratio`, `confidence`, `criticality` and `horizon`."""

_PARTS = {
    "SystemSettings": "`conditions` and `server_conditions`",
    "LoadAsked": "`load` and `server_load`, in the place of a word",
    "TrafficAsked": "`traffic`, in the place of a rate",
    "SecondTopic": "`second_topic`, in the place of a word",
    "ExplainAsked": "`explain`, in the place of `true`",
    "Hosts": "`hosts`",
}
"""Which keys are mappings of further ones."""

_KINDS = {"ns|us": "a duration", "KiB": "a size", "bit/s": "a rate", "(-": "CPUs"}
"""By what the pattern of a text has in it."""

_TYPES = {"string": "text", "integer": "a whole number", "array": "a list", "object": "a mapping"}


def page() -> str:
    """The page in Markdown."""
    whole, options = campaign_schema(), CellOptions.model_json_schema()
    block = whole["$defs"]["block"]["properties"]
    lines = [_HEAD, "## The file", *_table(whole["properties"]), "\n## A block", *_table(block), _OPTIONS]
    measured = {name: _measurements(name) for name in options["properties"]}
    lines += _table(options["properties"], measured)
    for name, keys in _PARTS.items():
        lines += [f"\n## Keys of {keys}", *_table(options["$defs"][name]["properties"])]
    return "\n".join(lines) + "\n"


def _table(keys: Mapping[str, _Schema], measured: Mapping[str, str] | None = None) -> Iterator[str]:
    """``measured``: which measurements each key is for; without, the table does not say it."""
    columns = ["key", *(["for"] if measured else []), "values", "default", "meaning"]
    yield f"\n| {' | '.join(columns)} |\n|{'---|' * len(columns)}"
    for name, about in keys.items():
        found = [f"`{name}`", *([measured[name]] if measured else []), _values(about)]
        found += [_default(about), about.get("description", "").replace("|", r"\|")]
        yield f"| {' | '.join(found)} |"


def _measurements(name: str) -> str:
    of = [one for one in CellOptions.model_fields[name].metadata if isinstance(one, For)]
    return ", ".join(of[0].measurements) if of else "all"


def _values(about: _Schema) -> str:
    """The choices, an example, or what kind of value it is."""
    choices = [one for one in about.get("anyOf", [about]) if one.get("type") != "null"]
    first = next(iter(choices[0].get("anyOf", choices)))
    if words := [word for one in choices for word in one.get("enum", ())]:
        return ", ".join(f"`{word}`" for word in words)
    if first.get("type") == "boolean":
        return "`true`, `false`"
    if examples := about.get("examples"):
        written = (one if isinstance(one, str) else json.dumps(one) for one in examples)
        return f"e.g. {', '.join(f'`{one}`' for one in written)}"
    least, most = first.get("minimum"), first.get("maximum")
    if least is not None and most is not None:
        return f"{least:,} to {most:,}"
    pattern, kind = first.get("pattern", ""), first.get("type", "object")
    by_pattern = (named for part, named in _KINDS.items() if part in pattern)
    return next(by_pattern, _TYPES["string" if isinstance(kind, list) else kind])


def _default(about: _Schema) -> str:
    """As people write it; empty where its description says it, or there is none."""
    value = about.get("default")
    if value is None or value == {} or "(default" in about.get("description", ""):
        return ""
    if isinstance(value, dict):
        return f"`{value['policy']}`"
    if isinstance(value, bool | str):
        return f"`{str(value).lower()}`"
    return f"`{format_duration(value) if 'ns|us' in str(about) else f'{value:g}'}`"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
