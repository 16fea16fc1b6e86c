/* The SDK's own native tests: make -C plugins/sdk-c test */
#include "../testing/vmhost_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const vmhost_kind config_map = {"", "v1", "ConfigMap"};
static const vmhost_kind deployment = {"apps", "v1", "Deployment"};

/* Each test runs inside a turn, and checks its result. */
static void (*policy)(const vmhost_request *request, vmhost_outcome *outcome);
static void (*mapping)(const vmhost_map_request *request, vmhost_names *names);

static void reconcile(const vmhost_request *request, vmhost_outcome *outcome) { policy(request, outcome); }

static void map_changes(const vmhost_map_request *request, vmhost_names *names) { mapping(request, names); }

const vmhost_description vmhost_plugin = {
    .name = "test",
    .controllers = VMHOST_CONTROLLERS(
        {
            .name = "all",
            .primary = {.kind = &deployment,
                        .label_selector = "a=b",
                        .wanted_fields = VMHOST_STRINGS("spec"),
                        .metadata_only = true,
                        .indexes = VMHOST_INDEXES({"by-node", "spec.nodeName"}),
                        .predicates = {.changed = VMHOST_GENERATION_CHANGED | VMHOST_RESOURCE_VERSION_CHANGED, .cel = "object.a == \"b\""}},
            .watches = VMHOST_WATCHES({.kind = &config_map, .map = {VMHOST_MAP_GUEST, NULL}}, {.kind = &config_map, .map = {VMHOST_MAP_LABEL, "app"}}),
            .reads = VMHOST_WATCHES({.kind = &config_map, .live = true}),
            .retry = {.max_retries = {true, 0}},
        },
        {.name = "timer", .once = true}),
    .permissions = VMHOST_PERMISSIONS({.kind = &config_map, .verbs = VMHOST_CREATE | VMHOST_DELETE, .namespaces = VMHOST_STRINGS("default")},
                                      {.kind = &deployment, .verbs = VMHOST_PATCH, .optional = true}),
    .http = VMHOST_HTTP({.host = "api.example.com",
                         .methods = VMHOST_STRINGS("POST"),
                         .headers = VMHOST_HTTP_HEADERS({.name = "A", .prefix = "b ", .secret_ns = "n", .secret_name = "s", .secret_key = "k"}),
                         .allow_private = true}),
    .custom_resource_definitions = VMHOST_STRINGS("{\"a\":1}", "{\"b\":2}"),
    .settings_schema = VMHOST_JSON({"type" : "object", "required" : ["zone"]}),
    .reconcile = reconcile,
    .map_changes = map_changes,
};

static void the_description_leaves_out_what_was_left_out(void) {
    VMHOST_TEST_EQUAL(
        vmhost_test_describe(),
        "{\"apiVersion\":\"vmhost/v1\",\"name\":\"test\",\"controllers\":[{\"name\":\"all\",\"primary\":{\"group\":\"apps\",\"version\":\"v1\","
        "\"kind\":\"Deployment\","
        "\"labelSelector\":\"a=b\",\"wantedFields\":[\"spec\"],\"metadataOnly\":true,\"indexes\":{\"by-node\":\"spec.nodeName\"},\"predicates\":{\"changed\":"
        "[\"generation\",\"resourceVersion\"],\"cel\":\"object.a == \\\"b\\\"\"}},\"watches\":[{\"version\":\"v1\",\"kind\":\"ConfigMap\",\"map\":\"guest\"},"
        "{\"version\":\"v1\",\"kind\":\"ConfigMap\",\"map\":{\"label\":\"app\"}}],\"reads\":[{\"version\":\"v1\",\"kind\":\"ConfigMap\","
        "\"live\":true}],\"retry\":{"
        "\"maxRetries\":0}},{\"name\":\"timer\",\"timer\":{\"once\":true}}],\"permissions\":[{\"version\":\"v1\",\"kind\":\"ConfigMap\","
        "\"verbs\":[\"create\",\"delete\"],"
        "\"namespaces\":[\"default\"]},{\"group\":\"apps\",\"version\":\"v1\",\"kind\":\"Deployment\",\"verbs\":[\"patch\"],\"optional\":true}],"
        "\"http\":[{\"host\":\"api.example.com\",\"methods\":[\"POST\"],\"headers\":[{\"name\":\"A\",\"prefix\":\"b \",\"secret\":{"
        "\"namespace\":\"n\",\"name\":\"s\",\"key\":\"k\"}}],\"allowPrivate\":true}],\"setup\":{\"customResourceDefinitions\":[{\"a\":1},{\"b\":2}]},"
        "\"settingsSchema\":{\"type\" : \"object\", \"required\" : [\"zone\"]}}");
}

