"""The ten effects of the case `effects`, and the four of `in-cluster`."""

from describe import CONFIG_MAP
from vmhost_plugin import Apply, Create, Delete, Event, Kind, Op, Other, Patch, Propagation

A = CONFIG_MAP.key("a", "default")
OBJECT = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}, "data": {"k": "v"}}

TEN = (
    Apply.of(OBJECT, subresource="status", force=False, create=False, if_version="7"),
    Apply.of(OBJECT),
    Patch.merge(A, {"data": {"k": None}}, subresource="status", if_version="8"),
    Patch.json(Kind.core("v1", "Namespace").key("n"), Op.test("/a", 1), Op.add("/b/-", "x"), Op.replace("/c~1d", None), Op.remove("/e")),
    Create.of({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "a-", "namespace": "default"}}),
    Delete(A, uid="u-1", if_version="9", propagation=Propagation.FOREGROUND),
    Delete(CONFIG_MAP.key("b", "default")),
    Event.warning("Broken", "it broke: ☃", action="Mending", related=A),
    Event.normal("Fine", ""),
    Other.of("future", {"x": 1}),
)

FOUR = (
    Other.in_cluster("east", Apply.of(OBJECT)),
    Other.in_cluster(None, Patch.merge(A, {"data": {"k": "v"}}, subresource="status", if_version="8")),
    Other.in_cluster("east", Create.of({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "default"}})),
    Other.in_cluster("east", Delete(Kind("apps", "v1", "Deployment").key("d", "default"), uid="u-1", propagation=Propagation.ORPHAN)),
)
