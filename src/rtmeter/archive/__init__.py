"""The cells of many machines → tables in a folder or an object store, written by many at once and without a
server (spec/archive.md); questions → distributions of groups, verdicts over them, regressions
(docs/archive.md)."""