static const char *turn(void (*body)(const vmhost_request *, vmhost_outcome *), const char *object) {
    policy = body;
    return vmhost_test_reconcile((vmhost_request){"all", {config_map, "default", "a"}, .object = {object}});
}

/* ---- JSON ---- */

static void read_values(const vmhost_request *request, vmhost_outcome *outcome) {
    vmhost_value object = request->object;
    int64_t number = 7;
    VMHOST_TEST_EQUAL(vmhost_string(object, "/s"), "a\"\\/\b\f\n\r\t\xc3\xa9\xf0\x9f\x98\x80\xef\xbf\xbd!");
    VMHOST_TEST_EQUAL(vmhost_quote(vmhost_string(object, "/nul")), "\"a\\u0000b\"");
    VMHOST_TEST(vmhost_integer(object, "/big", &number) && number == 9007199254740993);
    VMHOST_TEST(vmhost_integer(object, "/least", &number) && number == INT64_MIN);
    VMHOST_TEST_EQUAL(vmhost_raw(vmhost_at(object, "/huge")), "12345678901234567890123");
    VMHOST_TEST_EQUAL(vmhost_raw(vmhost_at(object, "/list")), "[1, {\"x\" : [ ]}, [\"]\"]]");
    VMHOST_TEST_EQUAL(vmhost_raw(vmhost_at(object, "/list/2/0")), "\"]\"");
    VMHOST_TEST_EQUAL(vmhost_string(object, "/labels/app.kubernetes.io~1name"), "x");
    VMHOST_TEST_EQUAL(vmhost_string(object, "/labels/~0~01"), "tilde");
    VMHOST_TEST_EQUAL(vmhost_string(object, "/esc\"aped"), "found");
    VMHOST_TEST_EQUAL(vmhost_string(object, "/empty"), "");
    VMHOST_TEST(vmhost_boolean(object, "/yes") && !vmhost_boolean(object, "/no") && !vmhost_boolean(object, "/none"));
    VMHOST_TEST(vmhost_type_of(vmhost_at(object, "/null")) == VMHOST_NULL && vmhost_type_of(vmhost_at(object, "/none")) == VMHOST_MISSING);
    VMHOST_TEST(!vmhost_string(object, "/null") && !vmhost_string(object, "/null/deeper") && !vmhost_integer(object, "/none", &number));
    VMHOST_TEST(!vmhost_at(object, "/list/3").text && !vmhost_at(object, "/list/99999999999999999999999").text);
    VMHOST_TEST(!vmhost_at(object, "/lab").text && !vmhost_at(object, "/labels/").text && number == INT64_MIN);
    VMHOST_TEST(!vmhost_at((vmhost_value){NULL}, "/a").text && !vmhost_next(&(vmhost_iterator){0}));
    const char *seen = "";
    for (vmhost_iterator i = vmhost_each(vmhost_at(object, "/list")); vmhost_next(&i);)
        seen = vmhost_format("%s%s=%s;", seen, i.name ? i.name : "-", vmhost_raw(i.value));
    for (vmhost_iterator i = vmhost_each(vmhost_at(object, "/labels")); vmhost_next(&i);) seen = vmhost_format("%s%s=%s;", seen, i.name, vmhost_raw(i.value));
    VMHOST_TEST_EQUAL(seen, "-=1;-={\"x\" : [ ]};-=[\"]\"];app.kubernetes.io/name=\"x\";~~1=\"tilde\";");
    vmhost_requeue(outcome);
}

static void values_are_read_where_they_stand(void) {
    const char *text =
        " {\"s\": \"a\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00E9\\ud83d\\ude00\\ud83d!\", \"nul\":\"a\\u0000b\",\"big\":9007199254740993,\"least\":-9223372036854775808,"
        "\"huge\":12345678901234567890123, \"list\" : [1, {\"x\" : [ ]}, [\"]\"]] ,\"labels\":{\"app.kubernetes.io/name\":\"x\",\"~~1\":\"tilde\"},"
        "\"esc\\u0022aped\":\"found\",\"empty\":\"\",\"yes\":true,\"no\":false,\"null\":null} ";
    VMHOST_TEST_EQUAL(turn(read_values, text), "{\"effects\":[],\"next\":\"requeue\"}");
}

