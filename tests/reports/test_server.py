"""The server of one page: what it sends, to whom, and what it refuses."""

from __future__ import annotations

import contextlib
import http.client
import pathlib
import threading
from collections.abc import Iterator

import pytest
from builders_runs import write_run

from jaxevo.errors import InputError
from jaxevo.reports.server import ReportServer
from jaxevo.run.workdir import Workdir


@pytest.fixture
def server(tmp_path: pathlib.Path) -> Iterator[ReportServer]:
    with ReportServer(write_run(tmp_path / "run", []), 0) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def ask(
    server: ReportServer, path: str = "/", method: str = "GET", host: str | None = None
) -> tuple[int, dict[str, str], str]:
    """Status, headers and content of an answer."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", server.server_port)) as asked:
        asked.request(method, path, headers={} if host is None else {"Host": host})
        answer = asked.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read().decode()


def test_it_sends_the_report_as_it_is_now(server: ReportServer):
    status, headers, content = ask(server)
    assert (status, headers["Refresh"]) == (200, "5")
    assert content.startswith("the run has no report yet; if none appears, make it: python -m")
    server.workdir.report.write_text("<p>é")
    status, headers, content = ask(server)
    assert (status, content) == (200, "<p>é") and "Refresh" not in headers
    assert headers["Content-Type"] == "text/html; charset=utf-8"
    assert headers["Cache-Control"] == "no-store" and headers["X-Content-Type-Options"] == "nosniff"
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]


def test_it_listens_to_this_machine_alone(server: ReportServer):
    assert server.socket.getsockname()[0] == "127.0.0.1"
    assert server.address == f"http://127.0.0.1:{server.server_port}/"


@pytest.mark.parametrize("host", ["localhost:8765", "localhost", "127.0.0.1", "127.0.0.1:1"])
def test_names_of_this_machine_are_served(server: ReportServer, host: str):
    assert ask(server, host=host)[0] == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8765", "127.0.0.1.evil:80", ""])
def test_a_name_of_another_site_is_refused(server: ReportServer, host: str):
    server.workdir.report.write_text("secret")
    status, _, content = ask(server, host=host)
    assert status == 421 and "secret" not in content


@pytest.mark.parametrize("path", ["/report.html", "/config.json", "/../config.json", "/?a"])
def test_there_is_no_other_page(server: ReportServer, path: str):
    assert ask(server, path)[0] == 404


@pytest.mark.parametrize("method", ["HEAD", "POST", "PUT", "DELETE", "OPTIONS"])
def test_there_is_no_other_method(server: ReportServer, method: str):
    assert ask(server, method=method)[0] == 501


def test_a_link_to_a_file_elsewhere_is_not_followed(server: ReportServer, tmp_path: pathlib.Path):
    (tmp_path / "secret").write_text("secret")
    server.workdir.report.symlink_to(tmp_path / "secret")
    status, _, content = ask(server)
    assert status == 500 and content.endswith("a run's files must lie in its folder itself")


def test_a_port_that_is_taken_is_refused_with_a_remedy(server: ReportServer):
    with pytest.raises(InputError, match="give another --port, or --port=0 for any"):
        ReportServer(Workdir(pathlib.Path()), server.server_port)
