"""The component's side of the contract: the exports of `vmhost build`. Only componentize-py imports
this module, and it generates `wit_world`.

An exception never leaves a call, because it would end the instance, with its text only in stderr.
It becomes `retry(text)`, with the traceback in the host's log.
"""

import linecache
import logging
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from . import host, http, logs
from .cluster import Page, Query
from .effects import Outcome
from .errors import Invalid, NotWatched, ReadError, TooLarge, Unavailable, text_of
from .objects import Object, ObjectKey
from .policy import the_policy
from .turn import turn
from .wire import Wire, clean

_types, _cluster, _config, _log = (import_module(f"wit_world.imports.{name}") for name in ("types", "cluster", "config", "log"))
_http: Any = None
try:
    _http = import_module("wit_world.imports.http")
except ImportError:
    pass  # only the world of a project with `http = true` has it
_err = import_module("componentize_py_types").Err
_wire = Wire(_types, _cluster)
_levels = {name: getattr(_log.Level, name.upper()) for name in ("trace", "debug", "info", "warn", "error")}


class _Host:
    """The imports of the contract, in the form that the SDK uses."""

    def setting(self, name: str) -> str | None:
        value: str | None = _config.get(clean(name))
        return value

    def get(self, key: ObjectKey) -> Object | None:
        return _object(_asked(str(key), _cluster.get, _wire.key(key)))

    def get_many(self, keys: Sequence[ObjectKey]) -> list[Object | None]:
        return [_object(text) for text in _asked(f"{len(keys)} objects", _cluster.get_many, [_wire.key(key) for key in keys])]

    def list(self, query: Query) -> Page:
        return _page(_asked(str(query), _cluster.list, _wire.query(query)))

    def get_live(self, key: ObjectKey) -> Object | None:
        return _object(_asked(str(key), _cluster.get_live, _wire.key(key)))

    def list_live(self, query: Query) -> Page:
        return _page(_asked(str(query), _cluster.list_live, _wire.query(query)))

    def send(self, request: http.Request) -> http.Response:
        if _http is None:
            raise http.HttpError("not-sent", "a policy that sends HTTP requests has [tool.vmhost] with http = true in its pyproject.toml")
        headers = [_http.Header(clean(name), clean(value)) for name, value in request.headers]
        sent = _http.Request(clean(request.method), clean(request.url), headers, request.body, request.timeout_ms)
        try:
            answer = _http.send(sent)
        except _err as error:
            raise _http_error(error.value) from None
        return http.Response(answer.status, [(each.name, each.value) for each in answer.headers], bytes(answer.body))


def _object(text: str | None) -> Object | None:
    return None if text is None else Object(text)


def _page(page: Any) -> Page:
    return Page([Object(text) for text in page.objects], page.continue_)


def _asked(what: str, read: Callable[[Any], Any], question: Any) -> Any:
    """Returns the answer of a read, or raises the SDK's error."""
    try:
        return read(question)
    except _err as error:
        raise _read_error(what, error.value) from None


def _read_error(what: str, error: Any) -> ReadError:
    if isinstance(error, _cluster.ReadError_NotWatched):
        return NotWatched(what, error.value)
    if isinstance(error, _cluster.ReadError_TooLarge):
        return TooLarge(what, error.value)
    if isinstance(error, _cluster.ReadError_Invalid):
        return Invalid(what, error.value)
    return Unavailable(what, error.value)


def _http_error(error: Any) -> http.HttpError:
    codes: dict[str, http.Code] = {"Denied": "denied", "Invalid": "invalid", "NotSent": "not-sent", "NoAnswer": "no-answer"}
    code = codes.get(type(error).__name__.removeprefix("Error_"))
    return http.HttpError(code, error.value) if code else http.HttpError("too-large", f"larger than {error.value} bytes")


def _write_log(level: str, message: str) -> None:
    """Writes a line to the host's log, or to stderr while the component is built without a host."""
    if _Call.running:
        _log.log(_levels[level], clean(message))
    else:
        print(f"{level}: {message}", file=sys.stderr)


def _failed(what: str, error: BaseException) -> str:
    """Logs the traceback; returns the text. Must never fail, even without memory for a traceback.
    """
    try:
        logging.error("%s failed", what, exc_info=error)
        return clean(text_of(error))
    except BaseException:
        return type(error).__name__


class _Call:
    """Sets the host and its log during a call; they do not exist while the component is built.
    Flushes printed text afterwards."""

    running = False
    _host = _Host()

    def __enter__(self) -> None:
        _Call.running = True
        host.enter(self._host)

    def __exit__(self, *_: object) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        host.enter(None)


class Controller:
    """The export. componentize-py creates an instance of it at build time: the policy's module has
    run by then, and is part of the component."""

    def __init__(self) -> None:
        self._policy = the_policy()
        _keep_sources()

    def describe(self) -> str:
        with _Call():
            try:
                return clean(self._policy.describe().to_json())
            except BaseException as error:
                text = _failed("describe", error)
        raise _err(text)

    def reconcile(self, request: Any) -> Any:
        with _Call():
            try:
                return _wire.outcome(turn(self._policy, _wire.request(request)))
            except BaseException as error:  # includes sys.exit() and MemoryError
                return _wire.outcome(Outcome.retry(_failed("reconcile", error)))

    def map_changes(self, request: Any) -> Any:
        with _Call():
            try:
                return [_wire.name(name) for name in self._policy.map_changes(_wire.map_request(request))]
            except BaseException as error:
                text = _failed("map_changes", error)
        raise _err(text)


def _keep_sources() -> None:
    """Keeps the sources of all modules except the standard library's in memory, because tracebacks
    show source lines, and at run time there are no files."""
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and not file.startswith("/python/"):
            lines = linecache.getlines(file)
            linecache.cache[file] = (sum(map(len, lines)), None, lines, file)  # no time, because there is no file to compare with


logs.install(logs.HostHandler(_write_log))
sys.set_int_max_str_digits(0)  # integers of any size; the deadline limits a call
