/* Tests of admission and conversion, native: make -C plugins/sdk-c test */
#include "../testing/vmhost_test.h"

#include <string.h>

static const vmhost_kind config_map = {"", "v1", "ConfigMap"};

/* Does what the object's name says. */
static void admit(const vmhost_review *review, vmhost_verdict *verdict) {
    if (!strcmp(review->name, "deny")) vmhost_deny(verdict, "%s refuses %s: \"no\"", review->webhook, review->name);
    if (!strcmp(review->name, "deny-as")) vmhost_deny_as(verdict, 422, NULL, "odd");
    if (!strcmp(review->name, "warn")) {
        vmhost_allow(verdict);
        vmhost_warning(verdict, "careful, %s", review->user);
        vmhost_audit(verdict, "k", "v");
    }
    if (!strcmp(review->name, "error")) {
        vmhost_allow(verdict);
        vmhost_set_error("broken on purpose");
    }
    if (!strcmp(review->name, "set")) {
        vmhost_operation(verdict, vmhost_add("/a", "1"));
        vmhost_operation(verdict, vmhost_remove("/b"));
    }
    if (!strcmp(review->name, "diff")) vmhost_change_to(verdict, vmhost_raw(vmhost_at(review->request, "/options/wanted")));
    if (!strcmp(review->name, "fields")) {
        bool same = !strcmp(review->uid, "u-1") && !strcmp(review->operation, "DELETE") && !strcmp(review->kind.kind, "Deployment") &&
                    !strcmp(review->resource, "deployments") && !strcmp(review->sub_resource, "scale") && !strcmp(review->ns, "default") &&
                    review->dry_run && !review->object.text && !strcmp(vmhost_raw(review->old_object), "{\"a\":1}");
        if (same) vmhost_allow(verdict);
    }
}

static void convert(const vmhost_batch *batch, vmhost_converted *converted) {
    for (size_t i = 0; i < batch->count; i++) {
        if (vmhost_boolean(batch->objects[i], "/bad")) vmhost_set_error("%s is bad", batch->conversion);
        const char *moved = vmhost_set_at(batch->objects[i], "/apiVersion", vmhost_quote(batch->desired));
        vmhost_convert_to(converted, vmhost_set_at((vmhost_value){moved}, "/spec/version", vmhost_quote(batch->version)));
    }
}

const vmhost_description vmhost_plugin = {
    .name = "test",
    .webhooks = VMHOST_WEBHOOKS(
        {.name = "guard",
         .rules = VMHOST_RULES({.api_groups = VMHOST_STRINGS(""), .api_versions = VMHOST_STRINGS("v1"), .resources = VMHOST_STRINGS("pods")},
                               {VMHOST_STRINGS("apps"), VMHOST_STRINGS("*"), VMHOST_STRINGS("*"), VMHOST_ON_DELETE | VMHOST_ON_CONNECT, "Namespaced"})},
        {.name = "defaults",
         .mutating = true,
         .object_selector = "{\"matchLabels\":{\"a\":\"b\"}}",
         .match_conditions = VMHOST_CONDITIONS({"c", "true"}),
         .failure_policy = "Ignore",
         .timeout_seconds = 3,
         .reads = VMHOST_WATCHES({.kind = &config_map})}),
    .conversions = VMHOST_CONVERSIONS({.name = "vm", .group = "g.io", .kind = "Vm", .resource = "vms", .versions = VMHOST_STRINGS("v1", "v2")}),
    .admit = admit,
    .convert = convert,
};

static void a_plugin_may_have_no_controller(void) {
    VMHOST_TEST_EQUAL(vmhost_test_describe(),
                      "{\"apiVersion\":\"vmhost/v1\",\"name\":\"test\",\"controllers\":[],\"webhooks\":[{\"name\":\"guard\",\"type\":\"validating\",\"rules\":["
                      "{\"apiGroups\":[\"\"],\"apiVersions\":[\"v1\"],\"resources\":[\"pods\"],\"operations\":[\"CREATE\",\"UPDATE\"]},"
                      "{\"apiGroups\":[\"apps\"],\"apiVersions\":[\"*\"],\"resources\":[\"*\"],\"operations\":[\"DELETE\",\"CONNECT\"],\"scope\":\"Namespaced\"}]},"
                      "{\"name\":\"defaults\",\"type\":\"mutating\",\"rules\":[],\"objectSelector\":{\"matchLabels\":{\"a\":\"b\"}},"
                      "\"matchConditions\":[{\"name\":\"c\",\"expression\":\"true\"}],\"failurePolicy\":\"Ignore\",\"timeoutSeconds\":3,"
                      "\"reads\":[{\"version\":\"v1\",\"kind\":\"ConfigMap\"}]}],"
                      "\"conversions\":[{\"name\":\"vm\",\"group\":\"g.io\",\"kind\":\"Vm\",\"resource\":\"vms\",\"versions\":[\"v1\",\"v2\"]}],\"permissions\":[]}");
    VMHOST_TEST_EQUAL(vmhost_test_reconcile((vmhost_request){"all", {config_map, "default", "a"}, .object = {"{}"}}),
                      "{\"effects\":[],\"next\":{\"retry\":\"the plugin has no reconcile\"}}");
}

