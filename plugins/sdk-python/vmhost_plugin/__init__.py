"""Write a vmhost policy in Python: a class, one decorator, and dataclasses for the records of the
contract (`wit/v1`).

    from vmhost_plugin import Controller, Description, Kind, Outcome, Policy, Request, plugin

    @plugin
    class Hello(Policy):
        def describe(self) -> Description:
            return Description("hello", [Controller("greeter", Kind.core("v1", "ConfigMap"))])

        def reconcile(self, request: Request) -> Outcome:
            logging.info("hello, %s", request.key.name)
            return Outcome.await_change()

A policy is a plain class: its own tests call it with a `Request` and check the `Outcome`. A test of
a policy that reads the cluster or settings calls it within `vmhost_plugin.testing.TestHost`.
"""

from . import cluster, http, meta
from .batch import Batch
from .cluster import Page, Query
from .description import Bucket, Controller, Description, HttpGrant, HttpHeader, Permission, Retry, Verb
from .effects import Apply, Create, Delete, Effect, Event, EventType, NextKind, Op, Other, Outcome, Patch, PatchType, Propagation
from .errors import Error, Invalid, NotWatched, ReadError, TooLarge, Unavailable
from .host import setting
from .logs import TRACE
from .objects import Kind, Object, ObjectKey, ObjectName
from .policy import Policy, plugin
from .request import Change, MapRequest, Refusal, Request
from .review import Operation, Review, UserInfo, Verdict
from .typed import read
from .watch import Changed, Map, Predicates, Watch
from .webhook import Conversion, Rule, Webhook, WebhookType

__all__ = [
    "Apply", "Batch", "Bucket", "Change", "Changed", "Controller", "Conversion", "Create", "Delete", "Description", "Effect", "Error", "Event",
    "EventType", "HttpGrant", "HttpHeader", "Invalid", "Kind", "Map", "MapRequest", "NextKind", "NotWatched", "Object", "ObjectKey", "ObjectName", "Op",
    "Operation", "Other", "Outcome", "Page", "Patch", "PatchType", "Permission", "Policy", "Predicates", "Propagation", "Query", "ReadError", "Refusal",
    "Request", "Retry", "Review", "Rule", "TRACE", "TooLarge", "Unavailable", "UserInfo", "Verb", "Verdict", "Watch", "Webhook", "WebhookType", "cluster",
    "http", "meta", "plugin", "read", "setting",
]
