"""Measures how punctual a robot's middleware is, and judges whether it meets its deadline."""


def version() -> str:
    """The installed version; ``0+checkout`` when run from a source tree that is not installed."""
    from importlib import metadata  # not at start: it costs a tenth of `rtmeter --help`

    try:
        return metadata.version("rtmeter")
    except metadata.PackageNotFoundError:
        return "0+checkout"