static void a_review_has_all_of_the_contract(void) {
    VMHOST_TEST_EQUAL(vmhost_test_admit("guard", "{\"uid\":\"u-1\",\"kind\":{\"group\":\"apps\",\"version\":\"v1\",\"kind\":\"Deployment\"},\"resource\":"
                                                 "{\"group\":\"apps\",\"version\":\"v1\",\"resource\":\"deployments\"},\"subResource\":\"scale\",\"name\":"
                                                 "\"fields\",\"namespace\":\"default\",\"operation\":\"DELETE\",\"userInfo\":{\"username\":\"jane\"},"
                                                 "\"object\":null,\"oldObject\":{\"a\":1},\"dryRun\":true}"),
                      "{\"allowed\":true}");
}

static void verdicts_are_admission_responses(void) {
    VMHOST_TEST_EQUAL(vmhost_test_admit("guard", "{\"name\":\"deny\"}"),
                      "{\"allowed\":false,\"status\":{\"message\":\"guard refuses deny: \\\"no\\\"\",\"code\":403,\"reason\":\"Forbidden\"}}");
    VMHOST_TEST_EQUAL(vmhost_test_admit("guard", "{\"name\":\"deny-as\"}"), "{\"allowed\":false,\"status\":{\"message\":\"odd\",\"code\":422}}");
    VMHOST_TEST_EQUAL(vmhost_test_admit("guard", "{\"name\":\"warn\",\"userInfo\":{\"username\":\"jane\"}}"),
                      "{\"allowed\":true,\"warnings\":[\"careful, jane\"],\"auditAnnotations\":{\"k\":\"v\"}}");
    VMHOST_TEST_EQUAL(vmhost_test_admit("defaults", "{\"name\":\"set\"}"),
                      "{\"allowed\":true,\"patch\":[{\"op\":\"add\",\"path\":\"/a\",\"value\":1},{\"op\":\"remove\",\"path\":\"/b\"}]}");
}

static void a_failure_is_no_verdict(void) {
    VMHOST_TEST_EQUAL(vmhost_test_admit("guard", "{\"name\":\"error\"}"), "{\"effects\":[],\"next\":{\"retry\":\"broken on purpose\"}}");
    VMHOST_TEST_EQUAL(vmhost_test_admit("guard", "{\"name\":\"silent\"}"), "{\"effects\":[],\"next\":{\"retry\":\"admit returned without a verdict\"}}");
    VMHOST_TEST_EQUAL(vmhost_test_admit("guard", "[]"), "{\"effects\":[],\"next\":{\"retry\":\"json: the value is a list, not an object\"}}");
    VMHOST_TEST_EQUAL(vmhost_test_admit("defaults", "{\"name\":\"diff\",\"object\":null,\"options\":{\"wanted\":{}}}"),
                      "{\"effects\":[],\"next\":{\"retry\":\"a request without an object cannot be changed\"}}");
}