static void read_a(const vmhost_request *request, vmhost_outcome *outcome) {
    int64_t number;
    vmhost_string(request->object, "/a/b");
    vmhost_integer(request->object, "/n", &number);
    vmhost_event(outcome, .reason = "Dropped");
}

static void what_cannot_be_read_is_a_retry_without_effects(void) {
    const char *cases[][2] = {
        {"{\"a\":{\"b\":1}}", "json: /a/b is a number, not a string"},
        {"{\"a\":{\"b\":[]}}", "json: /a/b is a list, not a string"},
        {"{\"a\":\"x\"}", "json: /a is a string, not an object"},
        {"\"x\"", "json: the value is a string, not an object"},
        {"{\"a\":[1]}", "json: /a is a list, not an object"},
        {"{\"n\":9223372036854775808}", "json: /n is 9223372036854775808, not a 64-bit integer"},
        {"{\"n\":-9223372036854775809}", "json: /n is -9223372036854775809, not a 64-bit integer"},
        {"{\"n\":1e3}", "json: /n is 1e3, not a 64-bit integer"},
        {"{\"n\":-}", "json: /n is -, not a 64-bit integer"},
        {"{\"a\":{\"b\":\"\\u12x4\"}}", "json: the text is not well formed"},
        {"{\"a\":{\"b\":oops}}", "json: the text is not well formed"},
        {"{\"a\" 1}", "json: the text is not well formed"},
        {"{\"x\":1]", "json: the text is not well formed"},
        {"nul", "json: the text is not well formed"},
        {"{\"a\":nullx}", "json: the text is not well formed"},
        {"{", "json: the text is not well formed"},
        {"", "json: the text is not well formed"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *outcome = turn(read_a, cases[i][0]);
        VMHOST_TEST_EQUAL(vmhost_test_text(outcome, "/next/retry"), cases[i][1]);
        VMHOST_TEST(!strstr(outcome, "Dropped"));
    }
    VMHOST_TEST_EQUAL(vmhost_test_text(turn(read_a, "{\"a\":{}}"), "/effects/0/event/reason"), "Dropped");
}

static void walk(vmhost_value value, int depth) {
    if (depth > 8) return;
    for (vmhost_iterator i = vmhost_each(value); vmhost_next(&i);) {
        vmhost_raw(i.value);
        vmhost_boolean(i.value, "");
        vmhost_string(i.value, "/a/0");
        walk(i.value, depth + 1);
    }
}

static void walk_all(const vmhost_request *request, vmhost_outcome *outcome) {
    (void)outcome;
    walk(request->object, 0);
}

/* Reads truncated texts, and texts with one wrong byte, under the address sanitizer: nothing may be
 * read past their end. */
static void no_text_is_read_past_its_end(void) {
    const char *text = "{\"a\": [1, -2.5e3, \"x\\u00e9\\\\\\ud83d\\ude00\", {\"b\\n\": [true, null, {}]}], \"c\" : {\"d\": \"\"}}";
    for (size_t length = 0; length <= strlen(text); length++) {
        char *part = strndup(text, length);
        turn(walk_all, part);
        free(part);
    }
    const char wrong[] = "\"\\{}[],:ux0 \x80\xff";
    for (size_t at = 0; at < strlen(text); at++) {
        for (const char *byte = wrong; *byte; byte++) {
            char *changed = strdup(text);
            changed[at] = *byte;
            turn(walk_all, changed);
            free(changed);
        }
    }
    VMHOST_TEST_EQUAL(turn(walk_all, text), "{\"effects\":[],\"next\":{\"retry\":\"json: the value is a list, not a boolean\"}}");
}

static void skip_the_deep(const vmhost_request *request, vmhost_outcome *outcome) {
    vmhost_value value = request->object;
    vmhost_fail(outcome, "%s after %zu", vmhost_string(value, "/z"), strlen(vmhost_raw(vmhost_at(value, "/deep"))));
}

static void depth_costs_no_stack(void) {
    enum { DEPTH = 200000 };
    char *text = malloc(2 * DEPTH + 32);
    strcpy(text, "{\"deep\":");
    memset(text + 8, '[', DEPTH);
    memset(text + 8 + DEPTH, ']', DEPTH);
    strcpy(text + 8 + 2 * DEPTH, ",\"z\":\"found\"}");
    VMHOST_TEST_EQUAL(turn(skip_the_deep, text), "{\"effects\":[],\"next\":{\"fail\":\"found after 400000\"}}");
    free(text);
}

static void write_values(const vmhost_request *request, vmhost_outcome *outcome) {
    (void)request, (void)outcome;
    VMHOST_TEST_EQUAL(VMHOST_OBJECT_OF("a", vmhost_quote("x\"\\\n\t\x01\xc3\xa9"), "b", VMHOST_ARRAY_OF("1", NULL, "true"), "c", NULL),
                      "{\"a\":\"x\\\"\\\\\\n\\t\\u0001\xc3\xa9\",\"b\":[1,null,true],\"c\":null}");
    VMHOST_TEST_EQUAL(vmhost_object_of(NULL, 0), "{}");
    VMHOST_TEST_EQUAL(vmhost_array_of(NULL, 0), "[]");
    VMHOST_TEST_EQUAL(VMHOST_JSON({"a" : "b\n", "c" : [1]}), "{\"a\" : \"b\\n\", \"c\" : [1]}");
    VMHOST_TEST_EQUAL(vmhost_quote(NULL), "null");
    VMHOST_TEST_EQUAL(vmhost_format("%s|%d|%u|%lld|%zu|%x|%c|%%|%ld|%hd", "s", -5, 5u, -9223372036854775807LL - 1, (size_t)9, 255u, 'c', 0L, (short)-1),
                      "s|-5|5|-9223372036854775808|9|ff|c|%|0|-1");
    char *const volatile none = NULL;
    VMHOST_TEST_EQUAL(vmhost_format("%s", (char *)none), "(null)");
    VMHOST_TEST_EQUAL(vmhost_format("no %s of %f", "help", 1.5), "no help of %f");
}

static void texts_are_put_together(void) { turn(write_values, "{}"); }

/* ---- effects, reads, meta ---- */

static void all_effects(const vmhost_request *request, vmhost_outcome *outcome) {
    vmhost_apply(outcome, .object = "{}", .subresource = "status", .polite = true, .if_version = "7");
    vmhost_apply(outcome, .object = "{}");
    vmhost_apply(outcome, .object = "{}", .existing = true);
    vmhost_patch(outcome, .key = request->key, .merge = "{}", .subresource = "status", .if_version = "8");
    const char *operations = VMHOST_OPERATIONS(vmhost_test("/a", "1"), vmhost_add("/b/-", "\"x\""), vmhost_replace("/c~1d", NULL), vmhost_remove("/e"));
    vmhost_patch(outcome, .key = {{NULL, "v1", "Namespace"}, NULL, "n"}, .json = operations);
    vmhost_create(outcome, .object = "{\"x\":\"\xff\"}");
    vmhost_delete(outcome, .key = request->key, .uid = "u-1", .if_version = "9", .propagation = VMHOST_ORPHAN);
    vmhost_delete(outcome, .key = request->key);
    vmhost_event(outcome, .warning = true, .reason = "Broken", .action = "Mending", .note = "\xe2\x98\x83", .related = request->key);
    vmhost_event(outcome, .reason = "Fine");
    vmhost_other(outcome, .name = "future", .body = "{\"x\":1}");
    vmhost_requeue_after_ms(outcome, UINT32_MAX);
}

static void every_effect_fills_its_record(void) {
#define KEY "\"key\":{\"kind\":{\"group\":\"\",\"version\":\"v1\",\"kind\":\"ConfigMap\"},\"namespace\":\"default\",\"name\":\"a\"}"
    VMHOST_TEST_EQUAL(
        turn(all_effects, "{}"),
        "{\"effects\":[{\"apply\":{\"object\":\"{}\",\"subresource\":\"status\",\"force\":false,\"create-if-absent\":false,\"if-version\":\"7\"}},"
        "{\"apply\":{\"object\":\"{}\",\"force\":true,\"create-if-absent\":true}},{\"apply\":{\"object\":\"{}\",\"force\":true,\"create-if-absent\":false}},"
        "{\"patch\":{" KEY ",\"subresource\":\"status\",\"type\":\"merge\",\"body\":\"{}\",\"if-version\":\"8\"}},"
        "{\"patch\":{\"key\":{\"kind\":{\"group\":\"\",\"version\":\"v1\",\"kind\":\"Namespace\"},\"name\":\"n\"},\"type\":\"json\","
        "\"body\":\"[{\\\"op\\\":\\\"test\\\","
        "\\\"path\\\":\\\"/a\\\",\\\"value\\\":1},{\\\"op\\\":\\\"add\\\",\\\"path\\\":\\\"/b/-\\\",\\\"value\\\":\\\"x\\\"},{\\\"op\\\":\\\"replace\\\",\\\"path\\\":"
        "\\\"/c~1d\\\",\\\"value\\\":null},{\\\"op\\\":\\\"remove\\\",\\\"path\\\":\\\"/e\\\"}]\"}},{\"create\":{\"object\":\"{\\\"x\\\":\\\"\xef\xbf\xbd\\\"}\"}},"
        "{\"delete\":{" KEY ",\"uid\":\"u-1\",\"if-version\":\"9\",\"propagation\":\"orphan\"}},{\"delete\":{" KEY "}},"
        "{\"event\":{\"type\":\"warning\",\"reason\":\"Broken\",\"action\":\"Mending\",\"note\":\"\xe2\x98\x83\",\"related\":{"
        "\"kind\":{\"group\":\"\",\"version\":\"v1\","
        "\"kind\":\"ConfigMap\"},\"namespace\":\"default\",\"name\":\"a\"}}},{\"event\":{\"type\":\"normal\",\"reason\":\"Fine\",\"action\":\"\","
        "\"note\":\"\"}},"
        "{\"other\":{\"name\":\"future\",\"body\":\"{\\\"x\\\":1}\"}}],\"next\":{\"requeue-after-ms\":4294967295}}");
}

static void effects_elsewhere(const vmhost_request *request, vmhost_outcome *outcome) {
    vmhost_apply(outcome, .object = "{\"n\":1.0}", .subresource = "status", .cluster = "east");
    vmhost_patch(outcome, .key = request->key, .merge = "{}", .if_version = "8", .cluster = VMHOST_HOME);
    vmhost_create(outcome, .object = "{}", .cluster = "\"e\"");
    vmhost_delete(outcome, .key = {deployment, NULL, "x"}, .uid = "u-1", .propagation = VMHOST_ORPHAN, .cluster = "east");
}

static void an_effect_is_written_with_its_cluster(void) {
    const char *bodies[] = {
        "{\"cluster\":\"east\",\"effect\":{\"apply\":{\"object\":{\"n\":1.0},\"subresource\":\"status\",\"force\":true,\"createIfAbsent\":false}}}",
        "{\"cluster\":null,\"effect\":{\"patch\":{\"key\":{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"namespace\":\"default\",\"name\":\"a\"},"
        "\"type\":\"merge\",\"body\":{},\"ifVersion\":\"8\"}}}",
        "{\"cluster\":\"\\\"e\\\"\",\"effect\":{\"create\":{\"object\":{}}}}",
        "{\"cluster\":\"east\",\"effect\":{\"delete\":{\"key\":{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"name\":\"x\"},"
        "\"uid\":\"u-1\",\"propagation\":\"orphan\"}}}",
    };
    const char *outcome = turn(effects_elsewhere, "{}");
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        char pointer[64];
        snprintf(pointer, sizeof pointer, "/effects/%zu/other/name", i);
        VMHOST_TEST_EQUAL(vmhost_test_text(outcome, pointer), "in-cluster");
        snprintf(pointer, sizeof pointer, "/effects/%zu/other/body", i);
        VMHOST_TEST_EQUAL(vmhost_test_text(outcome, pointer), bodies[i]);
    }
}

