"""The component's side, with a stand-in for the modules that componentize-py generates: the results
of calls, and the log."""

import importlib
import json
import logging
import sys
import unittest
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import patch

from vmhost_plugin import TRACE, Controller, Description, Error, Kind, MapRequest, NotWatched, ObjectName, Outcome, Policy, Request, cluster, policy, setting

POD = Kind.core("v1", "Pod")
Level = Enum("Level", "TRACE DEBUG INFO WARN ERROR")


class Err(Exception):
    def __init__(self, value: Any) -> None:
        self.value = value


@dataclass
class NotWatchedError:
    value: str


class Made(SimpleNamespace):
    """A stand-in for a generated module: each of its classes only stores its arguments."""

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments: (name, *arguments)


class Odd(Policy):
    """Does what the key's name says."""

    def describe(self) -> Description:
        return Description("odd", [Controller("odd", POD)])

    def reconcile(self, request: Request) -> Outcome:
        match request.key.name:
            case "raise":
                raise Error("broken on purpose")
            case "key":
                return {"status": Outcome.await_change()}["spec"]
            case "exit":
                sys.exit()
            case "none":
                return None  # type: ignore[return-value]
            case "half":
                return Outcome.fail("\ud800 \ud83d\ude00")
            case "recurse":
                return self.reconcile(request)
            case "read":
                cluster.get(POD.key("a"))
            case "log":
                for level in (TRACE, logging.DEBUG, logging.INFO, logging.WARNING, logging.CRITICAL):
                    logging.log(level, "%s\n%s", "one", "two")
                logging.info("%d", "no number")
            case "setting":
                return Outcome.retry(setting("colour") or "")
        return Outcome.await_change()

    def map_changes(self, request: MapRequest) -> Iterable[ObjectName]:
        if request.controller != "odd":
            raise Error(f"cannot map {request.controller}")
        return [ObjectName(change.new.meta.name) for change in request.changes if change.new]


class TestComponent(unittest.TestCase):
    def setUp(self) -> None:
        self.lines: list[tuple[str, str]] = []
        modules = {
            "types": Made(),
            "cluster": Made(ReadError_NotWatched=NotWatchedError, get=self.refuse),
            "config": SimpleNamespace(get={"colour": "red"}.get),
            "log": SimpleNamespace(Level=Level, log=lambda level, message: self.lines.append((level.name, message))),
        }
        made: dict[str, Any] = {f"wit_world.imports.{name}": module for name, module in modules.items()}
        made |= {"wit_world": ModuleType("wit_world"), "wit_world.imports": ModuleType("wit_world.imports")}
        made["componentize_py_types"] = SimpleNamespace(Err=Err)
        sys.modules.update(made)
        root = logging.getLogger()
        before = root.handlers[:], root.level, sys.get_int_max_str_digits()
        policy._marked[:] = [Odd]
        self.controller = importlib.import_module("vmhost_plugin.component").Controller()

        def undo() -> None:
            root.handlers[:], root.level = before[0], before[1]
            sys.set_int_max_str_digits(before[2])
            policy._marked.clear()
            for name in [*made, "vmhost_plugin.component"]:
                del sys.modules[name]

        self.addCleanup(undo)

    def refuse(self, key: Any) -> Any:
        raise Err(NotWatchedError("Pod"))

    def reconcile(self, name: str) -> Any:
        kind = SimpleNamespace(group="", version="v1", kind="Pod")
        key = SimpleNamespace(kind=kind, namespace=None, name=name)
        request = SimpleNamespace(controller="odd", key=key, object="{}", previous=None, deleting=False, attempt=0, last=None)
        return self.controller.reconcile(request)

    def retried(self, name: str) -> str:
        _, effects, (next_, text) = self.reconcile(name)
        self.assertEqual((effects, next_), ([], "Next_Retry"))
        return str(text)

    def test_it_describes_itself(self) -> None:
        self.assertEqual(json.loads(self.controller.describe())["name"], "odd")

    def test_a_description_that_cannot_be_written_is_an_error(self) -> None:
        with patch.object(type(self.controller._policy), "describe", side_effect=KeyError("SIZE")), self.assertRaises(Err) as refused:
            self.controller.describe()
        self.assertEqual(refused.exception.value, "KeyError: 'SIZE'")

    def test_every_exception_is_a_retry_with_its_traceback_in_the_log(self) -> None:
        texts = {"raise": "broken on purpose", "key": "KeyError: 'spec'", "exit": "SystemExit", "recurse": "maximum recursion depth exceeded"}
        for name, text in texts.items():
            self.assertTrue(self.retried(name).startswith(text), name)
            level, logged = self.lines.pop()
            self.assertEqual(level, "ERROR")
            self.assertTrue(logged.startswith("reconcile failed\nTraceback"), logged)
            self.assertIn("in reconcile", logged)

    def test_what_is_no_outcome_is_a_retry(self) -> None:
        self.assertEqual(self.retried("none"), "reconcile returned None, and must return an Outcome")

    def test_text_that_has_no_utf_8_form_is_mended(self) -> None:
        self.assertEqual(self.reconcile("half")[2], ("Next_Fail", "\ufffd 😀"))

    def test_a_read_that_is_refused_says_why(self) -> None:
        self.assertEqual(self.retried("read"), str(NotWatched("Pod a", "Pod")))

    def test_logging_reaches_the_host_with_its_levels(self) -> None:
        self.reconcile("log")
        self.assertEqual([level for level, _ in self.lines], ["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "INFO"])
        self.assertEqual(self.lines[0][1], "one\ntwo")
        self.assertIn("cannot be logged", self.lines[-1][1])

    def test_the_host_is_there_during_a_call_only(self) -> None:
        self.assertEqual(self.retried("setting"), "red")
        with self.assertRaisesRegex(Error, "there is no host here"):
            setting("colour")

    def test_changes_are_mapped_to_names(self) -> None:
        change = SimpleNamespace(old=None, new='{"metadata":{"name":"a"}}')
        self.assertEqual(self.controller.map_changes(SimpleNamespace(controller="odd", changes=[change])), [("ObjectName", None, "a")])
        with self.assertRaises(Err) as caught:
            self.controller.map_changes(SimpleNamespace(controller="other", changes=[]))
        self.assertEqual(caught.exception.value, "cannot map other")


class TestMarks(unittest.TestCase):
    def tearDown(self) -> None:
        policy._marked.clear()

    def test_exactly_one_class_is_marked(self) -> None:
        with self.assertRaisesRegex(Error, "no class is marked with @plugin"):
            policy.the_policy()
        self.assertIs(policy.plugin(Odd), Odd)
        self.assertIsInstance(policy.the_policy(), Odd)
        policy.plugin(Odd)
        with self.assertRaisesRegex(Error, r"there are 2: .*test_component\.Odd, "):
            policy.the_policy()
