"""The keys ``load`` and ``traffic``: what other programs make the machine endure while a cell is measured."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, Field, StringConstraints, model_validator

from rtmeter import values
from rtmeter.campaign.option_types import SIZE, STRICT, Cpus, Size, as_written, mapping, one_line, text

PRESETS: dict[str, dict[str, int]] = {
    "idle": {},
    "cpu80": {"cpu": 0, "cpu_percent": 80},
    "erle_pc": {"cpu": 8, "vm": 8, "io": 8, "hdd": 8},
    "erle_device": {"cpu": 2, "vm": 2, "io": 2, "hdd": 2},
    "stress10": {"cpu": 10, "vm": 10, "io": 10, "hdd": 10},
}
"""Loads of the published measurements by name (docs/conditions.md): the workers they are made of."""

_LOAD_REMEDY = f"choose {', '.join(PRESETS)}, or give workers, e.g. cpu=8,vm=8,vm_bytes=64MiB"
_NEEDS = {"cpu_percent": "cpu", "vm_bytes": "vm", "hdd_bytes": "hdd"}

Workers = Annotated[int, Field(ge=0, le=4096)]
Rate = Annotated[
    int, BeforeValidator(values.parse_rate), text(r"^\d+(\.\d+)?\s*[kMG]?bit/s$|^(0|none)$", or_zero=True)
]
Stressor = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]*$")]
Namespace = Annotated[str, StringConstraints(pattern=r"^[\w.-]+$")]


class LoadAsked(BaseModel):
    """Workers of stress-ng by kind, or those of a preset; 0 workers: one for each CPU. Sizes are bytes."""

    model_config = STRICT

    preset: Annotated[
        Literal["idle", "cpu80", "erle_pc", "erle_device", "stress10"] | None,
        Field(description="A named load, which the other keys change.", examples=["cpu80"]),
    ] = None
    cpu: Annotated[Workers | None, Field(description="CPU workers (0: one for each CPU).")] = None
    cpu_percent: Annotated[
        int | None, Field(description="Share of a CPU that each CPU worker keeps busy.", ge=1, le=100)
    ] = None
    vm: Annotated[Workers | None, Field(description="Workers that map, write and unmap memory.")] = None
    vm_bytes: Annotated[
        Size | None, Field(description="Memory of all vm workers together.", examples=["64MiB"], ge=4096)
    ] = None
    io: Annotated[Workers | None, Field(description="Workers that call sync().")] = None
    hdd: Annotated[Workers | None, Field(description="Workers that write and read files.")] = None
    hdd_bytes: Annotated[
        Size | None, Field(description="Files of all hdd workers together.", examples=["1GiB"], ge=65536)
    ] = None
    stressors: Annotated[
        dict[Stressor, Workers] | None,
        Field(description="Workers of any other stressor of stress-ng.", examples=[{"timer": 2}]),
    ] = None
    cpus: Annotated[Cpus | None, Field(description="CPUs that it runs on (default: all).")] = None

    @model_validator(mode="before")
    @classmethod
    def _as_written(cls, given: Any) -> Any:
        if isinstance(given, str):
            given = mapping(given, "preset", _LOAD_REMEDY)
            if given.get("preset", "idle") not in PRESETS:
                raise ValueError("is no load", _LOAD_REMEDY)
        if not isinstance(given, Mapping):
            return given
        return PRESETS.get(str(given.get("preset")), {}) | dict(given)

    @model_validator(mode="after")
    def _check(self) -> Self:
        for key, workers in _NEEDS.items():
            if getattr(self, key) is not None and getattr(self, workers) is None:
                raise ValueError(f"has {key} but no {workers} workers", f"add {workers}, e.g. {workers}: 2")
        kinds = (self.cpu, self.vm, self.io, self.hdd, self.stressors)
        if self.cpus is not None and all(kind is None for kind in kinds):
            raise ValueError("has cpus but no workers", "add workers, e.g. cpu: 2")
        return self


class TrafficAsked(BaseModel):
    """Streams of iperf3 beside what is measured. Rates are bit/s; 0: nothing in that direction."""

    model_config = STRICT

    rate: Annotated[Rate, Field(description="From here to the other end.", examples=["40Mbit/s"])] = 0
    reverse_rate: Annotated[
        Rate, Field(description="From the other end to here (default: as rate).", examples=["40Mbit/s"])
    ] = 0
    protocol: Annotated[Literal["udp", "tcp"], Field(description="What carries it.")] = "udp"
    to: Annotated[
        str | None,
        Field(
            description="The other end (default: the other host, or 127.0.0.1). An address of this machine "
            "gets a server of its own; elsewhere one must listen.",
            examples=["192.168.0.2"],
            min_length=1,
        ),
    ] = None
    port: Annotated[
        int | None,
        Field(
            description="Where the server listens, for the other direction on the next port (default: a free "
            "one; elsewhere 5201).",
            ge=1,
            le=65534,
        ),
    ] = None
    from_namespace: Annotated[
        Namespace | None, Field(description="Network namespace of the near end.", examples=["left"])
    ] = None
    to_namespace: Annotated[
        Namespace | None, Field(description="Network namespace of the other end.", examples=["right"])
    ] = None
    datagram: Annotated[
        Size | None,
        Field(description="Payload of a datagram or write (default: iperf3's).", ge=16, le=65507),
    ] = None
    cpus: Annotated[Cpus | None, Field(description="CPUs that iperf3 runs on (default: all).")] = None

    @model_validator(mode="before")
    @classmethod
    def _as_written(cls, given: Any) -> Any:
        if isinstance(given, str):
            given = mapping(given, "rate", "write e.g. rate=40Mbit/s,to=192.168.0.2")
        if not isinstance(given, Mapping):
            return given
        given = dict(given)
        if given.get("rate") == "none":
            given["rate"] = 0
        if given and not {"rate", "reverse_rate"} & given.keys():
            raise ValueError("has no rate", "add rate, e.g. rate: 40Mbit/s")
        return {"reverse_rate": given.get("rate", 0)} | given


def is_address(text: str) -> bool:
    """Whether it is an IP address, not a name."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


