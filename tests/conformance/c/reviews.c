/* The reviews: admission and conversion. */
#include "reviews.h"

#include <string.h>

static void allow(const vmhost_review *review, vmhost_verdict *verdict) {
    vmhost_allow(verdict);
    vmhost_warning(verdict, "careful: ☃");
    vmhost_audit(verdict, "user", review->user);
}

static void deny(const vmhost_review *review, vmhost_verdict *verdict) { (void)review, vmhost_deny(verdict, "no: ☃"); }

static void deny_as(const vmhost_review *review, vmhost_verdict *verdict) { (void)review, vmhost_deny_as(verdict, 409, "Conflict", "taken"); }

static void delete_(const vmhost_review *review, vmhost_verdict *verdict) {
    (void)review;
    vmhost_allow(verdict);
    vmhost_warning(verdict, "deleted");
}

static void tell(const vmhost_review *review, vmhost_verdict *verdict) {
    const char *told[] = {review->uid,          review->operation, review->kind.kind,           review->resource,
                          review->sub_resource, review->name,      review->ns ? review->ns : "", review->dry_run ? "dry run" : ""};
    vmhost_allow(verdict);
    for (size_t i = 0; i < sizeof told / sizeof *told; i++) vmhost_warning(verdict, "%s", told[i]);
}

static void mutate(const vmhost_review *review, vmhost_verdict *verdict) {
    vmhost_value list = vmhost_at(review->object, "/spec/list");
    const char *longer = VMHOST_ARRAY_OF(vmhost_raw(vmhost_at(list, "/0")), "9", vmhost_raw(vmhost_at(list, "/1")), vmhost_raw(vmhost_at(list, "/2")));
    const char *object = vmhost_set_at(review->object, "/spec/a~1b~0c", "{\"x\":null}");
    object = vmhost_set_at((vmhost_value){object}, "/spec/text", "\"b\"");
    object = vmhost_set_at((vmhost_value){object}, "/spec/old", NULL);
    vmhost_change_to(verdict, vmhost_set_at((vmhost_value){object}, "/spec/list", longer));
}

static void operations(const vmhost_review *review, vmhost_verdict *verdict) {
    (void)review;
    vmhost_operation(verdict, vmhost_add("/spec/a", "1"));
    vmhost_operation(verdict, vmhost_remove("/spec/b"));
}

static void same(const vmhost_review *review, vmhost_verdict *verdict) { vmhost_change_to(verdict, vmhost_raw(review->object)); }

static void error(const vmhost_review *review, vmhost_verdict *verdict) {
    (void)review, (void)verdict;
    vmhost_set_error("broken on purpose");
}

static const struct {
    const char *name;
    void (*run)(const vmhost_review *review, vmhost_verdict *verdict);
} reviews[] = {{"allow", allow},   {"deny", deny},             {"deny-as", deny_as}, {"delete", delete_}, {"review", tell},
               {"mutate", mutate}, {"operations", operations}, {"same", same},       {"error", error}};

void admit(const vmhost_review *review, vmhost_verdict *verdict) {
    const char *name = vmhost_string(review->object.text ? review->object : review->old_object, "/spec/case");
    for (size_t i = 0; name && i < sizeof reviews / sizeof *reviews; i++) {
        if (strcmp(reviews[i].name, name)) continue;
        reviews[i].run(review, verdict);
        return;
    }
    vmhost_deny(verdict, "unknown case %s", name ? name : "");
}

void convert(const vmhost_batch *batch, vmhost_converted *converted) {
    bool newer = !strcmp(batch->version, "v2");
    const char *from = newer ? "/spec/case" : "/spec/name", *to = newer ? "/spec/name" : "/spec/case";
    for (size_t i = 0; i < batch->count; i++) {
        const char *object = vmhost_set_at(batch->objects[i], "/apiVersion", vmhost_quote(batch->desired));
        const char *have = vmhost_string(batch->objects[i], "/apiVersion"), *name = vmhost_string(batch->objects[i], from);
        if (name && have && strcmp(have, batch->desired)) {
            if (!strcmp(name, "bad")) vmhost_set_error("bad on purpose");
            object = vmhost_set_at((vmhost_value){object}, from, NULL);
            object = vmhost_set_at((vmhost_value){object}, to, vmhost_quote(name));
        }
        vmhost_convert_to(converted, object);
    }
}
