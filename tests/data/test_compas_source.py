"""Fetching COMPAS: a real server on this machine, answering well and badly."""

from __future__ import annotations

import hashlib
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from rocerf.data import compas_source
from rocerf.data.compas_source import RAW_NAME, cache_folder, locate
from rocerf.data.datasets import load_dataset
from rocerf.errors import DatasetUnavailableError, FileFormatError

CONTENT = b"id,age\n1,30\n" * 1000


class Handler(BaseHTTPRequestHandler):
    """/good answers with the file, /short breaks off, /slow keeps silent, the rest is not found."""

    def do_GET(self) -> None:
        self.server.asked.append(self.path)  # type: ignore[attr-defined]
        if self.path == "/slow":
            self.server.silence.wait(20)  # type: ignore[attr-defined]
            return
        if self.path not in ("/good", "/short", "/other"):
            self.send_error(404)
            return
        body = CONTENT + b"more" if self.path == "/other" else CONTENT
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[:100] if self.path == "/short" else body)

    def log_message(self, format: str, *args: object) -> None:
        """Keep the test output clean."""


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ThreadingHTTPServer]:
    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    running.asked = []  # type: ignore[attr-defined]
    running.silence = threading.Event()  # type: ignore[attr-defined]
    # A short poll, so that shutdown does not take half a second each time.
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield running
    running.silence.set()  # type: ignore[attr-defined]
    running.shutdown()
    running.server_close()
    thread.join()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of our own, no file of the user's, no proxy between us and the server."""
    monkeypatch.delenv("ROCERF_COMPAS", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    folder = tmp_path / "made" / "on" / "demand"
    monkeypatch.setenv("ROCERF_CACHE", str(folder))
    monkeypatch.setattr(compas_source, "_SHA256", hashlib.sha256(CONTENT).hexdigest())
    return folder


def point_to(server: ThreadingHTTPServer, page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compas_source, "_URL", f"http://127.0.0.1:{server.server_address[1]}{page}")


def files_in(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.rglob("*")) if folder.is_dir() else []


def test_fetched_once_then_cached(server: ThreadingHTTPServer, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    point_to(server, "/good", monkeypatch)
    assert locate() == (cache / RAW_NAME,)
    assert (cache / RAW_NAME).read_bytes() == CONTENT
    assert locate() == (cache / RAW_NAME,)
    assert server.asked == ["/good"]  # type: ignore[attr-defined]
    assert files_in(cache) == [RAW_NAME]


def test_a_spoilt_cache_is_fetched_again(
    server: ThreadingHTTPServer, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.mkdir(parents=True)
    (cache / RAW_NAME).write_bytes(CONTENT[:50])
    point_to(server, "/good", monkeypatch)
    assert locate()[0].read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        ("/other", "12004 bytes came whose checksum is not the expected one"),
        ("/short", "checksum|broke off"),
        ("/missing", "404"),
    ],
)
def test_a_bad_answer_is_refused_and_not_kept(
    server: ThreadingHTTPServer, cache: Path, monkeypatch: pytest.MonkeyPatch, page: str, reason: str
) -> None:
    point_to(server, page, monkeypatch)
    with pytest.raises(DatasetUnavailableError, match=reason):
        load_dataset("compas")
    assert server.asked == [page]  # type: ignore[attr-defined]
    assert files_in(cache) == []


def test_a_silent_server_is_given_up(server: ThreadingHTTPServer, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compas_source, "_TIMEOUT_S", 0.2)
    point_to(server, "/slow", monkeypatch)
    start = time.monotonic()
    with pytest.raises(DatasetUnavailableError, match="timed out"):
        load_dataset("compas")
    assert time.monotonic() - start < 5.0
    assert files_in(cache) == []


def test_no_server_names_the_three_ways_out(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    monkeypatch.setattr(compas_source, "_URL", f"http://127.0.0.1:{port}/file.csv")
    with pytest.raises(DatasetUnavailableError) as raised:
        load_dataset("compas")
    message = str(raised.value)
    assert "refused" in message
    assert 'load_dataset("compas", path=...)' in message
    assert "ROCERF_COMPAS" in message
    assert "network" in message
    assert "\n" not in message
    assert files_in(cache) == []


def test_a_cache_that_cannot_be_written(
    server: ThreadingHTTPServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "occupied").write_text("a file, not a folder")
    monkeypatch.setenv("ROCERF_CACHE", str(tmp_path / "occupied"))
    point_to(server, "/good", monkeypatch)
    with pytest.raises(DatasetUnavailableError, match="ROCERF_CACHE"):
        load_dataset("compas")
    assert files_in(tmp_path) == ["occupied"]


def test_a_failed_write_leaves_nothing_behind(
    server: ThreadingHTTPServer, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    point_to(server, "/good", monkeypatch)
    # A folder of that name: the last step, the move, fails.
    (cache / RAW_NAME).mkdir(parents=True)
    with pytest.raises(DatasetUnavailableError):
        locate()
    assert files_in(cache) == [RAW_NAME]


def test_the_fetched_file_is_read_like_any_other(
    server: ThreadingHTTPServer, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Genuine by its checksum but not the table: the reader, too, must look.
    point_to(server, "/good", monkeypatch)
    with pytest.raises(FileFormatError, match="got none named"):
        load_dataset("compas")


def test_the_pinned_address_and_checksum() -> None:
    # Read from the source: the fixtures above replace the checksum while the tests run.
    source = Path(compas_source.__file__).read_text()
    assert "bafff5da3f2e45eca6c2d5055faad269defd135a" in compas_source._URL
    assert compas_source._URL.startswith("https://")
    assert compas_source._URL.endswith("/compas-scores-two-years.csv")
    assert '"c451db85908b2f7fef1d83203bedf6b71ecda0d5af468d82ae62178f91d0cc7d"' in source


@pytest.mark.parametrize(
    ("platform", "variable", "expected"),
    [
        ("linux", "XDG_CACHE_HOME", "given/rocerf"),
        ("linux", None, "home/.cache/rocerf"),
        ("darwin", None, "home/Library/Caches/rocerf"),
        ("win32", "LOCALAPPDATA", "given/rocerf"),
        ("win32", None, "home/AppData/Local/rocerf"),
    ],
)
def test_cache_folder_of_each_platform(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, platform: str, variable: str | None, expected: str
) -> None:
    for name in ("ROCERF_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    if variable:
        monkeypatch.setenv(variable, str(tmp_path / "given"))
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    monkeypatch.setattr("rocerf.data.compas_source.sys.platform", platform)
    assert cache_folder() == tmp_path / expected