static void broken_effect(const vmhost_request *request, vmhost_outcome *outcome) {
    switch (request->attempt) {
    case 0: vmhost_patch(outcome, .key = request->key); break;
    case 1: vmhost_patch(outcome, .key = request->key, .merge = "{}", .json = "[]"); break;
    case 2: vmhost_create(outcome, .object = NULL); break;
    default: vmhost_delete(outcome, .key = {.kind = config_map}); break;
    }
}

static void an_effect_that_lacks_something_says_what(void) {
    const char *errors[] = {"the effect patch needs either .merge or .json", "the effect patch needs either .merge or .json", "the effect create needs .object",
                            "the effect delete needs .key.name"};
    policy = broken_effect;
    for (uint32_t i = 0; i < 4; i++)
        VMHOST_TEST_EQUAL(vmhost_test_text(vmhost_test_reconcile((vmhost_request){"all", {config_map, NULL, "a"}, .attempt = i}), "/next/retry"), errors[i]);
}

static void see_request(const vmhost_request *request, vmhost_outcome *outcome) {
    vmhost_retry(outcome, "%s %s %d %u %s", request->key.ns ? request->key.ns : "-", request->previous.text, request->deleting, (unsigned)request->last->effect,
                 request->last->message);
}

static void a_request_has_all_of_the_contract(void) {
    vmhost_refusal last = {3, 409, "Conflict", "too late"};
    policy = see_request;
    vmhost_request request = {"all", {config_map, NULL, "a"}, .previous = {"{}"}, .deleting = true, .last = &last};
    VMHOST_TEST_EQUAL(vmhost_test_text(vmhost_test_reconcile(request), "/next/retry"), "- {} 1 3 too late");
}

