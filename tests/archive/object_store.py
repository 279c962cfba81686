"""An object store for tests: what deltalake asks of S3, in memory, on loopback.

A PUT with ``If-None-Match: *`` is refused where the object is there: so writers at once tell who came first.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

BUCKET = "lab"


class Store(ThreadingHTTPServer):
    """``objects`` by key; ``refused``: how many writes came second; ``meeting``: where the first writes that
    must not replace anything wait for one another, so that they are of the same key."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Requests)
        self.objects: dict[str, bytes] = {}
        self.refused = 0
        self.lock = threading.Lock()
        self.meeting: threading.Barrier | None = None

    def meet(self) -> None:
        meeting, limit_s = self.meeting, 60
        if meeting is not None:
            meeting.wait(limit_s)
            self.meeting = None

    @property
    def environment(self) -> dict[str, str]:
        """What finds it."""
        names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION")
        return dict.fromkeys(names, "anybody") | {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.server_port}",
            "AWS_ALLOW_HTTP": "true",
        }


class Requests(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Store

    @property
    def key(self) -> str:
        return unquote(urlsplit(self.path).path).removeprefix(f"/{BUCKET}").lstrip("/")

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        new = self.headers.get("If-None-Match") == "*"
        if new:
            self.server.meet()
        with self.server.lock:
            second = new and self.key in self.server.objects
            if second:
                self.server.refused += 1
            else:
                self.server.objects[self.key] = body
        self.answer(412 if second else 200, ETag=_etag(body))

    def do_GET(self) -> None:
        query = parse_qs(urlsplit(self.path).query)
        body = self.server.objects.get(self.key)
        if not self.key:
            prefix, after = (query.get(name, [""])[0] for name in ("prefix", "start-after"))
            self.answer(200, self.listed(prefix, after, flat="delimiter" in query))
        elif body is None:
            self.answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
        elif asked := self.headers.get("Range"):
            first, _, last = asked.removeprefix("bytes=").partition("-")
            start = int(first) if first else len(body) - int(last)
            end = min(int(last) + 1 if first and last else len(body), len(body))
            where = f"bytes {start}-{end - 1}/{len(body)}"
            self.answer(206, body[start:end], ETag=_etag(body), Content_Range=where)
        else:
            self.answer(200, body, ETag=_etag(body))

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        """Deletes several."""
        asked = self.rfile.read(int(self.headers["Content-Length"])).decode()
        keys = [part.partition("</Key>")[0] for part in asked.split("<Key>")[1:]]
        with self.server.lock:
            for key in keys:
                self.server.objects.pop(key, None)
        gone = "".join(f"<Deleted><Key>{escape(key)}</Key></Deleted>" for key in keys)
        self.answer(200, f"<DeleteResult>{gone}</DeleteResult>".encode())

    def do_DELETE(self) -> None:
        with self.server.lock:
            self.server.objects.pop(self.key, None)
        self.answer(204)

    def listed(self, prefix: str, after: str, *, flat: bool) -> bytes:
        """Those below the prefix, and after a key; ``flat``: in its folder, with the folders in it."""
        with self.server.lock:
            objects = dict(self.server.objects)
        found = {key: body for key, body in objects.items() if key.startswith(prefix) and key > after}
        rest = {key: key.removeprefix(prefix) for key in found}
        folders = {prefix + rest[key].partition("/")[0] + "/" for key in found if flat and "/" in rest[key]}
        shown = {key: body for key, body in found.items() if not flat or "/" not in rest[key]}
        contents = "".join(
            f"<Contents><Key>{escape(key)}</Key><Size>{len(body)}</Size><ETag>{_etag(body)}</ETag>"
            "<LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>"
            for key, body in sorted(shown.items())
        )
        common = "".join(f"<CommonPrefixes><Prefix>{escape(p)}</Prefix></CommonPrefixes>" for p in folders)
        return f"<ListBucketResult>{contents}{common}</ListBucketResult>".encode()

    def answer(self, code: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing."""


def _etag(body: bytes) -> str:
    return f'"{hashlib.md5(body, usedforsecurity=False).hexdigest()}"'


@contextmanager
def object_store() -> Iterator[Store]:
    with Store() as store:
        thread = threading.Thread(target=store.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield store
        finally:
            store.shutdown()
            thread.join()
