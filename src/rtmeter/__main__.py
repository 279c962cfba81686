"""`python -m rtmeter`."""

from rtmeter.cli import main

main()
