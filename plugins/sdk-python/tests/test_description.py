"""The description's builders, compared with the document that all languages must be able to
produce."""

import json
import unittest
from pathlib import Path

from vmhost_plugin import (
    Bucket, Changed, Controller, Conversion, Description, Error, HttpGrant, HttpHeader, Kind, Map, Permission, Predicates, Retry, Rule, Verb,
    Watch, Webhook, WebhookType,
)

POD = Kind.core("v1", "Pod")
CASE = Kind("example.com", "v1", "Case")
SCHEMA = Path(__file__).parents[3] / "wit/v1/description.schema.json"


def everything() -> Description:
    watch = Watch(
        CASE,
        wanted_fields=["spec"],
        label_selector="a=b",
        field_selector="metadata.name=x",
        metadata_only=True,
        indexes={"by-node": "spec.nodeName"},
        predicates=Predicates([Changed.GENERATION], "c=d", "spec.x=y", "true"),
    )
    cases = Controller(
        "cases",
        watch,
        owns=[POD],
        watches=[Watch(POD, map=Map.GUEST), Watch(POD, map=Map.label("l")), Watch(POD, map=Map.field("f")), Watch(POD, map=Map.index("i"))],
        reads=[Watch(POD, live=True)],
        finalizer="example.com/clean-up",
        previous=True,
        event_source="source",
        concurrency=2,
        clusters="members",
        retry=Retry(1, 2, 3, Bucket(4, 5)),
    )
    permission = Permission(CASE, [Verb.PATCH], subresources=["status"], namespaces=["default"], optional=True)
    definition = {"kind": "CustomResourceDefinition"}
    http = HttpGrant("*.example.com", 1, "http", ["GET"], "/v1", [HttpHeader("A", "b ", ("n", "s", "k"), "t")], "url", True)
    webhook = Webhook(
        "defaults",
        WebhookType.MUTATING,
        [Rule([""], ["v1"], ["pods"], scope="Namespaced")],
        namespace_selector={"matchLabels": {"a": "b"}},
        object_selector={"matchLabels": {"c": "d"}},
        match_conditions={"always": "true"},
        failure_policy="Ignore",
        side_effects="NoneOnDryRun",
        timeout_seconds=3,
        reinvocation_policy="IfNeeded",
        match_policy="Exact",
        reads=[POD],
    )
    conversion = Conversion("convert", "example.com", "Case", "cases", ["v1", "v2"], reads=[POD])
    controllers = [cases, Controller("ticker", every_ms=5)]
    return Description("all", controllers, "1.0.0", [permission], [definition], [http], [webhook], [conversion], {"type": "object"})


class TestDescription(unittest.TestCase):
    def test_nothing_that_was_not_said_is_written(self) -> None:
        written = Description("hello", [Controller("greeter", POD)]).to_json()
        self.assertEqual(written, '{"apiVersion":"vmhost/v1","name":"hello","controllers":[{"name":"greeter","primary":{"version":"v1","kind":"Pod"}}]}')

    def test_all_that_can_be_said_is_written(self) -> None:
        written = json.loads(everything().to_json())
        cases, ticker = written["controllers"]
        self.assertEqual(
            cases["primary"],
            {
                "group": "example.com", "version": "v1", "kind": "Case", "wantedFields": ["spec"], "labelSelector": "a=b", "fieldSelector": "metadata.name=x",
                "metadataOnly": True, "indexes": {"by-node": "spec.nodeName"},
                "predicates": {"changed": ["generation"], "labelSelector": "c=d", "fieldSelector": "spec.x=y", "cel": "true"},
            },
        )
        self.assertEqual(cases["owns"], [{"version": "v1", "kind": "Pod"}])
        self.assertEqual([each["map"] for each in cases["watches"]], ["guest", {"label": "l"}, {"field": "f"}, {"index": "i"}])
        self.assertEqual(cases["reads"], [{"version": "v1", "kind": "Pod", "live": True}])
        self.assertEqual(cases["retry"], {"baseMs": 1, "capMs": 2, "maxRetries": 3, "bucket": {"perSecond": 4, "burst": 5}})
        self.assertEqual((cases["finalizer"], cases["previous"], cases["eventSource"], cases["concurrency"]), ("example.com/clean-up", True, "source", 2))
        self.assertEqual(cases["clusters"], "members")
        self.assertEqual(ticker, {"name": "ticker", "timer": {"everyMs": 5}})
        self.assertEqual(
            written["permissions"],
            [{"group": "example.com", "version": "v1", "kind": "Case", "verbs": ["patch"], "subresources": ["status"], "namespaces": ["default"], "optional": True}],
        )
        self.assertEqual(written["settingsSchema"], {"type": "object"})
        self.assertEqual(written["setup"], {"customResourceDefinitions": [{"kind": "CustomResourceDefinition"}]})

    @unittest.skipUnless(SCHEMA.exists(), "the schema is beside the SDK in vmhost's own repository only")
    def test_every_field_of_the_schema_can_be_said(self) -> None:
        schema = json.loads(SCHEMA.read_text())
        written = json.loads(everything().to_json())
        controller, predicates = schema["$defs"]["controller"], schema["$defs"]["predicates"]
        primary = written["controllers"][0]["primary"]
        self.assertEqual(set(written), set(schema["properties"]))
        self.assertEqual(set(written["controllers"][0]) | {"timer"}, set(controller["properties"]))
        self.assertEqual(set(primary) | {"map", "live"}, set(schema["$defs"]["watched"]["properties"]))
        self.assertEqual(set(primary["predicates"]), set(predicates["properties"]))
        self.assertEqual(set(written["permissions"][0]), set(schema["$defs"]["permission"]["properties"]))
        self.assertEqual(set(written["http"][0]), set(schema["$defs"]["http"]["properties"]))
        self.assertEqual(set(written["http"][0]["headers"][0]), set(schema["$defs"]["httpHeader"]["properties"]))
        self.assertEqual(set(written["controllers"][0]["retry"]), set(schema["$defs"]["retry"]["properties"]))

        webhook = written["webhooks"][0]
        self.assertEqual(set(webhook), set(schema["$defs"]["webhook"]["properties"]))
        self.assertEqual(set(webhook["rules"][0]), set(schema["$defs"]["rule"]["properties"]))
        self.assertEqual(set(written["conversions"][0]), set(schema["$defs"]["conversion"]["properties"]))

    def test_a_string_in_place_of_a_list_is_refused(self) -> None:
        with self.assertRaisesRegex(Error, "wanted_fields of Watch is the string 'spec', and must be a list of strings"):
            Watch(POD, wanted_fields="spec").to_json()
