"""Serving of a run's report to the browser of this machine, and of nothing else. No JAX.

The server listens on the loopback address alone. A page of another site whose name leads to that
address (DNS rebinding) names itself in the Host header, and is refused.
"""

from __future__ import annotations

import http
import http.server
import sys
from typing import Any

from jaxevo.errors import InputError
from jaxevo.files import FileError
from jaxevo.reports.live import RELOAD
from jaxevo.run.workdir import Workdir

ADDRESS = "127.0.0.1"
_NAMES = (ADDRESS, "localhost")  # that a browser of this machine knows the server by
_MAX_BYTES = 16 << 20  # of a report; larger is another kind of file
_SECONDS = 10  # that a request may take to arrive


class ReportServer(http.server.ThreadingHTTPServer):
    """Answers GET / with the report of a run, as it is at that moment.

    Args:
        workdir: The run's folder.
        port: Of the loopback address; 0: any that is free.

    Raises `InputError` where the port cannot be used.
    """

    daemon_threads = True

    def __init__(self, workdir: Workdir, port: int):
        self.workdir = workdir
        try:
            super().__init__((ADDRESS, port), _Handler)
        except (OSError, OverflowError) as error:
            raise InputError(
                f"port {port} cannot be used ({error}); give another --port, or --port=0 for any"
            ) from None

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Says nothing of a browser that left before it had the whole page."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)

    @property
    def address(self) -> str:
        """What to open in a browser."""
        return f"http://{ADDRESS}:{self.server_port}/"


class _Handler(http.server.BaseHTTPRequestHandler):
    """One request; every method but GET is refused by the base class."""

    server: ReportServer
    timeout = _SECONDS

    def do_GET(self) -> None:
        """Sends the page, or says why not."""
        host = self.headers.get("Host", "").rpartition(":")[0] or self.headers.get("Host", "")
        if host not in _NAMES:
            self._send(http.HTTPStatus.MISDIRECTED_REQUEST, b"this server is for its machine alone")
        elif self.path != "/":
            self._send(http.HTTPStatus.NOT_FOUND, b"there is one page, /")
        else:
            self._send_report()

    def _send_report(self) -> None:
        workdir = self.server.workdir
        try:
            workdir.check_inside()
            with workdir.report.open("rb") as file:
                content = file.read(_MAX_BYTES + 1)
        except FileNotFoundError:
            make = f"python -m jaxevo inspect --workdir={workdir.path} --report={workdir.report}"
            text = f"the run has no report yet; if none appears, make it: {make}"
            self._send(http.HTTPStatus.OK, text.encode(errors="replace"), wait=True)
        except (FileError, OSError) as error:
            self._send(http.HTTPStatus.INTERNAL_SERVER_ERROR, str(error).encode())
        else:
            if len(content) > _MAX_BYTES:
                reason = f"{workdir.report} is too large for a report".encode()
                self._send(http.HTTPStatus.INTERNAL_SERVER_ERROR, reason)
                return
            self._send(http.HTTPStatus.OK, content, kind="text/html")

    def _send(
        self,
        status: http.HTTPStatus,
        content: bytes,
        *,
        kind: str = "text/plain",
        wait: bool = False,
    ) -> None:
        """Sends an answer; with `wait` the browser asks again."""
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        # No other page may show this one within itself.
        self.send_header("Content-Security-Policy", "frame-ancestors 'none'")
        if wait:
            self.send_header("Refresh", str(RELOAD))
        self.end_headers()
        self.wfile.write(content)

    def version_string(self) -> str:
        """The name of the server, without versions."""
        return "jaxevo"

    def log_message(self, format: str, *args: Any) -> None:
        """Prints nothing."""
