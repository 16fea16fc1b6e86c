"""The reviews: admission and conversion."""

from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from typing import Any

from vmhost_plugin import Batch, Error, Op, Review, Verdict


def review_(review: Review) -> Verdict:
    told = [review.uid, review.operation, review.kind.kind, review.resource.resource, review.sub_resource, review.name, review.namespace or ""]
    return reduce(Verdict.warning, [*told, "dry run" if review.dry_run else ""], Verdict.allow())


def mutate(review: Review) -> Verdict:
    def change(new: dict[str, Any]) -> None:
        spec = new["spec"]
        spec["a/b~c"] = {"x": None}
        spec["text"] = "b"
        del spec["old"]
        spec["list"].insert(1, 9)

    return review.mutate(change)


def error(review: Review) -> Verdict:
    raise Error("broken on purpose")


REVIEWS: dict[str, Callable[[Review], Verdict]] = {
    "allow": lambda review: Verdict.allow().warning("careful: ☃").audit_annotation("user", review.user_info.username),
    "deny": lambda _: Verdict.deny("no: ☃"),
    "deny-as": lambda _: Verdict.deny("taken", code=409, reason="Conflict"),
    "delete": lambda _: Verdict.allow().warning("deleted"),
    "review": review_,
    "mutate": mutate,
    "operations": lambda _: Verdict.allow().with_(Op.add("/spec/a", 1), Op.remove("/spec/b")),
    "same": lambda review: review.mutate(lambda _: None),
    "error": error,
}


def admit(review: Review) -> Verdict:
    found = review.object or review.old_object
    name = "" if found is None else found["spec"]["case"]
    return REVIEWS[name](review) if name in REVIEWS else Verdict.deny(f"unknown case {name}")


def convert(batch: Batch) -> Iterable[Mapping[str, Any]]:
    before, after = ("case", "name") if batch.version == "v2" else ("name", "case")

    def one(each: dict[str, Any], version: str) -> None:
        spec = each["spec"]
        if before in spec:
            if spec[before] == "bad":
                raise Error("bad on purpose")
            spec[after] = spec.pop(before)

    return batch.each(one)
