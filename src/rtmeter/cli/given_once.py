"""Options with one value: a second one is refused; the last one would win without a word."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand

from rtmeter.errors import RtmeterError


class GivenOnce(TyperCommand):
    """A command that refuses a second value for any option that does not take several."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parses as it would be, but for what is given twice."""
        parser: Any = self.make_parser(ctx)
        given, _, order = parser.parse_args(list(args))
        once = [one for one in order if one.param_type_name == "option" and not (one.multiple or one.is_flag)]
        if twice := next((one for one in once if once.count(one) > 1), None):
            field, value = max(twice.opts, key=len), given[twice.name]
            raise RtmeterError("is given a second time", field=field, value=value, remedy="give it once")
        return super().parse_args(ctx, args)
