"""Objects: as a dict, as a dataclass, as text; metadata and conditions."""

import unittest
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from enum import Enum
from typing import Any

from vmhost_plugin import Error, Kind, Object, meta, read
from vmhost_plugin.meta import Condition, ConditionStatus, ObjectMeta, OwnerReference


class Phase(Enum):
    UP = "Up"


@dataclass
class Disk:
    size_gi: int
    labels: dict[str, str] = field(default_factory=dict)


@dataclass
class Spec:
    status: str = ""
    memory: int | None = None
    disks: list[Disk] = field(default_factory=list)
    port: int | str = 80
    ratio: float = 1.0
    phase: Phase = Phase.UP
    rest: Any = None


@dataclass
class Machine:
    spec: Spec = field(default_factory=Spec)


class TestObject(unittest.TestCase):
    def test_the_text_is_untouched_and_numbers_are_exact(self) -> None:
        text = '{"spec" : {"n":12345678901234567890123, "x":null}}'
        found = Object(text)
        self.assertEqual(found.text, text)
        self.assertEqual(found["spec"]["n"], 12345678901234567890123)
        self.assertIsNone(found["spec"]["x"])
        self.assertNotIn("y", found["spec"])
        self.assertEqual(found.get("status", {}), {})

    def test_it_has_a_key_and_metadata(self) -> None:
        found = Object('{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"n","ownerReferences":[],"creationTimestamp":null}}')
        self.assertEqual(found.key, Kind("apps", "v1", "Deployment").key("web", "n"))
        self.assertEqual(str(found.key), "Deployment n/web")
        self.assertEqual(Object('{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"}}').key, Kind.core("v1", "Node").key("n"))

    def test_what_is_no_object_is_an_error(self) -> None:
        for text in ("[]", "{"):
            with self.assertRaisesRegex(Error, "the object cannot be read"):
                Object(text).get("x")


class TestRead(unittest.TestCase):
    def spec(self, spec: object) -> Spec:
        return Object.of({"spec": spec, "status": "not named, not read"}).read(Machine).spec

    def test_missing_fields_take_their_default(self) -> None:
        self.assertEqual(Object.of({}).read(Machine), Machine())
        self.assertEqual(self.spec({}), Spec())

    def test_fields_are_read_as_their_types(self) -> None:
        written = {"status": "x", "memory": None, "disks": [{"sizeGi": 5, "labels": {"a": "b"}}], "port": "http", "ratio": 2, "phase": "Up", "rest": [1]}
        self.assertEqual(self.spec(written), Spec("x", None, [Disk(5, {"a": "b"})], "http", 2, Phase.UP, [1]))

    def test_what_does_not_fit_is_named_by_its_path(self) -> None:
        for spec, text in (
            ({"status": 1}, "spec.status is 1, and must be a string"),
            ({"status": None}, "spec.status is null, and must be a string"),
            ({"memory": "4Gi"}, "spec.memory is '4Gi', and must be an integer"),
            ({"memory": True}, "spec.memory is True, and must be an integer"),
            ({"memory": 1.5}, "spec.memory is 1.5, and must be an integer"),
            ({"disks": [{"sizeGi": 1}, {}]}, r"spec.disks\[1\].sizeGi is missing"),
            ({"disks": {}}, "spec.disks is an object, and must be a list"),
            ({"disks": [{"sizeGi": 1, "labels": {"a": 2}}]}, r"spec.disks\[0\].labels.a is 2, and must be a string"),
            ({"phase": "Down"}, "spec.phase is 'Down', and must be one of Up"),
            ([], "spec is a list, and must be an object"),
            (None, "spec is null, and must be an object"),
        ):
            with self.assertRaisesRegex(Error, f"the object cannot be read: {text}$"):
                self.spec(spec)

    def test_a_type_that_json_does_not_know_is_refused(self) -> None:
        with self.assertRaisesRegex(Error, "cannot be read as <class 'complex'>"):
            read(complex, 1)


