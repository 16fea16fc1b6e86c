// The policy's native tests: make -C plugins/vm-cpp test
#include "testing/vmhost_test.h"

static const char *reconcile(const char *object) {
    vmhost_request request = {};
    request.controller = "virtualmachines";
    request.key = {{"cloud.waibizi.com", "v1", "VirtualMachine"}, "default", "public-wx"};
    request.object = {object};
    return vmhost_test_reconcile(request);
}

static void a_vm_that_is_creating_becomes_complete() {
    for (auto object : {R"({"spec":{"status":"creating"}})", R"({"spec":{"status":"creating","memory":4096,"disk":500}})"}) {
        auto outcome = reconcile(object);
        VMHOST_TEST_EQUAL(vmhost_test_text(outcome, "/effects/0/patch/key/name"), "public-wx");
        VMHOST_TEST_EQUAL(vmhost_test_text(outcome, "/effects/0/patch/body"),
                          R"([{"op":"test","path":"/spec/status","value":"creating"},{"op":"replace","path":"/spec/status","value":"complete"}])");
        VMHOST_TEST_EQUAL(vmhost_test_text(outcome, "/effects/1/event/type"), "normal");
        VMHOST_TEST_EQUAL(vmhost_test_text(outcome, "/effects/1/event/reason"), "Completed");
        VMHOST_TEST_EQUAL(vmhost_test_text(outcome, "/next"), "await-change");
    }
}

static void a_vm_that_cannot_be_fails_with_the_reason() {
    auto outcome = reconcile(R"({"spec":{"status":"creating","memory":4096,"disk":-5}})");
    VMHOST_TEST_EQUAL(
        vmhost_test_text(outcome, "/effects/0/patch/body"),
        R"([{"op":"test","path":"/spec/status","value":"creating"},{"op":"test","path":"/spec/disk","value":-5},{"op":"replace","path":"/spec/status","value":"fail"}])");
    VMHOST_TEST_EQUAL(vmhost_test_text(outcome, "/effects/1/event/type"), "warning");
    VMHOST_TEST_EQUAL(vmhost_test_text(outcome, "/effects/1/event/reason"), "Impossible");
    VMHOST_TEST_EQUAL(vmhost_test_text(outcome, "/effects/1/event/note"), "spec.disk is -5, and must be more than 0");
    outcome = reconcile(R"({"spec":{"status":"creating","memory":0}})");
    VMHOST_TEST_EQUAL(vmhost_test_text(outcome, "/effects/1/event/note"), "spec.memory is 0, and must be more than 0");
}

static void every_other_vm_is_left_alone() {
    const char *objects[] = {nullptr, R"({"spec":{"status":"complete"}})", R"({"spec":{"status":"fail","memory":0}})", R"({"spec":{}})", "{}"};
    for (auto object : objects) VMHOST_TEST_EQUAL(reconcile(object), R"({"effects":[],"next":"await-change"})");
    VMHOST_TEST_EQUAL(vmhost_test_lines(), "info: the virtual machine public-wx is gone\n");
}

static void a_vm_that_cannot_be_read_is_an_error() {
    VMHOST_TEST_EQUAL(reconcile(R"({"spec":{"status":1}})"), R"({"effects":[],"next":{"retry":"json: /status is a number, not a string"}})");
    VMHOST_TEST_EQUAL(reconcile(R"({"spec":{"status":"creating","memory":1.5}})"),
                      R"({"effects":[],"next":{"retry":"json: /memory is 1.5, not a 64-bit integer"}})");
}

int main() {
    a_vm_that_is_creating_becomes_complete();
    a_vm_that_cannot_be_fails_with_the_reason();
    every_other_vm_is_left_alone();
    a_vm_that_cannot_be_read_is_an_error();
    return vmhost_test_end();
}
