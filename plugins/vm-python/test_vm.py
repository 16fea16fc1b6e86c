"""Tests of the policy, a plain class, without a host:
`PYTHONPATH=../sdk-python python3 -m unittest`."""

import json
import unittest

from vm import VIRTUAL_MACHINE, Vm
from vmhost_plugin import Error, Event, EventType, Object, Outcome, Patch, Request

KEY = VIRTUAL_MACHINE.key("public-wx", "default")


def reconcile(vm: dict[str, object] | None) -> Outcome:
    return Vm().reconcile(Request("virtualmachines", KEY, None if vm is None else Object.of(vm)))


class TestVm(unittest.TestCase):
    def patched(self, vm: dict[str, object]) -> tuple[Patch, Event]:
        outcome = reconcile(vm)
        patch, event = outcome.effects
        assert isinstance(patch, Patch) and isinstance(event, Event)
        self.assertEqual(outcome, Outcome.await_change(patch, event))
        self.assertEqual(patch.key, KEY)
        return patch, event

    def test_a_vm_that_is_creating_becomes_complete(self) -> None:
        specs: list[dict[str, object]] = [{"status": "creating"}, {"status": "creating", "memory": 4096, "disk": 500}]
        for spec in specs:
            patch, event = self.patched({"spec": spec})
            self.assertEqual(
                json.loads(patch.body),
                [{"op": "test", "path": "/spec/status", "value": "creating"}, {"op": "replace", "path": "/spec/status", "value": "complete"}],
            )
            self.assertEqual((event.type, event.reason), (EventType.NORMAL, "Completed"))

    def test_a_vm_that_cannot_be_fails_with_the_reason(self) -> None:
        patch, event = self.patched({"spec": {"status": "creating", "memory": 4096, "disk": -5}})
        self.assertEqual(
            json.loads(patch.body),
            [
                {"op": "test", "path": "/spec/status", "value": "creating"},
                {"op": "test", "path": "/spec/disk", "value": -5},
                {"op": "replace", "path": "/spec/status", "value": "fail"},
            ],
        )
        self.assertEqual((event.type, event.reason), (EventType.WARNING, "Impossible"))
        self.assertEqual(event.note, "spec.disk is -5, and must be more than 0")
        _, event = self.patched({"spec": {"status": "creating", "memory": 0}})
        self.assertTrue(event.note.startswith("spec.memory is 0"))

    def test_every_other_vm_is_left_alone(self) -> None:
        others: list[dict[str, object] | None]
        others = [None, {"spec": {"status": "complete"}}, {"spec": {"status": "fail", "memory": 0}}, {"spec": {}}, {}]
        for vm in others:
            self.assertEqual(reconcile(vm), Outcome.await_change())

    def test_a_vm_that_cannot_be_read_is_an_error(self) -> None:
        with self.assertRaisesRegex(Error, "the object cannot be read: spec.status is 1, and must be a string"):
            reconcile({"spec": {"status": 1}})


if __name__ == "__main__":
    unittest.main()
