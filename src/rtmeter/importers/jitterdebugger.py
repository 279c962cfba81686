"""jitterdebugger's results.json: versions 1 (microseconds) to 3 (which states its resolution)."""

from __future__ import annotations

from rtmeter.importers.base import CUT, US, Imported, ImportedSeries, SourceFile, histogram, machine_of

VERSIONS = (1, 2, 3)


def read(source: SourceFile) -> Imported:
    """The file that ``jitterdebugger -o`` (once ``-f``) writes. Values beyond the last bin are counted but
    not kept (they vanish from its histogram)."""
    document = source.json()
    version = document.get("version", 1)
    if isinstance(version, bool) or version not in VERSIONS:
        remedy = "use a later rtmeter"
        raise source.error("is a version that is not known", field="version", value=version, remedy=remedy)
    cpus = document.get("cpu")
    if not isinstance(cpus, dict) or not cpus:
        raise source.error("has no results of any CPU", field="cpu", remedy=CUT)
    system = source.section(document, "sysinfo")
    unit_ns = source.count(system.get("resolution_in_ns", US), "resolution_in_ns") or US
    most_bins = 10**9 // unit_ns // 1000
    series: list[ImportedSeries] = []
    for name, cpu in cpus.items():
        bins = cpu.get("histogram") if isinstance(cpu, dict) else None
        if not isinstance(bins, dict):
            raise source.error("has no histogram", field=f"cpu {name}", remedy=CUT)
        found = histogram(
            source,
            {
                source.count(edge, f"bin of CPU {name}"): source.count(count, f"bin {edge} of CPU {name}")
                for edge, count in bins.items()
            },
            unit_ns,
            name=f"CPU {name}",
            total=source.count(cpu.get("count"), f"count of CPU {name}"),
            over_from=most_bins,
            smallest=source.count(cpu.get("min"), f"min of CPU {name}"),
            largest=_largest(source, cpu.get("max"), unit_ns, name),
        )
        series.append(ImportedSeries(f"CPU {name}", histogram=found))
    apart = ("nodename", "release", "version", "machine", "resolution_in_ns")
    facts = {key: str(value) for key, value in system.items() if key not in apart}
    facts |= {"file_version": str(document["version"])} if "version" in document else {}
    return Imported(
        "jitterdebugger",
        "wake-up latency",
        tuple(series),
        verified=True,
        unit={1: "ns", US: "us"}.get(unit_ns) if "resolution_in_ns" in system else None,
        machine=machine_of(system),
        facts=facts,
    )


def _largest(source: SourceFile, text: object, unit_ns: int, name: str) -> int:
    return source.time_ns(text, unit_ns, f"max of CPU {name}") // unit_ns
