/* Native tests of the policy: make test */
#include "testing/vmhost_test.h"

static const char *reconcile(const char *object) {
    vmhost_key key = {{"__group__", "__version__", "__kind__"}, "default", "example"};
    return vmhost_test_reconcile((vmhost_request){"__plural__", key, .object = {object}});
}

int main(void) {
    const char *outcome = reconcile("{\"spec\":{\"who\":\"Ada\"}}");
    VMHOST_TEST_EQUAL(vmhost_test_text(outcome, "/effects/0/patch/subresource"), "status");
    VMHOST_TEST_EQUAL(vmhost_test_text(outcome, "/effects/0/patch/body"), "{\"status\":{\"message\":\"hello, Ada\"}}");
    VMHOST_TEST_EQUAL(vmhost_test_text(outcome, "/effects/1/event/reason"), "Greeted");
    VMHOST_TEST_EQUAL(vmhost_test_text(outcome, "/effects/1/event/note"), "hello, Ada");

    /* Without a name. */
    VMHOST_TEST_EQUAL(vmhost_test_text(reconcile("{\"spec\":{}}"), "/effects/1/event/note"), "hello, world");

    /* Already greeted, or deleted. */
    const char *nothing = "{\"effects\":[],\"next\":\"await-change\"}";
    VMHOST_TEST_EQUAL(reconcile("{\"spec\":{\"who\":\"Ada\"},\"status\":{\"message\":\"hello, Ada\"}}"), nothing);
    VMHOST_TEST_EQUAL(reconcile(NULL), nothing);

    /* An object that cannot be read is retried. */
    VMHOST_TEST_EQUAL(vmhost_test_text(reconcile("{\"spec\":{\"who\":1}}"), "/next/retry"), "json: /spec/who is a number, not a string");
    return vmhost_test_end();
}