_COUNT = dict.fromkeys(("cpu", "cpu_percent", "vm", "io", "hdd", r"stressors\.[a-z][a-z0-9-]*"), r"\d+")
_ROOM = {"vm_bytes": SIZE, "hdd_bytes": SIZE}
_PRESET = "|".join(PRESETS)
_LoadText = one_line(_PRESET, {"preset": _PRESET} | _COUNT | _ROOM | {"cpus": r"\d+(-\d+)?"})
_RATE = r"\d+(\.\d+)?\s*[kMG]?bit/s|0"
_OF_TRAFFIC = {"rate": f"{_RATE}|none", "reverse_rate": _RATE, "protocol": "udp|tcp", "to": "[^,=]+"}
_OF_TRAFFIC |= {"port": r"\d+", "from_namespace": r"[\w.-]+", "to_namespace": r"[\w.-]+"}
_OF_TRAFFIC |= {"datagram": SIZE, "cpus": r"\d+(-\d+)?"}
_TrafficText = one_line(f"{_RATE}|none", _OF_TRAFFIC, needs="(reverse_)?rate")
LoadOption = Annotated[LoadAsked, as_written(LoadAsked | _LoadText)]
TrafficOption = Annotated[TrafficAsked, as_written(TrafficAsked | _TrafficText)]
LOAD = Field(
    description="Load by stress-ng: idle, cpu80, erle_pc, erle_device, stress10, or workers "
    "(cpu=8,vm=8,vm_bytes=64MiB).",
    examples=["cpu80"],
    exclude=True,
)
SERVER_LOAD = Field(description="Load of the server's host (default: load).", examples=["idle"], exclude=True)
TRAFFIC = Field(
    description="Traffic by iperf3, both directions: a rate, or rate=40Mbit/s,to=IP,protocol=tcp.",
    examples=["40Mbit/s"],
    exclude=True,
)
"""What the options are, in help and schemas."""