static void read_cluster(const vmhost_request *request, vmhost_outcome *outcome) {
    (void)request;
    vmhost_key keys[] = {{config_map, "default", "b"}, {config_map, "default", "none"}, {config_map, "default", "a"}};
    VMHOST_TEST_EQUAL(vmhost_string(vmhost_get(keys[0], NULL), "/metadata/name"), "b");
    VMHOST_TEST(!vmhost_get_live(keys[1], NULL).text && !vmhost_get((vmhost_key){config_map, NULL, "b"}, NULL).text);
    const vmhost_value *many = vmhost_get_many(keys, 3, NULL);
    VMHOST_TEST(many && many[0].text && !many[1].text && many[2].text);
    vmhost_page page = vmhost_list((vmhost_query){.kind = config_map, .limit = 2, .metadata_only = true}, NULL);
    VMHOST_TEST(page.count == 2 && page.next && !vmhost_at(page.objects[0], "/data").text);
    VMHOST_TEST(vmhost_list_all((vmhost_query){.kind = config_map, .limit = 2}, NULL).count == 5);
    VMHOST_TEST(vmhost_list_live((vmhost_query){.kind = config_map, .ns = "default", .label_selector = "app=web"}, NULL).count == 2);
    VMHOST_TEST(vmhost_list((vmhost_query){.kind = config_map, .owner = "u-1"}, NULL).count == 1);
    vmhost_read_error error;
    vmhost_page none = vmhost_list((vmhost_query){.kind = config_map, .index = "i", .index_value = "v"}, &error);
    VMHOST_TEST(!none.objects && error.code == VMHOST_INVALID && !vmhost_has_error());
    VMHOST_TEST_EQUAL(vmhost_setting("colour"), "red");
    VMHOST_TEST(!vmhost_setting("none"));
    vmhost_finalized(outcome);
}

