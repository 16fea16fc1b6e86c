"""Admission and conversion: reviews in, verdicts out, and the patch between two objects."""

import json
import unittest
from collections.abc import Iterable, Mapping
from typing import Any

from vmhost_plugin import (
    Batch, Conversion, Description, Error, Kind, Object, Op, Operation, Policy, Request, Review, Rule, Verdict, Webhook, WebhookType,
)
from vmhost_plugin.diff import diff
from vmhost_plugin.turn import turn

REQUEST = {
    "uid": "u-1",
    "kind": {"group": "apps", "version": "v1", "kind": "Deployment"},
    "resource": {"group": "apps", "version": "v1", "resource": "deployments"},
    "subResource": "scale",
    "name": "a",
    "namespace": "default",
    "operation": "UPDATE",
    "userInfo": {"username": "jane", "groups": ["g"]},
    "object": {"spec": {"replicas": 3, "keep": 9007199254740993}},
    "oldObject": None,
    "options": {"kind": "UpdateOptions"},
    "dryRun": True,
}


class Guard(Policy):
    """A policy with webhooks and no controller."""

    def describe(self) -> Description:
        return Description("guard")

    def admit(self, review: Review) -> Verdict:
        if review.name == "broken":
            raise Error("broken on purpose")
        if review.name == "odd":
            return True  # type: ignore[return-value]
        return Verdict.deny(f"{review.webhook} refuses {review.name}")

    def convert(self, batch: Batch) -> Iterable[Mapping[str, Any]]:
        def one(each: dict[str, Any], version: str) -> None:
            if "bad" in each:
                raise Error("too old")
            each["from"] = version

        return batch.each(one)


class Nothing(Policy):
    def describe(self) -> Description:
        return Description("nothing")


def called(policy: Policy, kind: str, value: object) -> dict[str, Any]:
    request = Request("hook", Kind("vmhost", "v1", kind).key("u-1"), Object.of(value))
    (effect,) = turn(policy, request).effects
    return {effect.name: json.loads(effect.body)}  # type: ignore[union-attr]


class ReviewTest(unittest.TestCase):
    def test_all_fields_of_a_review_are_read(self) -> None:
        review = Review.of("guard", json.dumps(REQUEST))
        self.assertEqual((review.webhook, review.uid, review.name, review.namespace, review.sub_resource), ("guard", "u-1", "a", "default", "scale"))
        self.assertEqual((review.kind, review.resource.resource), (Kind("apps", "v1", "Deployment"), "deployments"))
        self.assertEqual((review.operation, review.user_info.username, review.user_info.groups), (Operation.UPDATE, "jane", ["g"]))
        self.assertTrue(review.dry_run)
        self.assertIsNone(review.old_object)
        assert review.object is not None and review.options is not None
        self.assertEqual((review.object["spec"]["keep"], review.options["kind"]), (9007199254740993, "UpdateOptions"))
        with self.assertRaisesRegex(Error, "not a JSON object"):
            Review.of("guard", "[]")

    def test_a_verdict_is_an_admission_response(self) -> None:
        self.assertEqual(Verdict.allow().to_json(), {"allowed": True})
        self.assertEqual(Verdict.deny("no").to_json(), {"allowed": False, "status": {"message": "no", "reason": "Forbidden", "code": 403}})
        self.assertEqual(Verdict.deny("odd", code=422).to_json()["status"], {"message": "odd", "code": 422})
        verdict = Verdict.allow().warning("a").warning("b").audit_annotation("k", "v").with_(Op.add("/a", None), Op.remove("/b"))
        patch = [{"op": "add", "path": "/a", "value": None}, {"op": "remove", "path": "/b"}]
        self.assertEqual(verdict.to_json(), {"allowed": True, "patch": patch, "warnings": ["a", "b"], "auditAnnotations": {"k": "v"}})
        with self.assertRaisesRegex(Error, "400 to 599"):
            Verdict.deny("no", code=200)

    def test_a_mutation_becomes_a_patch(self) -> None:
        review = Review.of("defaults", REQUEST)

        def change(new: dict[str, Any]) -> None:
            new["spec"]["paused"] = True
            del new["spec"]["replicas"]

        patch = [{"op": "add", "path": "/spec/paused", "value": True}, {"op": "remove", "path": "/spec/replicas"}]
        self.assertEqual(review.mutate(change).to_json(), {"allowed": True, "patch": patch})
        self.assertEqual(review.mutate(lambda _: None).to_json(), {"allowed": True})
        deletion = Review.of("defaults", {"operation": "DELETE"})
        self.assertEqual(deletion.mutate(lambda new: new.clear()).to_json(), {"allowed": True})
        with self.assertRaisesRegex(Error, "without an object"):
            deletion.changed_to({})


