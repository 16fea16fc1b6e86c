"""HTTP requests to services outside of the cluster (`wit/http-v1`). The description must name them
(`HttpGrant`), and the project says so: `[tool.vmhost]` with `http = true` in pyproject.toml.

    from vmhost_plugin import http

    machine = http.post(f"{url}/machines", json={"size": "small"}).success().json()

In native tests `vmhost_plugin.testing.TestHost` answers them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from . import host, json_text
from .errors import Error

Code = Literal["denied", "invalid", "not-sent", "no-answer", "too-large"]


class HttpError(Error):
    """There is no response. `code` says why; after `no-answer` the request may have been carried
    out."""

    def __init__(self, code: Code, detail: str) -> None:
        super().__init__(f"the request has no response ({code}): {detail}")
        self.code = code
        self.detail = detail


@dataclass(frozen=True)
class Request:
    """What is sent."""

    method: str
    url: str
    headers: Sequence[tuple[str, str]] = ()
    body: bytes = b""
    timeout_ms: int | None = None
    """If None, what is left of the call's time."""


@dataclass(frozen=True)
class Response:
    """What came back, whatever its status."""

    status: int
    headers: Sequence[tuple[str, str]] = ()
    """The names are in lower case."""
    body: bytes = b""

    @property
    def ok(self) -> bool:
        """Whether the status is 2xx."""
        return 200 <= self.status < 300

    @property
    def text(self) -> str:
        """The body as text; what is not UTF-8 is replaced."""
        return self.body.decode(errors="replace")

    def header(self, name: str) -> str | None:
        """Returns the first value of a header."""
        return next((value for other, value in self.headers if other.lower() == name.lower()), None)

    def json(self) -> Any:
        """Returns the body as JSON."""
        return json_text.parse(self.text)

    def success(self) -> Response:
        """Returns the response, or raises an error if its status is not 2xx."""
        if not self.ok:
            raise Error(f"status {self.status}: {self.text[:200]}")
        return self


def request(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    body: bytes | str = b"",
    json: Any = None,
    timeout_ms: int | None = None,
) -> Response:
    """Sends a request and waits for the whole response. `json` is a body with its content type."""
    pairs = list((headers or {}).items())
    if json is not None:
        body = json_text.write(json)
        pairs.append(("content-type", "application/json"))
    sent = body.encode() if isinstance(body, str) else bytes(body)
    return host.current().send(Request(method, url, pairs, sent, timeout_ms))


def get(url: str, **options: Any) -> Response:
    """Sends a GET; `options` are those of `request`."""
    return request("GET", url, **options)


def post(url: str, **options: Any) -> Response:
    """Sends a POST; `options` are those of `request`."""
    return request("POST", url, **options)


def put(url: str, **options: Any) -> Response:
    """Sends a PUT; `options` are those of `request`."""
    return request("PUT", url, **options)


def patch(url: str, **options: Any) -> Response:
    """Sends a PATCH; `options` are those of `request`."""
    return request("PATCH", url, **options)


def delete(url: str, **options: Any) -> Response:
    """Sends a DELETE; `options` are those of `request`."""
    return request("DELETE", url, **options)