static void only_what_differs_is_in_the_patch(void) {
    static const struct {
        const char *before, *after, *patch;
    } cases[] = {
        {"{\"a\":1}", " { \"a\" : 1 } ", NULL},
        {"{\"a\":{\"b\":1,\"c\":[1,{\"d\":2}]},\"z\":0}", "{\"n\":null,\"a\":{\"c\":[1,{\"d\":3}],\"b\":2}}",
         "[{\"op\":\"replace\",\"path\":\"/a/b\",\"value\":2},{\"op\":\"replace\",\"path\":\"/a/c/1/d\",\"value\":3},{\"op\":\"add\",\"path\":\"/n\",\"value\":null},"
         "{\"op\":\"remove\",\"path\":\"/z\"}]"},
        {"{\"a\":[]}", "{\"a\":{}}", "[{\"op\":\"replace\",\"path\":\"/a\",\"value\":{}}]"},
        {"{\"a/b\":1,\"c~d\":1,\"\":1}", "{\"a/b\":2,\"\":2}",
         "[{\"op\":\"replace\",\"path\":\"/\",\"value\":2},{\"op\":\"replace\",\"path\":\"/a~1b\",\"value\":2},{\"op\":\"remove\",\"path\":\"/c~0d\"}]"},
        {"[1,4]", "[1,2,3,4]", "[{\"op\":\"add\",\"path\":\"/1\",\"value\":2},{\"op\":\"add\",\"path\":\"/2\",\"value\":3}]"},
        {"[1,2,3,4]", "[1,4]", "[{\"op\":\"remove\",\"path\":\"/2\"},{\"op\":\"remove\",\"path\":\"/1\"}]"},
        {"[1,1]", "[1]", "[{\"op\":\"remove\",\"path\":\"/1\"}]"},
        {"[1,2,3]", "[1,9,8,3]", "[{\"op\":\"replace\",\"path\":\"/1\",\"value\":9},{\"op\":\"add\",\"path\":\"/2\",\"value\":8}]"},
        {"[\"\\u0041\",true]", "[\"A\",false]", "[{\"op\":\"replace\",\"path\":\"/1\",\"value\":false}]"},
        {"9007199254740993", "9007199254740992", "[{\"op\":\"replace\",\"path\":\"\",\"value\":9007199254740992}]"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *wanted = VMHOST_OBJECT_OF("wanted", cases[i].after);
        const char *request = VMHOST_OBJECT_OF("name", "\"diff\"", "object", cases[i].before, "options", wanted);
        const char *have = vmhost_test_admit("defaults", request); /* frees the request */
        const char *response = VMHOST_OBJECT_OF("allowed", "true", "patch", cases[i].patch);
        VMHOST_TEST_EQUAL(have, cases[i].patch ? response : "{\"allowed\":true}");
    }
}

static void batches_are_converted_in_order(void) {
    VMHOST_TEST_EQUAL(vmhost_test_convert("vm", "{\"desiredAPIVersion\":\"g.io/v2\",\"objects\":[{\"apiVersion\":\"g.io/v1\",\"size\":9007199254740993},"
                                                "{\"apiVersion\":\"g.io/v1\",\"spec\":{\"a\":[1],\"version\":0}}]}"),
                      "{\"convertedObjects\":[{\"apiVersion\":\"g.io/v2\",\"size\":9007199254740993,\"spec\":{\"version\":\"v2\"}},"
                      "{\"apiVersion\":\"g.io/v2\",\"spec\":{\"a\":[1],\"version\":\"v2\"}}]}");
    VMHOST_TEST_EQUAL(vmhost_test_convert("vm", "{\"desiredAPIVersion\":\"g.io/v2\",\"objects\":[]}"), "{\"convertedObjects\":[]}");
    VMHOST_TEST_EQUAL(vmhost_test_convert("vm", "{\"desiredAPIVersion\":\"g.io/v2\",\"objects\":[{\"bad\":true}]}"), "{\"failed\":\"vm is bad\"}");
    VMHOST_TEST_EQUAL(vmhost_test_convert("vm", "{\"desiredAPIVersion\":\"g.io/v2\",\"objects\":[{\"bad\":1}]}"),
                      "{\"failed\":\"json: /bad is a number, not a boolean\"}");
}

static void values_are_set_in_texts(void) {
    static const struct {
        const char *from, *pointer, *json, *result;
    } cases[] = {
        {"{\"a\":1,\"b\":2}", "/a", "3", "{\"a\":3,\"b\":2}"}, {"{\"a\":1,\"b\":2}", "/a", NULL, "{\"b\":2}"}, {"{\"a\":1}", "/c/d~1e", "[]", "{\"a\":1,\"c\":{\"d/e\":[]}}"},
        {"{\"a\":1}", "/c/d", NULL, "{\"a\":1}"},              {"[1,2]", "/0", "3", "[3,2]"},                  {"[1,2]", "/-", "3", "[1,2,3]"},
        {"[1,2]", "/1", NULL, "[1]"},                          {"{\"a\":null}", "/a/b", "1", "{\"a\":{\"b\":1}}"}, {"{}", "", "7", "7"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        VMHOST_TEST_EQUAL(vmhost_set_at((vmhost_value){cases[i].from}, cases[i].pointer, cases[i].json), cases[i].result);
    VMHOST_TEST(!vmhost_has_error());
    vmhost_set_at((vmhost_value){"[1]"}, "/3", "1");
    VMHOST_TEST(vmhost_has_error());
}

int main(void) {
    a_plugin_may_have_no_controller();
    a_review_has_all_of_the_contract();
    verdicts_are_admission_responses();
    a_failure_is_no_verdict();
    only_what_differs_is_in_the_patch();
    batches_are_converted_in_order();
    values_are_set_in_texts();
    return vmhost_test_end();
}
