/* __name__: greets each __kind__. `spec.who` names whom to greet; the greeting goes into
 * `status.message`. */
#include "vmhost.h"

#include <string.h>

static const vmhost_kind kind = {"__group__", "__version__", "__kind__"};

static void reconcile(const vmhost_request *request, vmhost_outcome *outcome) {
    if (!request->object.text) return; /* deleted */
    const char *who = vmhost_string(request->object, "/spec/who");
    const char *message = vmhost_format("hello, %s", who ? who : "world");
    const char *seen = vmhost_string(request->object, "/status/message");
    if (seen && !strcmp(seen, message)) return; /* already greeted */
    const char *status = VMHOST_OBJECT_OF("status", VMHOST_OBJECT_OF("message", vmhost_quote(message)));
    vmhost_patch(outcome, .key = request->key, .subresource = "status", .merge = status);
    vmhost_event(outcome, .reason = "Greeted", .note = message);
}

const vmhost_description vmhost_plugin = {
    .name = "__name__",
    .version = "0.1.0",
    .controllers = VMHOST_CONTROLLERS({
        .name = "__plural__",
        .primary = {.kind = &kind, .wanted_fields = VMHOST_STRINGS("spec.who", "status.message")},
    }),
    .permissions = VMHOST_PERMISSIONS({.kind = &kind, .verbs = VMHOST_PATCH, .subresources = VMHOST_STRINGS("status")}),
    .reconcile = reconcile,
};
