"""The description of a plugin. The host validates its JSON, and its errors name the invalid field.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from . import json_text
from .objects import Kind
from .watch import Watch, compact, kind_json, texts, watched
from .webhook import Conversion, Webhook


class Verb(StrEnum):
    """What an effect does to an object."""

    CREATE = "create"
    PATCH = "patch"
    """Covers apply, JSON patch and merge patch."""
    DELETE = "delete"


@dataclass(frozen=True)
class Permission:
    """What the plugin's effects may do. The host refuses other effects before anything is written.
    """

    kind: Kind
    verbs: Sequence[Verb]
    subresources: Sequence[str] = ()
    """On these subresources instead of the object itself."""
    namespaces: Sequence[str] = ()
    """Only in these namespaces."""
    optional: bool = False
    """Whether the plugin runs without it, too: it is then narrowed to what the operator allows."""

    def to_json(self) -> dict[str, Any]:
        """Returns the JSON form."""
        return kind_json(self.kind) | compact(
            optional=self.optional or None,
            verbs=texts("verbs of Permission", self.verbs),
            subresources=texts("subresources of Permission", self.subresources) or None,
            namespaces=texts("namespaces of Permission", self.namespaces) or None,
        )


@dataclass(frozen=True)
class HttpHeader:
    """A header that the host adds, with the value of a Secret's key or of an operator's setting. The
    policy never sees it."""

    name: str
    prefix: str | None = None
    """What stands before the value: `Bearer `."""
    secret: tuple[str, str, str] | None = None
    """Namespace, name and key."""
    setting: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Returns the JSON form."""
        secret = None if self.secret is None else dict(zip(("namespace", "name", "key"), self.secret, strict=True))
        return compact(name=self.name, prefix=self.prefix, secret=secret, setting=self.setting)


@dataclass(frozen=True)
class HttpGrant:
    """Requests that the plugin may send to a service outside of the cluster."""

    host: str
    """A name, `*.domain`, or an address."""
    port: int | None = None
    scheme: str | None = None
    """`https`, or `http`. If None, `https`."""
    methods: Sequence[str] = ()
    """If empty, GET only."""
    path_prefix: str | None = None
    headers: Sequence[HttpHeader] = ()
    url_setting: str | None = None
    """The operator's setting with the URL of the service, which replaces scheme, host and port."""
    allow_private: bool = False
    """The host may have a private address; the operator has to name it, too."""

    def to_json(self) -> dict[str, Any]:
        """Returns the JSON form."""
        return compact(
            host=self.host,
            port=self.port,
            scheme=self.scheme,
            methods=texts("methods of HttpGrant", self.methods) or None,
            pathPrefix=self.path_prefix,
            headers=[each.to_json() for each in self.headers] or None,
            urlSetting=self.url_setting,
            allowPrivate=self.allow_private or None,
        )


@dataclass(frozen=True)
class Bucket:
    """A rate limit for the retries of all keys together."""

    per_second: int
    burst: int


@dataclass(frozen=True)
class Retry:
    """The back-off of a failing key, in milliseconds: the first delay, which doubles, and the
    longest."""

    base_ms: int | None = None
    cap_ms: int | None = None
    max_retries: int | None = None
    """The number of retries after which a failing key is dropped and reported, until the object or
    the plugin changes."""
    bucket: Bucket | None = None


@dataclass(frozen=True)
class Controller:
    """One controller: its keys, what wakes them, and how they are processed. It has a `primary`,
    `every_ms`, or `once`."""

    name: str
    primary: Watch | Kind | None = None
    """The kind whose objects are its keys (controller-runtime's `For`)."""
    every_ms: int | None = None
    """For a controller without a primary kind: one turn at the start, and then one per period."""
    once: bool = False
    """For a controller without a primary kind: one turn at the start, and one after each swap."""
    owns: Sequence[Watch | Kind] = ()
    """Kinds of objects that it creates, with a controller reference to the primary
    (controller-runtime's `Owns`)."""
    watches: Sequence[Watch] = ()
    """Other kinds that wake keys, each with a `map` (controller-runtime's `Watches`)."""
    reads: Sequence[Watch | Kind] = ()
    """Other kinds that it reads. They wake no keys."""
    finalizer: str | None = None
    """`domain/name`. Added to each object before the policy first sees it; removed after the
    policy, called with `deleting`, returns `finalized`."""
    previous: bool = False
    """Sets `request.previous` to the object as of the last turn that succeeded."""
    event_source: str | None = None
    """The reporter of Events (`reportingController`). Default: the names of plugin and controller.
    """
    concurrency: int | None = None
    """The number of keys that are processed at once."""
    retry: Retry | None = None
    clusters: str | None = None
    """In which clusters the keys are: `home` (the default), `members` (all others of the host, with
    a queue for each), or a label selector of members.
    """

    def to_json(self) -> dict[str, Any]:
        """Returns the JSON form."""
        timer = compact(everyMs=self.every_ms, once=self.once or None)
        return compact(
            name=self.name,
            primary=None if self.primary is None else watched(self.primary),
            timer=timer or None,
            owns=[watched(each) for each in self.owns] or None,
            watches=[watched(each) for each in self.watches] or None,
            reads=[watched(each) for each in self.reads] or None,
            finalizer=self.finalizer,
            previous=self.previous or None,
            eventSource=self.event_source,
            concurrency=self.concurrency,
            retry=self.retry,
            clusters=self.clusters,
        )


@dataclass(frozen=True)
class Description:
    """The description of a plugin. The name owns fields: do not change it."""

    name: str
    controllers: Sequence[Controller] = ()
    version: str | None = None
    """The plugin's own version, for display."""
    permissions: Sequence[Permission] = ()
    custom_resource_definitions: Sequence[Mapping[str, Any]] = ()
    """Definitions that the host installs before the controllers start, if the operator allows it
    (`--install-crds`)."""
    http: Sequence[HttpGrant] = ()
    """The HTTP requests that it may send."""
    webhooks: Sequence[Webhook] = ()
    """Admission webhooks, which `Policy.admit` answers."""
    conversions: Sequence[Conversion] = ()
    """Custom resources whose versions `Policy.convert` converts."""
    settings_schema: Mapping[str, Any] | None = None
    """The structural schema that the settings of a Plugin object have to fit."""

    def to_json(self) -> str:
        """Returns the document that `describe` returns."""
        definitions = list(self.custom_resource_definitions)
        return json_text.write(
            compact(
                apiVersion="vmhost/v1",
                name=self.name,
                version=self.version,
                controllers=[each.to_json() for each in self.controllers],
                webhooks=[each.to_json() for each in self.webhooks] or None,
                conversions=[each.to_json() for each in self.conversions] or None,
                permissions=[each.to_json() for each in self.permissions] or None,
                http=[each.to_json() for each in self.http] or None,
                setup={"customResourceDefinitions": definitions} if definitions else None,
                settingsSchema=self.settings_schema,
            )
        )
