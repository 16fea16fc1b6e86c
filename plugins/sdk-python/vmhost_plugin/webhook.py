"""The entries of a description for admission webhooks and conversions. The host validates their
JSON, and its errors name the invalid field."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from .objects import Kind
from .review import Operation
from .watch import Watch, compact, texts, watched


@dataclass(frozen=True)
class Rule:
    """Requests that a webhook is asked about. Each list may contain `*`."""

    api_groups: Sequence[str]
    """The core group is the empty string."""
    api_versions: Sequence[str]
    resources: Sequence[str]
    """Plurals: `pods`, `pods/exec`."""
    operations: Sequence[Operation] = (Operation.CREATE, Operation.UPDATE)
    scope: str | None = None
    """`*`, `Namespaced` or `Cluster`."""

    def to_json(self) -> dict[str, Any]:
        """Returns the JSON form."""
        return compact(
            apiGroups=texts("api_groups of Rule", self.api_groups),
            apiVersions=texts("api_versions of Rule", self.api_versions),
            resources=texts("resources of Rule", self.resources),
            operations=texts("operations of Rule", self.operations),
            scope=self.scope,
        )


class WebhookType(StrEnum):
    """Whether a webhook may change objects."""

    VALIDATING = "validating"
    MUTATING = "mutating"


@dataclass(frozen=True)
class Webhook:
    """An admission webhook: which requests the API server asks about, and what it does without an
    answer. `Policy.admit` answers."""

    name: str
    """Unique among the plugin's controllers, webhooks and conversions."""
    type: WebhookType
    rules: Sequence[Rule]
    namespace_selector: Mapping[str, Any] | None = None
    """Only objects of these namespaces: a label selector, as Kubernetes writes it."""
    object_selector: Mapping[str, Any] | None = None
    """Only objects with these labels, before or after the change."""
    match_conditions: Mapping[str, str] | None = None
    """CEL expressions by name, over `object`, `oldObject` and `request`; all must be true."""
    failure_policy: str | None = None
    """Without an answer the request is refused (`Fail`, the default) or let through (`Ignore`)."""
    side_effects: str | None = None
    """`None`, the default, or `NoneOnDryRun`."""
    timeout_seconds: int | None = None
    """How long the API server waits for the answer, 1 to 30. Default: 10."""
    reinvocation_policy: str | None = None
    """`IfNeeded` asks a mutating webhook again if a later one changed the object."""
    match_policy: str | None = None
    """`Exact` or `Equivalent`: also about the same object in other versions."""
    reads: Sequence[Watch | Kind] = ()
    """Kinds that it reads."""

    def to_json(self) -> dict[str, Any]:
        """Returns the JSON form."""
        conditions = (self.match_conditions or {}).items()
        return compact(
            name=self.name,
            type=self.type,
            rules=[rule.to_json() for rule in self.rules],
            namespaceSelector=self.namespace_selector,
            objectSelector=self.object_selector,
            matchConditions=[{"name": name, "expression": expression} for name, expression in conditions] or None,
            failurePolicy=self.failure_policy,
            sideEffects=self.side_effects,
            timeoutSeconds=self.timeout_seconds,
            reinvocationPolicy=self.reinvocation_policy,
            matchPolicy=self.match_policy,
            reads=[watched(each) for each in self.reads] or None,
        )


@dataclass(frozen=True)
class Conversion:
    """A custom resource whose versions `Policy.convert` converts into each other."""

    name: str
    """Unique among the plugin's controllers, webhooks and conversions."""
    group: str
    kind: str
    resource: str
    """The plural."""
    versions: Sequence[str]
    reads: Sequence[Watch | Kind] = ()
    """Kinds that it reads. Not its own: to fill that cache, the API server would ask for a
    conversion."""

    def to_json(self) -> dict[str, Any]:
        """Returns the JSON form."""
        return compact(
            name=self.name,
            group=self.group,
            kind=self.kind,
            resource=self.resource,
            versions=texts("versions of Conversion", self.versions),
            reads=[watched(each) for each in self.reads] or None,
        )
