"""Reads and settings, against the test host."""

import unittest
from typing import Any

from vmhost_plugin import Error, Invalid, Kind, Query, cluster, setting
from vmhost_plugin.testing import TestHost

POD = Kind.core("v1", "Pod")


def pod(namespace: str, name: str, label: str, owner: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, "labels": {"app": label}, "ownerReferences": [reference(owner)]}
    return {"apiVersion": "v1", "kind": "Pod", "spec": {"nodeName": "n"}, "metadata": metadata}


def reference(uid: str) -> dict[str, str]:
    return {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": uid}


def names(query: Query) -> list[str]:
    return [f"{each.meta.namespace}/{each.meta.name}" for each in cluster.list(query)]


class TestCluster(unittest.TestCase):
    def setUp(self) -> None:
        pods = [pod("b", "one", "web", "u-1"), pod("a", "two", "web", "u-2"), pod("a", "one", "db", "u-1")]
        self.enterContext(TestHost(pods, settings={"colour": "red"}))

    def test_objects_are_found_by_their_key(self) -> None:
        found = cluster.get(POD.key("one", "b"))
        assert found is not None
        self.assertEqual(found["metadata"]["labels"]["app"], "web")
        self.assertIsNone(cluster.get_live(POD.key("one")))
        self.assertEqual([each is not None for each in cluster.get_many([POD.key("two", "a"), POD.key("two", "b")])], [True, False])

    def test_lists_hold_all_pages_in_order(self) -> None:
        self.assertEqual(names(Query(POD, limit=1)), ["a/one", "a/two", "b/one"])
        self.assertEqual(cluster.count(Query(POD, limit=2)), 3)
        self.assertEqual(names(Query(POD, label_selector="app=web", namespace="a")), ["a/two"])
        self.assertEqual(names(Query(POD, label_selector="app,!legacy,app==db")), ["a/one"])
        self.assertEqual(names(Query(POD, owner="u-1")), ["a/one", "b/one"])
        self.assertTrue(all("spec" not in each for each in cluster.list_live(Query(POD, metadata_only=True))))

    def test_what_the_test_host_does_not_know_is_refused(self) -> None:
        with self.assertRaisesRegex(Invalid, "the list of Pod cannot be read: the test host has no indexes"):
            cluster.list_page(Query(POD, index=("node", "n")))
        with self.assertRaisesRegex(Invalid, "not 'app in '|not 'app in \\(a'"):
            names(Query(POD, label_selector="app in (a,b)"))

    def test_settings_are_the_operators(self) -> None:
        self.assertEqual(setting("colour"), "red")
        self.assertIsNone(setting("size"))


class TestNoHost(unittest.TestCase):
    def test_outside_of_a_call_there_is_no_host(self) -> None:
        with TestHost():
            pass
        for ask in (lambda: setting("colour"), lambda: cluster.get(POD.key("a"))):
            with self.assertRaisesRegex(Error, "there is no host here"):
                ask()