static void the_cluster_is_read(void) {
    vmhost_test_object(
        "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\",\"namespace\":\"default\",\"labels\":{\"app\":\"web\"}},\"data\":{}}");
    vmhost_test_object("{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"b\",\"namespace\":\"default\",\"labels\":{\"app\":\"web\"}}}");
    vmhost_test_object(
        "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"c\",\"namespace\":\"default\",\"ownerReferences\":[{\"uid\":\"u-1\"}]}}");
    vmhost_test_object("{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"d\",\"namespace\":\"x\"}}");
    vmhost_test_object("{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"e\",\"namespace\":\"x\"}}");
    vmhost_test_object("{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"metadata\":{\"name\":\"a\",\"namespace\":\"default\"}}");
    vmhost_test_setting("colour", "red");
    VMHOST_TEST_EQUAL(turn(read_cluster, "{}"), "{\"effects\":[],\"next\":\"finalized\"}");
    vmhost_test_reset();
}

static void read_one(const vmhost_request *request, vmhost_outcome *outcome) {
    (void)outcome;
    vmhost_get(request->key, NULL);
}

static void read_page(const vmhost_request *request, vmhost_outcome *outcome) {
    (void)outcome;
    vmhost_list_all((vmhost_query){.kind = request->key.kind}, NULL);
}

static void a_refused_read_is_typed_and_names_what_was_read(void) {
    struct {
        vmhost_read_error error;
        const char *text;
    } cases[] = {
        {{VMHOST_NOT_WATCHED, "ConfigMap", 0}, "ConfigMap default/a cannot be read: the description does not let this controller read ConfigMap"},
        {{VMHOST_TOO_LARGE, NULL, 42}, "ConfigMap default/a cannot be read: the answer is larger than 42 bytes"},
        {{VMHOST_INVALID, "no", 0}, "ConfigMap default/a cannot be read: no"},
        {{VMHOST_UNAVAILABLE, "gone", 0}, "ConfigMap default/a cannot be read live: gone"},
    };
    for (int i = 0; i < 4; i++) {
        vmhost_test_refuse_reads(cases[i].error);
        VMHOST_TEST_EQUAL(vmhost_test_text(turn(read_one, "{}"), "/next/retry"), cases[i].text);
    }
    VMHOST_TEST_EQUAL(vmhost_test_text(turn(read_page, "{}"), "/next/retry"), "the list of ConfigMap cannot be read live: gone");
    vmhost_test_reset();
}

