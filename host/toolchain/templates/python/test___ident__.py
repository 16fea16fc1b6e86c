"""Tests of the policy. It is a plain class, so they call it without a host or a component."""

import unittest
from typing import Any

from __ident__ import KIND, Greeter
from vmhost_plugin import Error, Event, Object, Outcome, Patch, Request

KEY = KIND.key("a", "default")


def reconcile(found: dict[str, Any] | None) -> Outcome:
    return Greeter().reconcile(Request("__plural__", KEY, None if found is None else Object.of(found)))


def greeting(message: str) -> Outcome:
    return Outcome.await_change(Patch.merge(KEY, {"status": {"message": message}}, subresource="status"), Event.normal("Greeted", message))


class TestGreeter(unittest.TestCase):
    def test_an_object_is_greeted(self) -> None:
        self.assertEqual(reconcile({"spec": {"who": "you"}}), greeting("hello, you"))
        self.assertEqual(reconcile({"spec": {}}), greeting("hello, world"))
        self.assertEqual(reconcile({"spec": {"who": "you"}, "status": {"message": "hello, world"}}), greeting("hello, you"))

    def test_a_greeted_object_is_left_alone(self) -> None:
        self.assertEqual(reconcile({"spec": {"who": "you"}, "status": {"message": "hello, you"}}), Outcome.await_change())
        self.assertEqual(reconcile(None), Outcome.await_change())

    def test_an_object_that_cannot_be_read_is_an_error(self) -> None:
        with self.assertRaisesRegex(Error, "spec.who is 1, and must be a string"):
            reconcile({"spec": {"who": 1}})
