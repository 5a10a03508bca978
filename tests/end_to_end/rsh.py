#!/usr/bin/env python3
"""Replaces ssh and sshd between hosts that are network namespaces of this machine:

  rsh.py serve           runs as the first process of a host
  rsh.py HOST COMMAND    runs a command there; returns its exit code, or 255 if disconnected
"""
import socket
import struct
import subprocess
import sys
import threading

PORT = 2222


def pump(read, write, close=lambda: None):
    """Returns a thread that copies until the end of its input."""
    def copy():
        try:
            while data := read(65536):
                write(data)
        except OSError:
            pass
        try:
            close()
        except OSError:
            pass
    thread = threading.Thread(target=copy, daemon=True)
    thread.start()
    return thread


def answer(connection):
    """Runs the received command and sends frames: kind (0 = exit code, 1 = stdout, 2 = stderr),
    number of bytes, bytes."""
    lock = threading.Lock()

    def send(kind, data):
        with lock:
            connection.sendall(struct.pack("!BI", kind, len(data)) + data)

    with connection, connection.makefile("rb") as words:
        command = words.read(struct.unpack("!I", words.read(4))[0])
        run = subprocess.Popen(["sh", "-c", command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, bufsize=0, start_new_session=True)
        pump(words.read1, run.stdin.write, run.stdin.close)
        for thread in [pump(run.stdout.read, lambda data: send(1, data)),
                       pump(run.stderr.read, lambda data: send(2, data))]:
            thread.join()
        send(0, struct.pack("!i", run.wait()))


def serve():
    with socket.create_server(("", PORT)) as server:
        while True:
            threading.Thread(target=answer, args=(server.accept()[0],), daemon=True).start()


def call(host, command):
    try:
        connection = socket.create_connection((host, PORT), timeout=5)
        connection.settimeout(None)
        connection.sendall(struct.pack("!I", len(command)) + command)
        pump(sys.stdin.buffer.raw.read, connection.sendall,
             lambda: connection.shutdown(socket.SHUT_WR))
        with connection.makefile("rb") as frames:
            while head := frames.read(5):
                kind, size = struct.unpack("!BI", head)
                data = frames.read(size)
                if kind == 0:
                    return struct.unpack("!i", data)[0]
                out = sys.stdout if kind == 1 else sys.stderr
                out.buffer.write(data)
                out.buffer.flush()
    except (OSError, struct.error):
        pass
    return 255


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        serve()
    code = call(sys.argv[1], " ".join(sys.argv[2:]).encode())
    sys.stdout.flush()
    import os
    os._exit(code if code >= 0 else 128 - code)  # without waiting for the reader threads
