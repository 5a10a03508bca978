"""Checks the AWS Signature Version 4 of GET requests and returns the requested path and the token.

usage: signed_server.py PORT_FILE

Writes the server's port to PORT_FILE. The account is the same as in s3_test.cpp. The body of an
HTTP 403 response states what is wrong.
"""

import hashlib
import hmac
import http.server
import pathlib
import sys
import urllib.parse

SECRET = "a/secret+key=" * 6


def signature(method, path, headers, signed, scope, time):
    lines = "".join(f"{name}:{headers[name].strip()}\n" for name in signed.split(";"))
    request = "\n".join([method, path, "", lines, signed, headers["x-amz-content-sha256"]])
    digest = hashlib.sha256(request.encode()).hexdigest()
    text = "\n".join(["AWS4-HMAC-SHA256", time, scope, digest])
    key = ("AWS4" + SECRET).encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def problem(self):
        kind, _, rest = self.headers.get("Authorization", "").partition(" ")
        parts = dict(part.strip().split("=", 1) for part in rest.split(","))
        name, _, scope = parts["Credential"].partition("/")
        region, service = scope.split("/")[1:3]
        if (kind, name, service) != ("AWS4-HMAC-SHA256", "AKIDEXAMPLE", "s3"):
            return f"kind, name or service: {kind} {name} {service}"
        if f"/{region}/" not in self.path:
            return f"region {region}"
        signed = parts["SignedHeaders"].split(";")
        wanted = {"host", "x-amz-date", "x-amz-content-sha256"}
        if "x-amz-security-token" in self.headers:
            wanted.add("x-amz-security-token")
        if not wanted <= set(signed):
            return f"not signed: {wanted - set(signed)}"
        own = signature("GET", self.path, self.headers, parts["SignedHeaders"], scope,
                        self.headers["x-amz-date"])
        return "" if own == parts["Signature"] else "the signature"

    def do_GET(self):
        problem = self.problem()
        key = urllib.parse.unquote(self.path).encode()
        token = self.headers.get("x-amz-security-token", "").encode()
        body = problem.encode() or key + b" " + token
        self.send_response(403 if problem else 206)
        self.send_header("Content-Length", str(len(body)))
        if not problem:
            self.send_header("Content-Range", f"bytes 0-{len(body) - 1}/{len(body)}")
        self.end_headers()
        self.wfile.write(body)


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
part = pathlib.Path(sys.argv[1] + ".part")
part.write_text(str(server.server_port))
part.rename(sys.argv[1])
server.serve_forever()
