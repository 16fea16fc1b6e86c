// Native tests of the policy: make test
#include "testing/vmhost_test.h"

static const char *reconcile(const char *object) {
    vmhost_request request = {};
    request.controller = "__plural__";
    request.key = {{"__group__", "__version__", "__kind__"}, "default", "example"};
    request.object = {object};
    return vmhost_test_reconcile(request);
}

int main() {
    auto outcome = reconcile(R"({"spec":{"who":"Ada"}})");
    VMHOST_TEST_EQUAL(vmhost_test_text(outcome, "/effects/0/patch/subresource"), "status");
    VMHOST_TEST_EQUAL(vmhost_test_text(outcome, "/effects/0/patch/body"), R"({"status":{"message":"hello, Ada"}})");
    VMHOST_TEST_EQUAL(vmhost_test_text(outcome, "/effects/1/event/reason"), "Greeted");
    VMHOST_TEST_EQUAL(vmhost_test_text(outcome, "/effects/1/event/note"), "hello, Ada");

    // Nobody is named.
    VMHOST_TEST_EQUAL(vmhost_test_text(reconcile(R"({"spec":{}})"), "/effects/1/event/note"), "hello, world");

    // It has been greeted, or is gone.
    auto nothing = R"({"effects":[],"next":"await-change"})";
    VMHOST_TEST_EQUAL(reconcile(R"({"spec":{"who":"Ada"},"status":{"message":"hello, Ada"}})"), nothing);
    VMHOST_TEST_EQUAL(reconcile(nullptr), nothing);

    // What cannot be read is tried again.
    VMHOST_TEST_EQUAL(vmhost_test_text(reconcile(R"({"spec":{"who":1}})"), "/next/retry"), "json: /spec/who is a number, not a string");
    return vmhost_test_end();
}