static void set_conditions(const vmhost_request *request, vmhost_outcome *outcome) {
    (void)request, (void)outcome;
    bool changed;
    struct vmhost_condition ready = {.type = "Ready", .reason = "Up", .message = "m", .last_transition_time = "t1", .observed_generation = 4};
    const char *list = vmhost_set_condition((vmhost_value){NULL}, ready, &changed);
    VMHOST_TEST_EQUAL(
        list, "[{\"type\":\"Ready\",\"status\":\"Unknown\",\"observedGeneration\":4,\"lastTransitionTime\":\"t1\",\"reason\":\"Up\",\"message\":\"m\"}]");
    VMHOST_TEST(changed);
    ready.last_transition_time = "t2";
    VMHOST_TEST_EQUAL(vmhost_set_condition((vmhost_value){list}, ready, &changed), list);
    VMHOST_TEST(!changed);
    ready.observed_generation = 5;
    vmhost_set_condition((vmhost_value){list}, ready, &changed);
    VMHOST_TEST(changed);
    ready.status = VMHOST_TRUE;
    list = vmhost_set_condition(
        (vmhost_value){"[{\"type\":\"Other\"},{\"type\":\"Ready\",\"status\":\"False\",\"lastTransitionTime\":\"t0\"},{\"type\":\"Last\"}]"}, ready, &changed);
    VMHOST_TEST_EQUAL(vmhost_raw(vmhost_at((vmhost_value){list}, "/1/lastTransitionTime")), "\"t2\"");
    VMHOST_TEST(vmhost_condition_is((vmhost_value){list}, "Ready", VMHOST_TRUE) && !vmhost_condition_is((vmhost_value){list}, "Gone", VMHOST_TRUE));
    VMHOST_TEST_EQUAL(vmhost_remove_condition((vmhost_value){list}, "Ready", &changed), "[{\"type\":\"Other\"},{\"type\":\"Last\"}]");
    VMHOST_TEST(changed);
    VMHOST_TEST_EQUAL(vmhost_remove_condition((vmhost_value){"[{\"type\":\"Ready\"}]"}, "Ready", NULL), "[]");
    ready.last_transition_time = NULL;
    list = vmhost_set_condition((vmhost_value){NULL}, ready, NULL);
    VMHOST_TEST(strlen(vmhost_string((vmhost_value){list}, "/0/lastTransitionTime")) == 20);
    VMHOST_TEST_EQUAL(vmhost_rfc3339(951782400), "2000-02-29T00:00:00Z");
    VMHOST_TEST_EQUAL(vmhost_rfc3339(4107542400), "2100-03-01T00:00:00Z");
    VMHOST_TEST_EQUAL(vmhost_rfc3339(1000000000), "2001-09-09T01:46:40Z");
    VMHOST_TEST_EQUAL(vmhost_rfc3339(-1), "1970-01-01T00:00:00Z");
    vmhost_value owner = {"{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"metadata\":{\"name\":\"web\",\"uid\":\"u-1\",\"finalizers\":[\"a/b\"]}}"};
    const char *reference = vmhost_controller_reference(owner);
    VMHOST_TEST_EQUAL(reference,
                      "{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"name\":\"web\",\"uid\":\"u-1\",\"controller\":true,\"blockOwnerDeletion\":true}");
    VMHOST_TEST_EQUAL(vmhost_owner_reference(owner), "{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"name\":\"web\",\"uid\":\"u-1\"}");
    const char *plain = "{\"uid\":\"u-0\"}";
    vmhost_value child = {VMHOST_OBJECT_OF("metadata", VMHOST_OBJECT_OF("ownerReferences", VMHOST_ARRAY_OF(plain, reference)))};
    VMHOST_TEST(vmhost_is_controlled_by(child, "u-1") && !vmhost_is_controlled_by(child, "u-0") && !vmhost_is_controlled_by(owner, "u-1"));
    VMHOST_TEST(vmhost_has_finalizer(owner, "a/b") && !vmhost_has_finalizer(owner, "a") && !vmhost_has_finalizer(child, "a/b"));
}

static void metadata_is_treated_as_apimachinery_does(void) { VMHOST_TEST_EQUAL(turn(set_conditions, "{}"), "{\"effects\":[],\"next\":\"await-change\"}"); }

