"""Converts between the SDK's dataclasses and those that componentize-py generates from the
contract.

Checks what a policy returns, because a value that componentize-py cannot convert would end the
instance.
"""

from typing import Any

from .cluster import Query
from .effects import U32, Apply, Create, Delete, Effect, Event, NextKind, Other, Outcome, Patch
from .errors import Error
from .objects import Kind, Object, ObjectKey, ObjectName
from .request import Change, MapRequest, Refusal, Request


def clean(text: object) -> str:
    """Returns a string that is valid in UTF-8. Half a surrogate pair, which a JSON escape may
    contain, becomes U+FFFD."""
    if not isinstance(text, str):
        raise Error(f"{text!r} is {type(text).__name__}, and must be a string")
    if text.isascii():
        return str(text)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def maybe(text: object) -> str | None:
    return None if text is None else clean(text)


def u32(number: object) -> int:
    """Returns an integer from 0 to 4294967295."""
    if type(number) is not int or not 0 <= number <= U32:
        raise Error(f"{number!r} is not an integer from 0 to {U32}")
    return number


class Wire:
    """Converts in both directions. `types` and `cluster` are the generated modules."""

    def __init__(self, types: Any, cluster: Any) -> None:
        self._types = types
        self._cluster = cluster

    def request(self, wire: Any) -> Request:
        last = wire.last and Refusal(wire.last.effect, wire.last.code, wire.last.reason, wire.last.message)
        gvk = wire.key.kind
        key = ObjectKey(Kind(gvk.group, gvk.version, gvk.kind), wire.key.name, wire.key.namespace)
        return Request(wire.controller, key, _object(wire.object), _object(wire.previous), wire.deleting, wire.attempt, last)

    def map_request(self, wire: Any) -> MapRequest:
        return MapRequest(wire.controller, [Change(_object(change.old), _object(change.new)) for change in wire.changes])

    def outcome(self, outcome: object) -> Any:
        if not isinstance(outcome, Outcome):
            raise Error(f"reconcile returned {outcome!r}, and must return an Outcome")
        return self._types.Outcome([self._effect(effect) for effect in outcome.effects], self._next(outcome))

    def _next(self, outcome: Outcome) -> Any:
        match outcome.next:
            case NextKind.AWAIT_CHANGE:
                return self._types.Next_AwaitChange()
            case NextKind.REQUEUE_AFTER:
                return self._types.Next_RequeueAfterMs(u32(outcome.ms))
            case NextKind.REQUEUE:
                return self._types.Next_Requeue()
            case NextKind.RETRY:
                return self._types.Next_Retry(clean(outcome.message))
            case NextKind.FAIL:
                return self._types.Next_Fail(clean(outcome.message))
            case NextKind.FINALIZED:
                return self._types.Next_Finalized()
        raise Error(f"{outcome.next!r} is not what can come next: use Outcome.await_change() and its like")

    def _effect(self, effect: Effect) -> Any:
        types = self._types
        match effect:
            case Apply():
                made = types.Apply(clean(effect.object), maybe(effect.subresource), bool(effect.force), bool(effect.create_if_absent), maybe(effect.if_version))
                return types.Effect_Apply(made)
            case Patch():
                type_ = types.PatchType[effect.type.name]
                made = types.Patch(self.key(effect.key), maybe(effect.subresource), type_, clean(effect.body), maybe(effect.if_version))
                return types.Effect_Patch(made)
            case Create():
                return types.Effect_Create(types.Create(clean(effect.object)))
            case Delete():
                propagation = effect.propagation and types.Propagation[effect.propagation.name]
                return types.Effect_Delete(types.Delete(self.key(effect.key), maybe(effect.uid), maybe(effect.if_version), propagation))
            case Event():
                related = effect.related and self.key(effect.related)
                type_ = types.EventType[effect.type.name]
                return types.Effect_Event(types.Event(type_, clean(effect.reason), clean(effect.action), clean(effect.note), related))
            case Other():
                return types.Effect_Other(types.Other(clean(effect.name), clean(effect.body)))
        raise Error(f"{effect!r} is no effect")

    def key(self, key: ObjectKey) -> Any:
        if not isinstance(key, ObjectKey):
            raise Error(f"{key!r} is no ObjectKey: use Kind.key(name, namespace)")
        return self._types.ObjectKey(self._kind(key.kind), maybe(key.namespace), clean(key.name))

    def name(self, name: ObjectName) -> Any:
        if not isinstance(name, ObjectName):
            raise Error(f"map_changes returned {name!r}, and must return ObjectNames")
        return self._types.ObjectName(maybe(name.namespace), clean(name.name))

    def query(self, query: Query) -> Any:
        index = query.index and self._cluster.IndexMatch(clean(query.index[0]), clean(query.index[1]))
        return self._cluster.Query(
            self._kind(query.kind), maybe(query.namespace), maybe(query.label_selector), index, maybe(query.owner),
            bool(query.metadata_only), u32(query.limit), maybe(query.continue_),
        )

    def _kind(self, kind: Kind) -> Any:
        return self._types.Gvk(clean(kind.group), clean(kind.version), clean(kind.kind))


def _object(text: str | None) -> Object | None:
    return None if text is None else Object(text)
