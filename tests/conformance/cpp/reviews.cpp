// The reviews: admission and conversion.
#include "reviews.hpp"

#include <string_view>

using namespace vmhost;

static void tell(const Review &review, Verdict &verdict) {
    verdict.allow();
    for (const char *text : {review.uid, review.operation, review.kind.kind, review.resource, review.sub_resource, review.name, review.ns ? review.ns : "",
                             review.dry_run ? "dry run" : ""})
        verdict.warning(text);
}

static void mutate(const Review &review, Verdict &verdict) {
    Value list = review.object["/spec/list"];
    Value object = review.object;
    object = vmhost_value{object.with("/spec/a~1b~0c", Json::object({{"x", nullptr}}))};
    object = vmhost_value{object.with("/spec/text", Json("b"))};
    object = vmhost_value{object.with("/spec/old", nullptr)};
    verdict.change_to(object.with("/spec/list", Json::array({list["/0"], 9, list["/1"], list["/2"]})));
}

void review(const Review &review, Verdict &verdict) {
    auto name = (review.object ? review.object : review.old_object).string("/spec/case").value_or("");
    if (name == "allow") {
        verdict.allow();
        verdict.warning("careful: ☃");
        verdict.audit("user", review.user);
    } else if (name == "deny") {
        verdict.deny("no: ☃");
    } else if (name == "deny-as") {
        verdict.deny_as(409, "Conflict", "taken");
    } else if (name == "delete") {
        verdict.allow();
        verdict.warning("deleted");
    } else if (name == "review") {
        tell(review, verdict);
    } else if (name == "mutate") {
        mutate(review, verdict);
    } else if (name == "operations") {
        verdict.add("/spec/a", 1);
        verdict.remove("/spec/b");
    } else if (name == "same") {
        verdict.change_to(review.object.raw());
    } else if (name == "error") {
        vmhost_set_error("broken on purpose");
    } else {
        verdict.deny(vmhost_format("unknown case %s", name.data()));
    }
}

const char *one(Value object, const Batch &batch) {
    bool newer = std::string_view(batch.version) == "v2";
    const char *from = newer ? "/spec/case" : "/spec/name", *to = newer ? "/spec/name" : "/spec/case";
    auto name = object.string(from);
    if (!name) return object.raw();
    if (*name == "bad") vmhost_set_error("bad on purpose");
    Value without = vmhost_value{object.with(from, nullptr)};
    return without.with(to, Json(*name));
}
