/* The first policy, in C: completes a VirtualMachine that is creating, or fails it if its size is
 * impossible. */
#include "vmhost.h"

#include <string.h>

static const vmhost_kind virtual_machine = {"cloud.waibizi.com", "v1", "VirtualMachine"};

static void reconcile(const vmhost_request *request, vmhost_outcome *outcome) {
    if (!request->object.text) {
        vmhost_info("the virtual machine %s is gone", request->key.name);
        return;
    }
    const char *status = vmhost_string(request->object, "/spec/status"), *sizes[] = {"memory", "disk"};
    /* Tests what was seen: if a user has changed the status or the size in the meantime, the patch
     * changes nothing and the host retries the key. */
    const char *test = vmhost_test("/spec/status", vmhost_quote("creating"));
    if (!status || strcmp(status, "creating")) return;
    for (int i = 0; i < 2; i++) {
        int64_t size;
        const char *path = vmhost_format("/spec/%s", sizes[i]);
        /* An absent size is the maker's choice. */
        if (!vmhost_integer(request->object, path, &size) || size > 0) continue;
        const char *test_size = vmhost_test(path, vmhost_format("%lld", (long long)size));
        const char *fail = VMHOST_OPERATIONS(test, test_size, vmhost_replace("/spec/status", vmhost_quote("fail")));
        const char *note = vmhost_format("spec.%s is %lld, and must be more than 0", sizes[i], (long long)size);
        vmhost_patch(outcome, .key = request->key, .json = fail);
        vmhost_event(outcome, .warning = true, .reason = "Impossible", .note = note);
        return;
    }
    vmhost_patch(outcome, .key = request->key, .json = VMHOST_OPERATIONS(test, vmhost_replace("/spec/status", vmhost_quote("complete"))));
    vmhost_event(outcome, .reason = "Completed", .note = "The virtual machine is complete");
}

const vmhost_description vmhost_plugin = {
    .name = "vm",
    .version = "0.1.0",
    .controllers = VMHOST_CONTROLLERS({
        .name = "virtualmachines",
        .primary = {.kind = &virtual_machine, .wanted_fields = VMHOST_STRINGS("spec.status", "spec.memory", "spec.disk")},
        .event_source = "vm-dynamic-controller",
    }),
    .permissions = VMHOST_PERMISSIONS({.kind = &virtual_machine, .verbs = VMHOST_PATCH}),
    .reconcile = reconcile,
};
