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

    // Without a name.
    VMHOST_TEST_EQUAL(vmhost_test_text(reconcile(R"({"spec":{}})"), "/effects/1/event/note"), "hello, world");

    // Already greeted, or deleted.
    auto nothing = R"({"effects":[],"next":"await-change"})";
    VMHOST_TEST_EQUAL(reconcile(R"({"spec":{"who":"Ada"},"status":{"message":"hello, Ada"}})"), nothing);
    VMHOST_TEST_EQUAL(reconcile(nullptr), nothing);

    // An object that cannot be read is retried.
    VMHOST_TEST_EQUAL(vmhost_test_text(reconcile(R"({"spec":{"who":1}})"), "/next/retry"), "json: /spec/who is a number, not a string");
    return vmhost_test_end();
}
