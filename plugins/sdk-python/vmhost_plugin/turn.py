"""From a call of the host to the policy's method for it. It must not know how a call is made."""

import logging
from collections.abc import Mapping

from .batch import Batch
from .effects import Other, Outcome
from .errors import Error, text_of
from .objects import Kind
from .policy import Policy
from .request import Request
from .review import Review, Verdict

# The kinds of keys that are no objects of a cluster.
_ADMISSION = Kind("vmhost", "v1", "Admission")
_CONVERSION = Kind("vmhost", "v1", "Conversion")


def turn(policy: Policy, request: Request) -> Outcome:
    """Calls the policy as the host does: a review goes to `admit`, a batch of objects to `convert`,
    all else to `reconcile`."""
    if request.key.kind == _ADMISSION:
        return _admission(policy, request)
    if request.key.kind == _CONVERSION:
        return _conversion(policy, request)
    return policy.reconcile(request)


def _admission(policy: Policy, request: Request) -> Outcome:
    """A failure is no verdict: the webhook's failure policy decides about the request."""
    verdict: object = policy.admit(Review.of(request.controller, _text(request)))
    if not isinstance(verdict, Verdict):
        raise Error(f"admit returned {verdict!r}, and must return a Verdict")
    return Outcome.await_change(Other.of("admission", verdict.to_json()))


def _conversion(policy: Policy, request: Request) -> Outcome:
    """A failure is an answer, whose text the API server hands to the client."""
    batch = Batch.of(request.controller, _text(request))
    try:
        objects = list(policy.convert(batch))
        if not all(isinstance(each, Mapping) for each in objects):
            raise Error("convert returned what is no list of objects")
        return Outcome.await_change(Other.of("conversion", {"convertedObjects": objects}))
    except Exception as error:
        logging.error("convert failed", exc_info=error)
        return Outcome.await_change(Other.of("conversion", {"failed": text_of(error)}))


def _text(request: Request) -> str:
    return "" if request.object is None else request.object.text