class DiffTest(unittest.TestCase):
    def test_only_what_differs_is_in_the_patch(self) -> None:
        def add(path: str, value: object) -> dict[str, Any]:
            return {"op": "add", "path": path, "value": value}

        def replace(path: str, value: object) -> dict[str, Any]:
            return {"op": "replace", "path": path, "value": value}

        def remove(path: str) -> dict[str, Any]:
            return {"op": "remove", "path": path}

        rows: list[tuple[Any, Any, list[dict[str, Any]]]] = [
            ({"a": 1}, {"a": 1}, []),
            (
                {"a": {"b": 1, "c": [1, {"d": 2}]}, "z": 0},
                {"a": {"b": 2, "c": [1, {"d": 3}]}, "n": None},
                [replace("/a/b", 2), replace("/a/c/1/d", 3), add("/n", None), remove("/z")],
            ),
            ({"a": []}, {"a": {}}, [replace("/a", {})]),
            ({"a/b": 1, "c~d": 1, "": 1}, {"a/b": 2, "": 2}, [replace("/", 2), replace("/a~1b", 2), remove("/c~0d")]),
            ([1, 4], [1, 2, 3, 4], [add("/1", 2), add("/2", 3)]),
            ([1, 2, 3, 4], [1, 4], [remove("/2"), remove("/1")]),
            ([1, 1], [1], [remove("/1")]),
            ([1, 2, 3], [1, 9, 8, 3], [replace("/1", 9), add("/2", 8)]),
            ({"a": 1}, {"a": True}, [replace("/a", True)]),
        ]
        for old, new, operations in rows:
            self.assertEqual([each.to_json for each in diff(old, new)], operations)


class TurnTest(unittest.TestCase):
    def test_a_review_goes_to_admit_and_a_failure_is_no_verdict(self) -> None:
        response = {"allowed": False, "status": {"message": "hook refuses a", "reason": "Forbidden", "code": 403}}
        self.assertEqual(called(Guard(), "Admission", {"name": "a"}), {"admission": response})
        for policy, name in ((Guard(), "broken"), (Guard(), "odd"), (Nothing(), "a")):
            with self.assertRaises(Error):
                called(policy, "Admission", {"name": name})
        with self.assertRaisesRegex(Error, "no reconcile"):
            called(Guard(), "ConfigMap", {})

    def test_a_batch_goes_to_convert_and_a_failure_is_its_answer(self) -> None:
        old = {"apiVersion": "g.io/v1", "kind": "K", "metadata": {"name": "b", "namespace": "a"}, "size": 9007199254740993}
        new = {"apiVersion": "g.io/v2", "size": 1}
        answer = called(Guard(), "Conversion", {"desiredAPIVersion": "g.io/v2", "objects": [old, new]})
        self.assertEqual(answer, {"conversion": {"convertedObjects": [old | {"apiVersion": "g.io/v2", "from": "v1"}, new]}})
        with self.assertLogs(level="ERROR"):
            answer = called(Guard(), "Conversion", {"desiredAPIVersion": "g.io/v2", "objects": [old | {"bad": 1}]})
        self.assertEqual(answer, {"conversion": {"failed": "K a/b cannot be converted from g.io/v1 to g.io/v2: too old"}})
        self.assertEqual(Batch("vm", "g.io/v2", []).version, "v2")

    def test_a_plugin_may_have_no_controller(self) -> None:
        webhook = Webhook("guard", WebhookType.MUTATING, [Rule([""], ["v1"], ["pods"])], match_conditions={"a": "true"}, reads=[Kind.core("v1", "ConfigMap")])
        conversion = Conversion("vm", "g.io", "Vm", "vms", ["v1", "v2"])
        described = json.loads(Description("p", webhooks=[webhook], conversions=[conversion]).to_json())
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE", "UPDATE"]}
        self.assertEqual(
            described["webhooks"],
            [
                {
                    "name": "guard", "type": "mutating", "rules": [rule], "matchConditions": [{"name": "a", "expression": "true"}],
                    "reads": [{"version": "v1", "kind": "ConfigMap"}],
                }
            ],
        )
        self.assertEqual(described["conversions"], [{"name": "vm", "group": "g.io", "kind": "Vm", "resource": "vms", "versions": ["v1", "v2"]}])
        self.assertEqual(described["controllers"], [])


if __name__ == "__main__":
    unittest.main()
