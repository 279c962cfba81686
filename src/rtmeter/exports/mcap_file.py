"""An MCAP file (mcap.dev/spec) that takes the messages of a channel by the array: all of one size.

The library's writer takes one message a call, some 8 us each: 11 minutes for a day at 1 kHz. Its records are
used here; what it does for each message is done by the chunk.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import zstandard
from mcap.data_stream import RecordBuilder
from mcap.opcode import Opcode
from mcap.records import (
    Channel,
    Chunk,
    ChunkIndex,
    DataEnd,
    Footer,
    Header,
    McapRecord,
    Schema,
    Statistics,
    SummaryOffset,
)

from rtmeter.statistics.quantities import Ints

MAGIC = b"\x89MCAP0\r\n"
CHUNK_BYTES = 1 << 20
_FOOTER_HEAD_BYTES = 9 + 16  # opcode, length and the two offsets: what its checksum covers
_HEAD = [("opcode", "u1"), ("length", "<u8"), ("channel", "<u2"), ("sequence", "<u4")]
_HEAD += [("log_time", "<u8"), ("publish_time", "<u8")]
_LENGTH_OF = 2 + 4 + 8 + 8  # what of the head the length counts, before the data


class McapFile:
    """Writes into ``stream`` from its present place, which must be its beginning; finish() ends it."""

    def __init__(self, stream: IO[bytes], profile: str, library: str) -> None:
        self._stream = stream
        self._schemas: list[Schema] = []
        self._channels: list[Channel] = []
        self._chunks: list[ChunkIndex] = []
        self._counts: dict[int, int] = {}
        self._span: tuple[int, int] | None = None
        stream.write(MAGIC)
        self._put(Header(profile, library))

    def channel(self, topic: str, name: str, definition: str, metadata: Mapping[str, str]) -> int:
        """A channel of ROS 2 messages in CDR; returns its number."""
        number = len(self._channels) + 1
        self._schemas.append(Schema(id=number, data=definition.encode(), encoding="ros2msg", name=name))
        self._channels.append(
            Channel(id=number, topic=topic, message_encoding="cdr", schema_id=number, metadata=dict(metadata))
        )
        self._counts[number] = 0
        self._put(self._schemas[-1])
        self._put(self._channels[-1])
        return number

    def messages(self, channel: int, times_ns: Ints, data: npt.NDArray[Any]) -> None:
        """Adds a message a row of ``data`` (its bytes), at ``times_ns`` ≥ 0; shapes (messages,)."""
        layout = np.dtype([*_HEAD, ("data", data.dtype)])
        most = max(1, CHUNK_BYTES // layout.itemsize)
        for first in range(0, len(data), most):
            part = slice(first, first + most)
            self._chunk(channel, times_ns[part].astype(np.uint64), data[part], layout)

    def _chunk(
        self, channel: int, times: npt.NDArray[np.uint64], data: npt.NDArray[Any], layout: np.dtype[Any]
    ) -> None:
        rows = np.empty(len(data), layout)
        rows["opcode"], rows["length"] = Opcode.MESSAGE, _LENGTH_OF + data.dtype.itemsize
        begin = self._counts[channel]
        rows["channel"], rows["sequence"] = channel, np.arange(begin, begin + len(data)) % 2**32
        rows["log_time"] = rows["publish_time"] = times
        rows["data"] = data
        content = rows.tobytes()
        packed = zstandard.compress(content)
        first, last = int(times.min()), int(times.max())
        at, crc = self._stream.tell(), zlib.crc32(content)
        chunk = Chunk(
            compression="zstd",
            data=packed,
            message_end_time=last,
            message_start_time=first,
            uncompressed_crc=crc,
            uncompressed_size=len(content),
        )
        length = self._put(chunk)
        places = np.column_stack((times, np.arange(len(data), dtype=np.uint64) * layout.itemsize))
        index = np.array(
            [(Opcode.MESSAGE_INDEX, 6 + places.nbytes, channel, places.nbytes)], "u1,<u8,<u2,<u4"
        )
        self._stream.write(index.tobytes() + places.astype("<u8").tobytes())
        self._chunks.append(
            ChunkIndex(
                chunk_length=length,
                chunk_start_offset=at,
                compression="zstd",
                compressed_size=len(packed),
                message_end_time=last,
                message_index_length=index.nbytes + places.nbytes,
                message_index_offsets={channel: at + length},
                message_start_time=first,
                uncompressed_size=len(content),
            )
        )
        self._counts[channel] += len(data)
        known = self._span or (first, last)
        self._span = min(first, known[0]), max(last, known[1])

    def finish(self) -> None:
        """Writes what readers look things up in."""
        self._put(DataEnd(0))
        start = self._stream.tell()
        summary, offsets = RecordBuilder(), list[SummaryOffset]()
        first, last = self._span or (0, 0)
        statistics = Statistics(
            attachment_count=0,
            channel_count=len(self._channels),
            channel_message_counts=self._counts,
            chunk_count=len(self._chunks),
            message_count=sum(self._counts.values()),
            message_end_time=last,
            message_start_time=first,
            metadata_count=0,
            schema_count=len(self._schemas),
        )
        groups: list[tuple[Opcode, list[Any]]] = [
            (Opcode.SCHEMA, self._schemas),
            (Opcode.CHANNEL, self._channels),
            (Opcode.STATISTICS, [statistics]),
            (Opcode.CHUNK_INDEX, self._chunks),
        ]
        for opcode, records in groups:
            begin = summary.count
            for record in records:
                record.write(summary)
            group = {"group_start": start + begin, "group_length": summary.count - begin}
            offsets.append(SummaryOffset(group_opcode=opcode, **group))
        offsets_start = start + summary.count
        for offset in offsets:
            offset.write(summary)
        found = _taken(summary)
        footer = Footer(summary_start=start, summary_offset_start=offsets_start, summary_crc=0)
        footer.write(summary)
        footer.summary_crc = zlib.crc32(_taken(summary)[:_FOOTER_HEAD_BYTES], zlib.crc32(found))
        self._stream.write(found)
        self._put(footer)
        self._stream.write(MAGIC)

    def _put(self, record: McapRecord) -> int:
        """Writes the record; returns its length."""
        builder = RecordBuilder()
        record.write(builder)
        content = _taken(builder)
        self._stream.write(content)
        return len(content)


def _taken(builder: RecordBuilder) -> bytes:
    """What was written into it, which is empty then."""
    return bytes(builder.end())  # type: ignore[no-untyped-call]
