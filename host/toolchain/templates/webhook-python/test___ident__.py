"""Tests of the policy. It is a plain class, so they call it without a host or a component."""

import unittest
from typing import Any

from __ident__ import Guard
from vmhost_plugin import Error, Review, Verdict


def admit(found: dict[str, Any] | None) -> Verdict:
    return Guard().admit(Review.of("who", {"operation": "CREATE", "object": found}))


class TestGuard(unittest.TestCase):
    def test_somebody_has_to_be_named(self) -> None:
        refused = Verdict.deny("spec.who must name somebody")
        cases: list[tuple[dict[str, Any] | None, Verdict]] = [
            ({"spec": {"who": "Ada"}}, Verdict.allow()),
            ({"spec": {"who": ""}}, refused),
            ({"spec": {}}, refused),
            (None, Verdict.allow()),
        ]
        for found, verdict in cases:
            self.assertEqual(admit(found), verdict, found)

    def test_an_object_that_cannot_be_read_is_no_verdict(self) -> None:
        with self.assertRaisesRegex(Error, "spec.who is 1, and must be a string"):
            admit({"spec": {"who": 1}})
