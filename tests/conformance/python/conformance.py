"""The conformance guest in Python, with a function for each case. ../README.md describes the cases.
"""

import logging
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from describe import CONFIG_MAP, POD, description
from effects import FOUR, TEN
import reviews
from vmhost_plugin import (
    TRACE, Batch, Description, Error, Invalid, MapRequest, NotWatched, Object, ObjectKey, ObjectName, Outcome, Patch, Policy, Query, Request, Review, TooLarge,
    Unavailable, Verdict, cluster, http, plugin, setting,
)

calls_before = 0


def echo(request: Request) -> Any:
    key, last = request.key, request.last
    return {
        "controller": request.controller,
        "key": {"group": key.kind.group, "version": key.kind.version, "kind": key.kind.kind, "namespace": key.namespace, "name": key.name},
        "object": text(request.object),
        "previous": text(request.previous),
        "deleting": request.deleting,
        "attempt": request.attempt,
        "last": last and {"effect": last.effect, "code": last.code, "reason": last.reason, "message": last.message},
    }


def get(request: Request) -> Any:
    return {name: text(cluster.get(config_map(name))) for name in ("a", "b")}


def get_many(request: Request) -> Any:
    found = cluster.get_many([config_map(f"k{number}") for number in range(1000)])
    return {"found": sum(each is not None for each in found), "first": text(found[0]), "last": text(found[999])}


def list_(request: Request) -> Any:
    conditions = Query(CONFIG_MAP, namespace="default", label_selector="app=web,!legacy", index=("by-node", "n1"), owner="u-1")
    page = cluster.list_page(replace(conditions, metadata_only=True, limit=2, continue_="c-1"))
    return {"objects": [each.text for each in page.objects], "continue": page.continue_}


def live(request: Request) -> Any:
    found = cluster.get_live(POD.key("a", "default"))
    page = cluster.list_live_page(Query(POD))
    return {"a": text(found), "objects": [each.text for each in page.objects], "continue": page.continue_}


def read_errors(request: Request) -> Any:
    answer: dict[str, Any] = {}
    for name in ("not-watched", "too-large", "invalid", "unavailable"):
        try:
            cluster.get(config_map(name))
        except NotWatched as error:
            answer["not-watched"] = error.kind
        except TooLarge as error:
            answer["too-large"] = error.limit
        except Invalid as error:
            answer["invalid"] = error.reason
        except Unavailable as error:
            answer["unavailable"] = error.reason
    return answer


def settings(request: Request) -> Any:
    return {name: setting(name) for name in ("given", "empty", "missing")}


def http_(request: Request) -> Any:
    headers = {"content-type": "application/json", "x-case": "http"}
    made = http.post("http://api.example.com:8080/v1/machines", headers=headers, body='{"n":"☃"}')
    try:
        http.get("https://denied.example.com/")
    except http.HttpError as error:
        return {"status": made.status, "type": made.header("content-type"), "body": made.text, "error": error.code}
    return None


def log(request: Request) -> Any:
    for level in (TRACE, logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR):
        logging.log(level, "one\ntwo ☃")
    print("printed")
    return None


def number(request: Request) -> Any:
    spec = spec_of(request)
    return [spec["number"], spec["huge"]]


def null(request: Request) -> Any:
    spec = spec_of(request)
    return ["missing" if name not in spec else "null" if spec[name] is None else "value" for name in ("a", "b", "c")]


def text_(request: Request) -> Any:
    spec = spec_of(request)
    return [spec["text"], spec["empty"]]


def deep(request: Request) -> Any:
    depth, value = 0, spec_of(request)["deep"]
    while isinstance(value, list):
        depth, value = depth + 1, value[0] if value else None
    return depth


def size(request: Request) -> Any:
    return len((text(request.object) or "").encode())


def senses(request: Request) -> Any:
    order = list({f"k{number}" for number in range(20)})
    return {"wall": time.time_ns(), "steady": time.monotonic_ns(), "chance": os.urandom(8).hex(), "order": order}


def error(request: Request) -> Any:
    raise Error("broken on purpose")


def crash(request: Request) -> Any:
    return [][1]


def memory(request: Request) -> Any:
    kept = []
    while True:
        kept.append(bytearray(1 << 20))


def loop(request: Request) -> Any:
    while True:
        pass


def state(request: Request) -> Any:
    global calls_before
    calls_before += 1
    return calls_before - 1


ANSWERS: dict[str, Callable[[Request], Any]] = {
    "echo": echo, "get": get, "get-many": get_many, "list": list_, "live": live, "read-errors": read_errors, "settings": settings, "http": http_, "log": log,
    "number": number, "null": null, "text": text_, "deep": deep, "size": size, "senses": senses, "error": error, "crash": crash, "memory": memory, "loop": loop, "state": state,
}

OUTCOMES = {
    "effects": Outcome.await_change(*TEN),
    "in-cluster": Outcome.await_change(*FOUR),
    "next-await-change": Outcome.await_change(),
    "next-requeue-after": Outcome.requeue_after_ms(4294967295),
    "next-requeue": Outcome.requeue(),
    "next-retry": Outcome.retry('later, "please"'),
    "next-fail": Outcome.fail("never: ☃"),
    "next-finalized": Outcome.finalized(),
}


@plugin
class Conformance(Policy):
    def describe(self) -> Description:
        return description()

    def reconcile(self, request: Request) -> Outcome:
        case = spec_of(request).get("case", "echo")
        if case in OUTCOMES:
            return OUTCOMES[case]
        if case not in ANSWERS:
            return Outcome.fail(f"unknown case {case}")
        return Outcome.await_change(Patch.merge(request.key, {"answer": ANSWERS[case](request)}))

    def map_changes(self, request: MapRequest) -> Iterable[ObjectName]:
        if request.controller != "cases":
            raise Error(f"cannot map {request.controller}")
        objects = (change.new or change.old for change in request.changes)
        return [ObjectName(each.meta.name, each.meta.namespace) for each in objects if each is not None]

    def admit(self, review: Review) -> Verdict:
        return reviews.admit(review)

    def convert(self, batch: Batch) -> Iterable[Mapping[str, Any]]:
        return reviews.convert(batch)


def config_map(name: str) -> ObjectKey:
    return CONFIG_MAP.key(name, "default")


def spec_of(request: Request) -> dict[str, Any]:
    spec: dict[str, Any] = {} if request.object is None else request.object.get("spec", {})
    return spec


def text(found: Object | None) -> str | None:
    return None if found is None else found.text
