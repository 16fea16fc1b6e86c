// __name__: greets each __kind__. `spec.who` names whom to greet; the greeting goes into
// `status.message`.
#include "vmhost.hpp"

using namespace vmhost;

static constexpr Kind kind{"__group__", "__version__", "__kind__"};

static void reconcile(const Request &request, Outcome &outcome) {
    if (!request.object) return; // deleted
    auto who = request.object.string("/spec/who").value_or("world");
    auto message = vmhost_format("hello, %s", who.data());
    if (request.object.string("/status/message") == message) return; // already greeted
    auto status = Json::object({{"status", Json::object({{"message", message}})}});
    outcome.patch({.key = request.key, .subresource = "status", .merge = status});
    outcome.event({.reason = "Greeted", .note = message});
}

const Description vmhost_plugin = {
    .name = "__name__",
    .version = "0.1.0",
    .controllers = {{
        .name = "__plural__",
        .primary = {.kind = &kind, .wanted_fields = {"spec.who", "status.message"}},
    }},
    .permissions = {{.kind = &kind, .verbs = VMHOST_PATCH, .subresources = {"status"}}},
    .reconcile = turn<reconcile>,
};