static void wake_names(const vmhost_map_request *request, vmhost_names *names) {
    if (strcmp(request->controller, "all")) vmhost_set_error("cannot map %s", request->controller);
    for (size_t i = 0; i < request->count; i++) {
        vmhost_value object = request->changes[i].now.text ? request->changes[i].now : request->changes[i].before;
        vmhost_wake(names, vmhost_string(object, "/metadata/namespace"), vmhost_string(object, "/metadata/name"));
    }
}

static void changes_are_mapped_to_names(void) {
    vmhost_change changes[] = {
        {{"{\"metadata\":{\"name\":\"old\"}}"}, {NULL}}, {{NULL}, {"{\"metadata\":{\"name\":\"new\",\"namespace\":\"x\"}}"}}, {{"{}"}, {"{\"metadata\":1}"}}};
    mapping = wake_names;
    VMHOST_TEST_EQUAL(vmhost_test_map_changes((vmhost_map_request){"all", changes, 2}), "[{\"name\":\"old\"},{\"namespace\":\"x\",\"name\":\"new\"}]");
    VMHOST_TEST_EQUAL(vmhost_test_map_changes((vmhost_map_request){"other", changes, 2}), "{\"error\":\"cannot map other\"}");
    VMHOST_TEST_EQUAL(vmhost_test_map_changes((vmhost_map_request){"all", changes, 3}), "{\"error\":\"json: /metadata is a number, not an object\"}");
    VMHOST_TEST_EQUAL(vmhost_test_map_changes((vmhost_map_request){"all", changes, 0}), "[]");
}

static void log_lines(const vmhost_request *request, vmhost_outcome *outcome) {
    (void)request, (void)outcome;
    vmhost_trace("one\ntwo \xe2\x98\x83");
    vmhost_warn("%d%s", 5, "\x80 \xed\xa0\x80 \xc0\x80");
}

static void lines_that_are_no_utf_8_are_repaired(void) {
    turn(log_lines, "{}");
    VMHOST_TEST_EQUAL(vmhost_test_lines(), "trace: one\ntwo \xe2\x98\x83\nwarn: 5\xef\xbf\xbd \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd \xef\xbf\xbd\xef\xbf\xbd\n");
}

static void calls_a_service(const vmhost_request *request, vmhost_outcome *outcome) {
    (void)request, (void)outcome;
    vmhost_http_response made = vmhost_http((vmhost_http_request){.method = "POST", .url = "https://a.com/x", .headers = VMHOST_HEADERS({"x", "y"}), .body = "{}"}, NULL);
    VMHOST_TEST(made.status == 201 && made.body_size == 8);
    VMHOST_TEST_EQUAL(made.body, "{\"id\":7}");
    VMHOST_TEST(vmhost_http_header_of(made, "x") == NULL);
    vmhost_http_error error;
    vmhost_http_response none = vmhost_http((vmhost_http_request){.url = "https://a.com/y"}, &error);
    VMHOST_TEST(none.status == 0 && error.code == VMHOST_HTTP_NOT_SENT && !vmhost_has_error());
    vmhost_http((vmhost_http_request){.url = "https://a.com/y?token"}, NULL);
}

static void a_service_answers_or_the_turn_has_an_error(void) {
    vmhost_test_response("POST", "https://a.com/x", 201, "{\"id\":7}");
    const char *outcome = turn(calls_a_service, "{}");
    VMHOST_TEST_EQUAL(vmhost_test_text(outcome, "/next/retry"), "GET https://a.com/y has no response (not sent): the test gives no answer to GET https://a.com/y?token");
    VMHOST_TEST_EQUAL(vmhost_test_lines(), "http: POST https://a.com/x {}\nhttp: GET https://a.com/y\nhttp: GET https://a.com/y?token\n");
    vmhost_test_reset();
}

int main(void) {
    the_description_leaves_out_what_was_left_out();
    values_are_read_where_they_stand();
    what_cannot_be_read_is_a_retry_without_effects();
    no_text_is_read_past_its_end();
    depth_costs_no_stack();
    texts_are_put_together();
    every_effect_fills_its_record();
    an_effect_is_written_with_its_cluster();
    an_effect_that_lacks_something_says_what();
    a_request_has_all_of_the_contract();
    the_cluster_is_read();
    a_refused_read_is_typed_and_names_what_was_read();
    metadata_is_treated_as_apimachinery_does();
    changes_are_mapped_to_names();
    lines_that_are_no_utf_8_are_repaired();
    a_service_answers_or_the_turn_has_an_error();
    return vmhost_test_end();
}
