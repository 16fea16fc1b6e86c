/* review.c: admission and conversion: from a call of the host to the policy's function for it, and
 * the answers. */
#include "internal.h"

#include <string.h>

struct vmhost_verdict {
    enum { UNDECIDED, ALLOWED, DENIED } decision;
    const vmhost_review *review;
    const char *status;
    text_list patch, warnings, annotations;
};

struct vmhost_converted {
    text_list objects;
};

static void put(text_list *to, const char *each) {
    to->items = list_room(to->items, to->count, sizeof *to->items);
    to->items[to->count++] = each;
}

/* ---- verdicts ---- */

void vmhost_allow(vmhost_verdict *verdict) {
    verdict->decision = ALLOWED;
    verdict->status = NULL;
}

static void deny(vmhost_verdict *verdict, unsigned code, const char *reason, const char *message) {
    const char *members[] = {"message", vmhost_quote(message), "code", vmhost_format("%u", code), "reason", vmhost_quote(reason)};
    verdict->decision = DENIED;
    verdict->status = vmhost_object_of(members, reason ? 6 : 4);
}

void vmhost_deny(vmhost_verdict *verdict, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    deny(verdict, 403, "Forbidden", vformat(format, arguments));
    va_end(arguments);
}

void vmhost_deny_as(vmhost_verdict *verdict, uint16_t code, const char *reason, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    deny(verdict, code, reason, vformat(format, arguments));
    va_end(arguments);
}

void vmhost_warning(vmhost_verdict *verdict, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    put(&verdict->warnings, vmhost_quote(vformat(format, arguments)));
    va_end(arguments);
}

void vmhost_audit(vmhost_verdict *verdict, const char *key, const char *value) {
    put(&verdict->annotations, key);
    put(&verdict->annotations, vmhost_quote(value ? value : ""));
}

void vmhost_operation(vmhost_verdict *verdict, const char *operation) {
    vmhost_allow(verdict);
    put(&verdict->patch, operation);
}

void vmhost_change_to(vmhost_verdict *verdict, const char *object) {
    if (!verdict->review->object.text) {
        vmhost_set_error("a request without an object cannot be changed");
        return;
    }
    vmhost_allow(verdict);
    diff(verdict->review->object, (vmhost_value){object}, &verdict->patch);
}

/* Returns the contract's AdmissionResponse without uid, with the patch as a list. */
static const char *response(const vmhost_verdict *verdict) {
    const char *members[10];
    size_t count = 0;
    members[count++] = "allowed";
    members[count++] = verdict->decision == ALLOWED ? "true" : "false";
    if (verdict->status) {
        members[count++] = "status";
        members[count++] = verdict->status;
    }
    if (verdict->patch.count && verdict->decision == ALLOWED) {
        members[count++] = "patch";
        members[count++] = vmhost_array_of(verdict->patch.items, verdict->patch.count);
    }
    if (verdict->warnings.count) {
        members[count++] = "warnings";
        members[count++] = vmhost_array_of(verdict->warnings.items, verdict->warnings.count);
    }
    if (verdict->annotations.count) {
        members[count++] = "auditAnnotations";
        members[count++] = vmhost_object_of(verdict->annotations.items, verdict->annotations.count);
    }
    return vmhost_object_of(members, count);
}

/* ---- admission ---- */

/* Returns a string of the review; "" if it is absent. */
static const char *string(vmhost_value from, const char *pointer) {
    const char *found = vmhost_string(from, pointer);
    return found ? found : "";
}

/* Returns an object of the review; absent if it is null. */
static vmhost_value object(vmhost_value from, const char *pointer) {
    vmhost_value found = vmhost_at(from, pointer);
    return vmhost_type_of(found) == VMHOST_NULL ? (vmhost_value){NULL} : found;
}

/* A failure is no verdict: the webhook's failure policy decides about the request. */
static void admission(const vmhost_request *request, vmhost_outcome *outcome) {
    vmhost_value from = request->object;
    vmhost_review review = {
        .webhook = request->controller,
        .uid = string(from, "/uid"),
        .operation = string(from, "/operation"),
        .kind = {string(from, "/kind/group"), string(from, "/kind/version"), string(from, "/kind/kind")},
        .resource = string(from, "/resource/resource"),
        .sub_resource = string(from, "/subResource"),
        .name = string(from, "/name"),
        .ns = vmhost_string(from, "/namespace"),
        .user = string(from, "/userInfo/username"),
        .dry_run = vmhost_boolean(from, "/dryRun"),
        .object = object(from, "/object"),
        .old_object = object(from, "/oldObject"),
        .request = from,
    };
    if (!vmhost_plugin.admit) {
        vmhost_set_error("the plugin has no admit");
        return;
    }
    vmhost_verdict verdict = {.review = &review};
    vmhost_plugin.admit(&review, &verdict);
    if (verdict.decision == UNDECIDED) vmhost_set_error("admit returned without a verdict");
    vmhost_add_other(outcome, (struct vmhost_other){"admission", response(&verdict)});
}

/* ---- conversion ---- */

void vmhost_convert_to(vmhost_converted *converted, const char *object) { put(&converted->objects, object); }

/* A failure is an answer, whose text the API server hands to the client. */
static void conversion(const vmhost_request *request, vmhost_outcome *outcome) {
    vmhost_value *objects = NULL;
    size_t count = 0;
    for (vmhost_iterator i = vmhost_each(vmhost_at(request->object, "/objects")); vmhost_next(&i);) {
        objects = list_room(objects, count, sizeof *objects);
        objects[count++] = i.value;
    }
    const char *desired = string(request->object, "/desiredAPIVersion"), *slash = strrchr(desired, '/');
    vmhost_batch batch = {request->controller, desired, slash ? slash + 1 : desired, objects, count};
    vmhost_converted converted = {0};
    if (!vmhost_plugin.convert) vmhost_set_error("the plugin has no convert");
    else if (!vmhost_has_error()) vmhost_plugin.convert(&batch, &converted);
    const char *failure = take_error();
    const char *members[] = {"failed", vmhost_quote(failure)};
    if (!failure) {
        members[0] = "convertedObjects";
        members[1] = vmhost_array_of(converted.objects.items, converted.objects.count);
    }
    vmhost_add_other(outcome, (struct vmhost_other){"conversion", vmhost_object_of(members, 2)});
}

void turn(const vmhost_request *request, vmhost_outcome *outcome) {
    bool own = !strcmp(request->key.kind.group, "vmhost");
    if (own && !strcmp(request->key.kind.kind, "Admission")) admission(request, outcome);
    else if (own && !strcmp(request->key.kind.kind, "Conversion")) conversion(request, outcome);
    else if (vmhost_plugin.reconcile) vmhost_plugin.reconcile(request, outcome);
    else vmhost_set_error("the plugin has no reconcile");
}
