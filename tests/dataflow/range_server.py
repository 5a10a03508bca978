"""Serves the files of a folder over HTTP with range requests, and injects faults.

usage: range_server.py FOLDER STATE

Writes its port to STATE/port and a line "PATH BEGIN-END" for each request to STATE/requests. With
STATE/key and STATE/cert it serves over HTTPS. STATE/fault, if it exists, contains
"KIND TIMES FIRST COUNT". Ranges are numbered from 0 in the order in which they are first requested
after the fault was written; for ranges FIRST to FIRST + COUNT - 1, the first TIMES attempts fail.
Kinds: error (HTTP 500), cut (half a response), wrong (a flipped bit), slow (80 bytes a second),
drip (1.5 KB a second), away (no response), whole (the whole file instead of the range), denied
(HTTP 403), moved (HTTP 307 to the URL in STATE/elsewhere), shifted (one byte later than requested),
other (a different ETag), header (an endless header; STATE/header gets the number of bytes sent).
"""

import http.server
import pathlib
import ssl
import sys
import threading
import time

folder, state = map(pathlib.Path, sys.argv[1:])
lock = threading.Lock()
attempts = {}  # by range, since the fault was written
told = None


def fault(key):
    """Logs a request; returns the kind of fault to inject, or None."""
    global told
    file = state / "fault"
    text = file.read_text() if file.exists() else ""
    with lock:
        with open(state / "requests", "a") as log:
            log.write(" ".join(map(str, key)) + "\n")
        if text != told:
            attempts.clear()
            told = text
        if not text:
            return None
        kind, times, first, count = text.split()
        before = attempts.setdefault(key, [len(attempts), 0])
        before[1] += 1
        chosen = int(first) <= before[0] < int(first) + int(count)
        return kind if chosen and before[1] <= int(times) else None


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        file = folder / self.path.lstrip("/")
        span = self.headers.get("Range", "bytes=0-")[len("bytes=") :]
        kind = fault((self.path, span))
        if kind == "away":
            self.close_connection = True
            return
        if kind == "header":
            return self.send_endless_header()
        if kind == "error":
            return self.send_error(500, "no such luck")
        if kind == "denied":
            return self.send_error(403, "not you")
        if kind == "moved":
            self.send_response(307)
            self.send_header("Location", (state / "elsewhere").read_text() + self.path)
            self.send_header("Content-Length", "0")
            return self.end_headers()
        if not file.is_file():
            return self.send_error(404)
        whole = file.read_bytes()
        begin, end = (int(n) if n else len(whole) - 1 for n in span.split("-"))
        if kind == "shifted":
            begin, end = begin + 1, end + 1
        body = bytearray(whole[begin : end + 1])
        self.send_response(200 if kind == "whole" else 206)
        if kind == "whole":
            body = whole
        else:
            self.send_header("Content-Range", f"bytes {begin}-{end}/{len(whole)}")
        self.send_header("ETag", '"two"' if kind == "other" else '"one"')
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if kind == "wrong":
            body[len(body) // 2] ^= 4
        if kind == "cut":
            body = body[: len(body) // 2]
            self.close_connection = True
        if kind in ("slow", "drip"):
            step = 20 if kind == "slow" else 375
            for i in range(0, len(body), step):
                self.wfile.write(body[i : i + step])
                self.wfile.flush()
                time.sleep(0.25)
        else:
            self.wfile.write(body)

    def send_endless_header(self):
        sent = 0
        try:
            self.wfile.write(b"HTTP/1.1 206 Partial Content\r\n")
            while True:
                sent += self.wfile.write(b"X-More: " + b"a" * 8000 + b"\r\n")
        except OSError:
            with open(state / "header", "a") as log:
                log.write(f"{sent}\n")
        self.close_connection = True


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 64  # a trainer opens 16 connections at once

    def handle_error(self, *_):  # if a client disconnects
        pass


server = Server(("127.0.0.1", 0), Handler)
if (state / "cert").exists():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(state / "cert", state / "key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
(state / "port.part").write_text(str(server.server_address[1]))
(state / "port.part").rename(state / "port")
server.serve_forever()
