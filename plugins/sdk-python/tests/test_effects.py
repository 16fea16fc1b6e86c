"""Outcomes and effects."""

import unittest

from vmhost_plugin import Apply, Create, Delete, Error, Event, EventType, Kind, Op, Other, Outcome, Patch, PatchType, Propagation, meta

KEY = Kind.core("v1", "ConfigMap").key("a", "default")


class TestEffects(unittest.TestCase):
    def test_an_apply_takes_over_and_creates_unless_it_is_told_otherwise(self) -> None:
        apply = Apply.of({"a": 1})
        self.assertEqual((apply.object, apply.force, apply.create_if_absent), ('{"a":1}', True, True))
        self.assertFalse(Apply.of({}, subresource="status").create_if_absent)
        self.assertFalse(Apply.of({}, create=False).create_if_absent)
        self.assertTrue(Apply.of({}, subresource="status", create=True).create_if_absent)

    def test_a_merge_patch_keeps_null(self) -> None:
        patch = Patch.merge(KEY, {"data": {"k": None}}, subresource="status", if_version="8")
        self.assertEqual((patch.type, patch.body, patch.subresource, patch.if_version), (PatchType.MERGE, '{"data":{"k":null}}', "status", "8"))

    def test_a_json_patch_is_its_operations(self) -> None:
        patch = Patch.json(KEY, Op.test("/a", 1), Op.add("/b/-", "x"), Op.replace("/c~1d", None), Op.remove("/e"))
        self.assertEqual(
            patch.body,
            '[{"op":"test","path":"/a","value":1},{"op":"add","path":"/b/-","value":"x"},'
            '{"op":"replace","path":"/c~1d","value":null},{"op":"remove","path":"/e"}]',
        )

    def test_dataclasses_are_written_in_camel_case_without_none(self) -> None:
        owner = meta.OwnerReference.controller_of(meta.ObjectMeta("web", "default", "u-1"), Kind("apps", "v1", "Deployment"))
        self.assertEqual(
            Create.of({"ownerReferences": [owner]}).object,
            '{"ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":"web","uid":"u-1","controller":true,"blockOwnerDeletion":true}]}',
        )

    def test_numbers_are_exact_and_what_json_cannot_say_is_refused(self) -> None:
        self.assertEqual(Create.of([9007199254740993, 12345678901234567890123]).object, "[9007199254740993,12345678901234567890123]")
        for value in (float("nan"), {1, 2}, object()):
            with self.assertRaisesRegex(Error, "this cannot be written as JSON"):
                Create.of(value)

    def test_an_effect_is_written_with_its_cluster(self) -> None:
        key = '"key":{"apiVersion":"v1","kind":"ConfigMap","namespace":"default","name":"a"}'
        apply = Apply.of({"n": 9007199254740993}, subresource="status")
        applied = '{"object":{"n":9007199254740993},"force":true,"createIfAbsent":false,"subresource":"status"}'
        cases: list[tuple[str | None, Apply | Patch | Create | Delete, str]] = [
            ("east", apply, '{"apply":' + applied + "}"),
            (None, Patch.merge(KEY, {"data": None}, if_version="8"), '{"patch":{' + key + ',"type":"merge","body":{"data":null},"ifVersion":"8"}}'),
            (None, Create.of({"kind": "X"}), '{"create":{"object":{"kind":"X"}}}'),
            ("east", Delete(KEY, uid="u-1", propagation=Propagation.ORPHAN), '{"delete":{' + key + ',"uid":"u-1","propagation":"orphan"}}'),
        ]
        for cluster, effect, body in cases:
            other = Other.in_cluster(cluster, effect)
            name = "null" if cluster is None else f'"{cluster}"'
            self.assertEqual((other.name, other.body), ("in-cluster", f'{{"cluster":{name},"effect":{body}}}'))
        group = Other.in_cluster(None, Delete(Kind("apps", "v1", "Deployment").key("x")))
        self.assertIn('"key":{"apiVersion":"apps/v1","kind":"Deployment","name":"x"}', group.body)
        with self.assertRaisesRegex(Error, "cannot be in a named cluster"):
            Other.in_cluster("east", Event.normal("Fine", ""))  # type: ignore[arg-type]

    def test_outcomes_say_what_comes_next(self) -> None:
        event = Event.warning("Broken", "it broke", related=KEY)
        self.assertEqual((event.type, event.action, event.related), (EventType.WARNING, "", KEY))
        self.assertEqual(Outcome.retry("later", event).effects, (event,))
        self.assertEqual(Outcome.requeue_after_ms(4294967295).ms, 4294967295)
        for ms in (-1, 4294967296, 1.5, True):
            with self.assertRaisesRegex(Error, "must be an integer from 0 to 4294967295"):
                Outcome.requeue_after_ms(ms)  # type: ignore[arg-type]
