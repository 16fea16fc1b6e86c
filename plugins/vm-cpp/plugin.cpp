// The first policy, in C++: completes a VirtualMachine that is creating, or fails it if its size is
// impossible.
#include "vmhost.hpp"

using namespace vmhost;

static constexpr Kind virtual_machine{"cloud.waibizi.com", "v1", "VirtualMachine"};

static void reconcile(const Request &request, Outcome &outcome) {
    if (!request.object) {
        vmhost_info("the virtual machine %s is gone", request.key.name);
        return;
    }
    Value spec = request.object["/spec"];
    if (spec.string("/status") != "creating") return;
    // Tests what was seen: if a user has changed the status or the size in the meantime, the patch
    // changes nothing and the host retries the key.
    auto seen = Operations().test("/spec/status", "creating");
    for (auto field : {"memory", "disk"}) {
        auto size = spec.integer(vmhost_format("/%s", field));
        if (!size || *size > 0) continue; // an absent size is the maker's choice
        auto path = vmhost_format("/spec/%s", field);
        outcome.patch({.key = request.key, .json = seen.test(path, *size).replace("/spec/status", "fail")});
        auto note = vmhost_format("spec.%s is %lld, and must be more than 0", field, static_cast<long long>(*size));
        outcome.event({.warning = true, .reason = "Impossible", .note = note});
        return;
    }
    outcome.patch({.key = request.key, .json = seen.replace("/spec/status", "complete")});
    outcome.event({.reason = "Completed", .note = "The virtual machine is complete"});
}

const Description vmhost_plugin = {
    .name = "vm",
    .version = "0.1.0",
    .controllers = {{
        .name = "virtualmachines",
        .primary = {.kind = &virtual_machine, .wanted_fields = {"spec.status", "spec.memory", "spec.disk"}},
        .event_source = "vm-dynamic-controller",
    }},
    .permissions = {{.kind = &virtual_machine, .verbs = VMHOST_PATCH}},
    .reconcile = turn<reconcile>,
};
