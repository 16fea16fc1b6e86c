/* Native tests of the policy: make test */
#include "testing/vmhost_test.h"

#define ADMIT(object) vmhost_test_admit("who", "{\"object\":" object "}")

int main(void) {
    const char *allowed = "{\"allowed\":true}";
    const char *refused = "{\"allowed\":false,\"status\":{\"message\":\"spec.who must name somebody\",\"code\":403,\"reason\":\"Forbidden\"}}";
    VMHOST_TEST_EQUAL(ADMIT("{\"spec\":{\"who\":\"Ada\"}}"), allowed);
    VMHOST_TEST_EQUAL(ADMIT("{\"spec\":{\"who\":\"\"}}"), refused);
    VMHOST_TEST_EQUAL(ADMIT("{\"spec\":{}}"), refused);
    VMHOST_TEST_EQUAL(ADMIT("null"), allowed); /* a deletion */

    /* An object that cannot be read is no verdict. */
    VMHOST_TEST_EQUAL(vmhost_test_text(ADMIT("{\"spec\":{\"who\":1}}"), "/next/retry"), "json: /spec/who is a number, not a string");
    return vmhost_test_end();
}