class TestMeta(unittest.TestCase):
    def test_an_object_is_controlled_by_the_owner_of_that_uid_only(self) -> None:
        kind = Kind("apps", "v1", "Deployment")
        owner = ObjectMeta("web", "default", "u-1")
        self.assertFalse(ObjectMeta("x").is_controlled_by(owner))
        self.assertFalse(ObjectMeta("x", owner_references=[OwnerReference.of(owner, kind)]).is_controlled_by(owner), "an owner that is no controller")
        child = ObjectMeta("x", owner_references=[OwnerReference.controller_of(owner, kind)])
        self.assertTrue(child.is_controlled_by(owner))
        self.assertFalse(child.is_controlled_by(ObjectMeta("web", "default", "u-3")), "another object of the same name")

    def test_metadata_of_an_api_server_is_read(self) -> None:
        text = """{"metadata":{"name":"web","namespace":"default","uid":"u-1","resourceVersion":"7","generation":3,"managedFields":[],
            "creationTimestamp":"2026-01-01T00:00:00Z","labels":{"app":"web"},"deletionTimestamp":null,"finalizers":["a/b"]}}"""
        found = Object(text).meta
        self.assertEqual((found.generation, found.labels["app"], found.finalizers, found.deletion_timestamp), (3, "web", ["a/b"], None))

    def test_the_transition_time_moves_only_with_the_status(self) -> None:
        conditions: list[Condition] = []

        def put(holds: bool, reason: str, second: int, generation: int | None = None) -> bool:
            new = Condition("Ready", ConditionStatus.of(holds), reason, "", generation)
            return meta.set_condition(conditions, new, datetime.fromtimestamp(second, UTC))

        self.assertTrue(put(False, "Starting", 0))
        self.assertFalse(put(False, "Starting", 5), "nothing changed")
        self.assertTrue(put(False, "Pulling", 6))
        self.assertEqual(conditions[0].last_transition_time, "1970-01-01T00:00:00Z")
        self.assertTrue(put(True, "Up", 7))
        self.assertTrue(put(True, "Up", 8, 2), "a newer generation is a change")
        self.assertEqual((len(conditions), conditions[0].last_transition_time, conditions[0].reason), (1, "1970-01-01T00:00:07Z", "Up"))

    def test_conditions_are_found_and_removed_by_type(self) -> None:
        conditions = [Condition("Ready", ConditionStatus.TRUE), Condition("Degraded", ConditionStatus.FALSE)]
        self.assertTrue(meta.is_condition(conditions, "Ready"))
        self.assertFalse(meta.is_condition(conditions, "Degraded"))
        self.assertFalse(meta.is_condition(conditions, "Absent", ConditionStatus.FALSE))
        self.assertTrue(meta.remove_condition(conditions, "Ready"))
        self.assertFalse(meta.remove_condition(conditions, "Ready"))
        self.assertIsNone(meta.find_condition(conditions, "Ready"))

    def test_a_condition_comes_back_as_it_was_written(self) -> None:
        conditions = [Condition("Ready", ConditionStatus.of(None), "Lost", "no word", 4, "1970-01-01T00:00:00Z")]
        written = Object.of({"conditions": conditions})
        self.assertEqual(
            written.text,
            '{"conditions":[{"type":"Ready","status":"Unknown","reason":"Lost","message":"no word","observedGeneration":4,'
            '"lastTransitionTime":"1970-01-01T00:00:00Z"}]}',
        )
        self.assertEqual(read(list[Condition], written["conditions"]), conditions)

    def test_times_are_in_utc_to_the_second(self) -> None:
        self.assertEqual(meta.rfc3339(datetime(2026, 1, 1, 1, 0, 0, 999, timezone(timedelta(hours=2)))), "2025-12-31T23:00:00Z")
        self.assertEqual(meta.rfc3339(datetime(2026, 1, 1)), "2026-01-01T00:00:00Z")
