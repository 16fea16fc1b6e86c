"""Returns the description of the conformance guest: ../description.json, with the SDK's builders.
"""

from vmhost_plugin import (
    Bucket, Changed, Controller, Conversion, Description, HttpGrant, HttpHeader, Kind, Map, Operation, Permission, Predicates, Retry, Rule, Verb, Watch,
    Webhook, WebhookType,
)

CASE = Kind("conformance.vmhost.dev", "v1", "Case")
CONFIG_MAP = Kind.core("v1", "ConfigMap")
POD = Kind.core("v1", "Pod")


def description() -> Description:
    return Description(
        "conformance",
        version="1.2.3",
        controllers=[
            Controller(
                "cases",
                Watch(
                    CASE,
                    label_selector="app=case",
                    field_selector="metadata.name!=ignored",
                    wanted_fields=["spec", "status.phase"],
                    indexes={"by-node": "spec.nodeName"},
                    predicates=Predicates(
                        changed=[Changed.GENERATION, Changed.LABELS],
                        label_selector="tier in (a,b)",
                        field_selector="spec.paused!=true",
                        cel="object.spec.case != ''",
                    ),
                ),
                owns=[CONFIG_MAP],
                watches=[
                    Watch(Kind.core("v1", "Secret"), metadata_only=True, map=Map.GUEST),
                    Watch(Kind.core("v1", "Node"), map=Map.index("by-node")),
                    Watch(Kind("apps", "v1", "Deployment"), map=Map.label("case")),
                    Watch(Kind("apps", "v1", "StatefulSet"), map=Map.field("spec.serviceName")),
                    Watch(Kind.core("v1", "Service"), map=Map.NAME),
                    Watch(Kind.core("v1", "Endpoints"), map=Map.OWNER),
                ],
                reads=[Kind.core("v1", "Namespace"), Watch(POD, live=True)],
                finalizer="conformance.vmhost.dev/clean-up",
                previous=True,
                event_source="conformance-controller",
                concurrency=2,
                retry=Retry(base_ms=10, cap_ms=20000, max_retries=7, bucket=Bucket(per_second=10, burst=100)),
            ),
            Controller("ticker", every_ms=60000),
            Controller("starter", once=True),
        ],
        webhooks=[
            Webhook(
                "guard",
                WebhookType.VALIDATING,
                [
                    Rule(
                        ["conformance.vmhost.dev"],
                        ["v1"],
                        ["cases", "cases/status"],
                        [Operation.CREATE, Operation.UPDATE, Operation.DELETE],
                        scope="Namespaced",
                    )
                ],
                match_conditions={"not-me": "request.userInfo.username != 'me'"},
                timeout_seconds=3,
                reads=[CONFIG_MAP],
            ),
            Webhook(
                "defaults",
                WebhookType.MUTATING,
                [Rule(["*"], ["*"], ["*/*"], [Operation.ALL])],
                namespace_selector={"matchLabels": {"a": "b"}},
                object_selector={"matchExpressions": [{"key": "c", "operator": "In", "values": ["d"]}]},
                failure_policy="Ignore",
                side_effects="NoneOnDryRun",
                reinvocation_policy="IfNeeded",
                match_policy="Exact",
            ),
        ],
        conversions=[Conversion("convert", "conformance.vmhost.dev", "Case", "cases", ["v1", "v2"], reads=[CONFIG_MAP])],
        permissions=[
            Permission(CASE, [Verb.PATCH]),
            Permission(CASE, [Verb.PATCH], subresources=["status"], namespaces=["default"], optional=True),
            Permission(CONFIG_MAP, [Verb.CREATE, Verb.PATCH, Verb.DELETE]),
        ],
        http=[
            HttpGrant(
                "api.example.com",
                port=8080,
                scheme="http",
                methods=["GET", "POST"],
                path_prefix="/v1",
                headers=[HttpHeader("Authorization", prefix="Bearer ", secret=("default", "api", "token")), HttpHeader("X-Tenant", setting="tenant")],
                url_setting="url",
                allow_private=True,
            ),
            HttpGrant("*.example.com"),
        ],
        custom_resource_definitions=[
            {
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "metadata": {"name": "cases.conformance.vmhost.dev"},
                "spec": {"group": "conformance.vmhost.dev", "names": {"plural": "cases"}},
            }
        ],
        settings_schema={
            "type": "object",
            "required": ["given"],
            "properties": {"given": {"type": "string", "minLength": 1}, "limit": {"type": "integer", "minimum": 1, "default": 10}},
        },
    )
