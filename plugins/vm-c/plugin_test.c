/* The policy's native tests: make -C plugins/vm-c test */
#include "testing/vmhost_test.h"

static const vmhost_kind virtual_machine = {"cloud.waibizi.com", "v1", "VirtualMachine"};

static const char *reconcile(const char *object) {
    return vmhost_test_reconcile((vmhost_request){"virtualmachines", {virtual_machine, "default", "public-wx"}, .object = {object}});
}

static void a_vm_that_is_creating_becomes_complete(void) {
    const char *objects[] = {"{\"spec\":{\"status\":\"creating\"}}", "{\"spec\":{\"status\":\"creating\",\"memory\":4096,\"disk\":500}}"};
    for (int i = 0; i < 2; i++) {
        const char *outcome = reconcile(objects[i]);
        VMHOST_TEST_EQUAL(vmhost_test_text(outcome, "/effects/0/patch/key/name"), "public-wx");
        VMHOST_TEST_EQUAL(
            vmhost_test_text(outcome, "/effects/0/patch/body"),
            "[{\"op\":\"test\",\"path\":\"/spec/status\",\"value\":\"creating\"},{\"op\":\"replace\",\"path\":\"/spec/status\",\"value\":\"complete\"}]");
        VMHOST_TEST_EQUAL(vmhost_test_text(outcome, "/effects/1/event/type"), "normal");
        VMHOST_TEST_EQUAL(vmhost_test_text(outcome, "/effects/1/event/reason"), "Completed");
        VMHOST_TEST_EQUAL(vmhost_test_text(outcome, "/next"), "await-change");
    }
}

static void a_vm_that_cannot_be_fails_with_the_reason(void) {
    const char *outcome = reconcile("{\"spec\":{\"status\":\"creating\",\"memory\":4096,\"disk\":-5}}");
    VMHOST_TEST_EQUAL(vmhost_test_text(outcome, "/effects/0/patch/body"),
                      "[{\"op\":\"test\",\"path\":\"/spec/status\",\"value\":\"creating\"},{\"op\":\"test\",\"path\":\"/spec/disk\",\"value\":-5},"
                      "{\"op\":\"replace\",\"path\":\"/spec/status\",\"value\":\"fail\"}]");
    VMHOST_TEST_EQUAL(vmhost_test_text(outcome, "/effects/1/event/type"), "warning");
    VMHOST_TEST_EQUAL(vmhost_test_text(outcome, "/effects/1/event/reason"), "Impossible");
    VMHOST_TEST_EQUAL(vmhost_test_text(outcome, "/effects/1/event/note"), "spec.disk is -5, and must be more than 0");
    outcome = reconcile("{\"spec\":{\"status\":\"creating\",\"memory\":0}}");
    VMHOST_TEST_EQUAL(vmhost_test_text(outcome, "/effects/1/event/note"), "spec.memory is 0, and must be more than 0");
}

static void every_other_vm_is_left_alone(void) {
    const char *objects[] = {NULL, "{\"spec\":{\"status\":\"complete\"}}", "{\"spec\":{\"status\":\"fail\",\"memory\":0}}", "{\"spec\":{}}", "{}"};
    for (int i = 0; i < 5; i++) VMHOST_TEST_EQUAL(reconcile(objects[i]), "{\"effects\":[],\"next\":\"await-change\"}");
    VMHOST_TEST_EQUAL(vmhost_test_lines(), "info: the virtual machine public-wx is gone\n");
}

static void a_vm_that_cannot_be_read_is_an_error(void) {
    VMHOST_TEST_EQUAL(reconcile("{\"spec\":{\"status\":1}}"), "{\"effects\":[],\"next\":{\"retry\":\"json: /spec/status is a number, not a string\"}}");
    VMHOST_TEST_EQUAL(reconcile("{\"spec\":{\"status\":\"creating\",\"memory\":1.5}}"),
                      "{\"effects\":[],\"next\":{\"retry\":\"json: /spec/memory is 1.5, not a 64-bit integer\"}}");
}

int main(void) {
    a_vm_that_is_creating_becomes_complete();
    a_vm_that_cannot_be_fails_with_the_reason();
    every_other_vm_is_left_alone();
    a_vm_that_cannot_be_read_is_an_error();
    return vmhost_test_end();
}
