// Native tests of the policy: make test
#include "testing/vmhost_test.h"

int main() {
    auto allowed = R"({"allowed":true})";
    auto refused = R"({"allowed":false,"status":{"message":"spec.who must name somebody","code":403,"reason":"Forbidden"}})";
    VMHOST_TEST_EQUAL(vmhost_test_admit("who", R"({"object":{"spec":{"who":"Ada"}}})"), allowed);
    VMHOST_TEST_EQUAL(vmhost_test_admit("who", R"({"object":{"spec":{"who":""}}})"), refused);
    VMHOST_TEST_EQUAL(vmhost_test_admit("who", R"({"object":{"spec":{}}})"), refused);
    VMHOST_TEST_EQUAL(vmhost_test_admit("who", R"({"operation":"DELETE","object":null})"), allowed);

    // An object that cannot be read is no verdict.
    auto unreadable = vmhost_test_admit("who", R"({"object":{"spec":{"who":1}}})");
    VMHOST_TEST_EQUAL(vmhost_test_text(unreadable, "/next/retry"), "json: /spec/who is a number, not a string");
    return vmhost_test_end();
}
