/* The conformance guest in C. ../README.md describes each case. */
#include "reviews.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const vmhost_kind conformance_case = {"conformance.vmhost.dev", "v1", "Case"};
static const vmhost_kind config_map = {"", "v1", "ConfigMap"}, pod = {"", "v1", "Pod"}, namespace_kind = {"", "v1", "Namespace"};
static const vmhost_kind secret = {"", "v1", "Secret"}, node = {"", "v1", "Node"}, service = {"", "v1", "Service"}, endpoints = {"", "v1", "Endpoints"};
static const vmhost_kind deployment = {"apps", "v1", "Deployment"}, stateful_set = {"apps", "v1", "StatefulSet"};

static void answer(const vmhost_request *request, vmhost_outcome *outcome, const char *json) {
    vmhost_patch(outcome, .key = request->key, .merge = VMHOST_OBJECT_OF("answer", json));
}

static const char *boolean(bool value) { return value ? "true" : "false"; }

/* Returns the text of an object as a string, or null. */
static const char *quoted(vmhost_value object) { return vmhost_quote(object.text); }

static const char *quoted_objects(vmhost_page page) {
    const char **texts = vmhost_alloc(page.count * sizeof *texts);
    for (size_t i = 0; i < page.count; i++) texts[i] = quoted(page.objects[i]);
    return vmhost_array_of(texts, page.count);
}

static vmhost_key named(const char *name) { return (vmhost_key){config_map, "default", name}; }

static void echo(const vmhost_request *request, vmhost_outcome *outcome) {
    const vmhost_key *key = &request->key;
    const char *last = NULL;
    if (request->last) {
        last = VMHOST_OBJECT_OF("effect", vmhost_format("%u", (unsigned)request->last->effect), "code", vmhost_format("%u", (unsigned)request->last->code),
                                "reason", vmhost_quote(request->last->reason), "message", vmhost_quote(request->last->message));
    }
    const char *name = VMHOST_OBJECT_OF("group", vmhost_quote(key->kind.group), "version", vmhost_quote(key->kind.version), "kind",
                                        vmhost_quote(key->kind.kind), "namespace", vmhost_quote(key->ns), "name", vmhost_quote(key->name));
    answer(request, outcome,
           VMHOST_OBJECT_OF("controller", vmhost_quote(request->controller), "key", name, "object", quoted(request->object), "previous",
                            quoted(request->previous), "deleting", boolean(request->deleting), "attempt", vmhost_format("%u", (unsigned)request->attempt),
                            "last", last));
}

static void effects(const vmhost_request *request, vmhost_outcome *outcome) {
    (void)request;
    const char *object = VMHOST_JSON({"apiVersion" : "v1", "kind" : "ConfigMap", "metadata" : {"name" : "a", "namespace" : "default"}, "data" : {"k" : "v"}});
    vmhost_apply(outcome, .object = object, .subresource = "status", .polite = true, .existing = true, .if_version = "7");
    vmhost_apply(outcome, .object = object);
    vmhost_patch(outcome, .key = named("a"), .subresource = "status", .merge = VMHOST_JSON({"data" : {"k" : null}}), .if_version = "8");
    const char *operations =
        VMHOST_OPERATIONS(vmhost_test("/a", "1"), vmhost_add("/b/-", vmhost_quote("x")), vmhost_replace("/c~1d", "null"), vmhost_remove("/e"));
    vmhost_patch(outcome, .key = {namespace_kind, NULL, "n"}, .json = operations);
    vmhost_create(outcome, .object = VMHOST_JSON({"apiVersion" : "v1", "kind" : "ConfigMap", "metadata" : {"generateName" : "a-", "namespace" : "default"}}));
    vmhost_delete(outcome, .key = named("a"), .uid = "u-1", .if_version = "9", .propagation = VMHOST_FOREGROUND);
    vmhost_delete(outcome, .key = named("b"));
    vmhost_event(outcome, .warning = true, .reason = "Broken", .action = "Mending", .note = "it broke: ☃", .related = named("a"));
    vmhost_event(outcome, .reason = "Fine");
    vmhost_other(outcome, .name = "future", .body = VMHOST_JSON({"x" : 1}));
}

static void in_clusters(const vmhost_request *request, vmhost_outcome *outcome) {
    (void)request;
    const char *object = VMHOST_JSON({"apiVersion" : "v1", "kind" : "ConfigMap", "metadata" : {"name" : "a", "namespace" : "default"}, "data" : {"k" : "v"}});
    vmhost_apply(outcome, .object = object, .cluster = "east");
    vmhost_patch(outcome, .key = named("a"), .subresource = "status", .merge = VMHOST_JSON({"data" : {"k" : "v"}}), .if_version = "8", .cluster = VMHOST_HOME);
    object = VMHOST_JSON({"apiVersion" : "v1", "kind" : "ConfigMap", "metadata" : {"name" : "c", "namespace" : "default"}});
    vmhost_create(outcome, .object = object, .cluster = "east");
    vmhost_delete(outcome, .key = {deployment, "default", "d"}, .uid = "u-1", .propagation = VMHOST_ORPHAN, .cluster = "east");
}

static void next_await_change(const vmhost_request *request, vmhost_outcome *outcome) { (void)request, vmhost_await_change(outcome); }

static void next_requeue_after(const vmhost_request *request, vmhost_outcome *outcome) { (void)request, vmhost_requeue_after_ms(outcome, 4294967295); }

static void next_requeue(const vmhost_request *request, vmhost_outcome *outcome) { (void)request, vmhost_requeue(outcome); }

static void next_retry(const vmhost_request *request, vmhost_outcome *outcome) { (void)request, vmhost_retry(outcome, "later, \"please\""); }

static void next_fail(const vmhost_request *request, vmhost_outcome *outcome) { (void)request, vmhost_fail(outcome, "never: ☃"); }

static void next_finalized(const vmhost_request *request, vmhost_outcome *outcome) { (void)request, vmhost_finalized(outcome); }

static void get(const vmhost_request *request, vmhost_outcome *outcome) {
    answer(request, outcome, VMHOST_OBJECT_OF("a", quoted(vmhost_get(named("a"), NULL)), "b", quoted(vmhost_get(named("b"), NULL))));
}

static void get_many(const vmhost_request *request, vmhost_outcome *outcome) {
    vmhost_key *keys = vmhost_alloc(1000 * sizeof *keys);
    for (int i = 0; i < 1000; i++) keys[i] = named(vmhost_format("k%d", i));
    const vmhost_value *values = vmhost_get_many(keys, 1000, NULL);
    if (!values) return;
    int found = 0;
    for (int i = 0; i < 1000; i++) found += values[i].text != NULL;
    answer(request, outcome, VMHOST_OBJECT_OF("found", vmhost_format("%d", found), "first", quoted(values[0]), "last", quoted(values[999])));
}

static void list(const vmhost_request *request, vmhost_outcome *outcome) {
    vmhost_query query = {.kind = config_map,
                          .ns = "default",
                          .label_selector = "app=web,!legacy",
                          .index = "by-node",
                          .index_value = "n1",
                          .owner = "u-1",
                          .metadata_only = true,
                          .limit = 2,
                          .next = "c-1"};
    vmhost_page page = vmhost_list(query, NULL);
    answer(request, outcome, VMHOST_OBJECT_OF("objects", quoted_objects(page), "continue", vmhost_quote(page.next)));
}

static void live(const vmhost_request *request, vmhost_outcome *outcome) {
    vmhost_value a = vmhost_get_live((vmhost_key){pod, "default", "a"}, NULL);
    vmhost_page page = vmhost_list_live((vmhost_query){.kind = pod}, NULL);
    answer(request, outcome, VMHOST_OBJECT_OF("a", quoted(a), "objects", quoted_objects(page), "continue", vmhost_quote(page.next)));
}

static void read_errors(const vmhost_request *request, vmhost_outcome *outcome) {
    static const struct {
        const char *name;
        vmhost_read_code code;
    } wanted[] = {{"not-watched", VMHOST_NOT_WATCHED}, {"too-large", VMHOST_TOO_LARGE}, {"invalid", VMHOST_INVALID}, {"unavailable", VMHOST_UNAVAILABLE}};
    const char *members[8];
    for (int i = 0; i < 4; i++) {
        vmhost_read_error error;
        vmhost_get(named(wanted[i].name), &error);
        if (error.code != wanted[i].code) vmhost_set_error("%s is refused with code %d", wanted[i].name, (int)error.code);
        members[2 * i] = wanted[i].name;
        members[2 * i + 1] = error.code == VMHOST_TOO_LARGE ? vmhost_format("%u", (unsigned)error.limit) : vmhost_quote(error.text);
    }
    answer(request, outcome, vmhost_object_of(members, 8));
}

static void settings(const vmhost_request *request, vmhost_outcome *outcome) {
    answer(request, outcome,
           VMHOST_OBJECT_OF("given", vmhost_quote(vmhost_setting("given")), "empty", vmhost_quote(vmhost_setting("empty")), "missing",
                            vmhost_quote(vmhost_setting("missing"))));
}

static void http(const vmhost_request *request, vmhost_outcome *outcome) {
    static const char *const words[] = {"", "denied", "invalid", "not-sent", "no-answer", "too-large"};
    static const vmhost_http_header headers[] = {{"content-type", "application/json"}, {"x-case", "http"}, {0}};
    vmhost_http_request post = {.method = "POST", .url = "http://api.example.com:8080/v1/machines", .headers = headers, .body = "{\"n\":\"☃\"}"};
    vmhost_http_response made = vmhost_http(post, NULL);
    vmhost_http_error error;
    vmhost_http((vmhost_http_request){.url = "https://denied.example.com/"}, &error);
    const char *type = vmhost_http_header_of(made, "content-type");
    answer(request, outcome,
           VMHOST_OBJECT_OF("status", vmhost_format("%d", made.status), "type", vmhost_quote(type), "body", vmhost_quote(made.body), "error",
                            vmhost_quote(words[error.code])));
}

static void log_lines(const vmhost_request *request, vmhost_outcome *outcome) {
    for (int level = VMHOST_TRACE; level <= VMHOST_ERROR; level++) vmhost_log((vmhost_level)level, "one\ntwo ☃");
    puts("printed");
    fflush(stdout);
    answer(request, outcome, NULL);
}

static void number(const vmhost_request *request, vmhost_outcome *outcome) {
    answer(request, outcome, VMHOST_ARRAY_OF(vmhost_raw(vmhost_at(request->object, "/spec/number")), vmhost_raw(vmhost_at(request->object, "/spec/huge"))));
}

static const char *presence(vmhost_value value) {
    vmhost_type type = vmhost_type_of(value);
    return type == VMHOST_NULL ? "\"null\"" : type == VMHOST_MISSING ? "\"missing\"" : "\"value\"";
}

static void null(const vmhost_request *request, vmhost_outcome *outcome) {
    vmhost_value spec = vmhost_at(request->object, "/spec");
    answer(request, outcome, VMHOST_ARRAY_OF(presence(vmhost_at(spec, "/a")), presence(vmhost_at(spec, "/b")), presence(vmhost_at(spec, "/c"))));
}

static void text(const vmhost_request *request, vmhost_outcome *outcome) {
    const char *all = vmhost_string(request->object, "/spec/text"), *empty = vmhost_string(request->object, "/spec/empty");
    answer(request, outcome, VMHOST_ARRAY_OF(vmhost_quote(all), vmhost_quote(empty)));
}

static void deep(const vmhost_request *request, vmhost_outcome *outcome) {
    int depth = 0;
    for (vmhost_value at = vmhost_at(request->object, "/spec/deep"); vmhost_type_of(at) == VMHOST_ARRAY; at = vmhost_at(at, "/0")) depth++;
    answer(request, outcome, vmhost_format("%d", depth));
}

static void size(const vmhost_request *request, vmhost_outcome *outcome) { answer(request, outcome, vmhost_format("%zu", strlen(request->object.text))); }

static const char *nanoseconds(clockid_t clock) {
    struct timespec now = {0};
    clock_gettime(clock, &now);
    return vmhost_format("%lld", (long long)now.tv_sec * 1000000000 + now.tv_nsec);
}

static void senses(const vmhost_request *request, vmhost_outcome *outcome) {
    unsigned chance = 0;
    getentropy(&chance, sizeof chance);
    answer(request, outcome,
           VMHOST_OBJECT_OF("wall", nanoseconds(CLOCK_REALTIME), "steady", nanoseconds(CLOCK_MONOTONIC), "chance", vmhost_format("%u", chance)));
}

static void error(const vmhost_request *request, vmhost_outcome *outcome) {
    (void)request, (void)outcome;
    vmhost_set_error("broken on purpose");
}

static void crash(const vmhost_request *request, vmhost_outcome *outcome) {
    (void)request, (void)outcome;
    abort();
}

static void memory(const vmhost_request *request, vmhost_outcome *outcome) {
    (void)request, (void)outcome;
    for (;;) vmhost_alloc(1 << 20);
}

static void loop(const vmhost_request *request, vmhost_outcome *outcome) {
    (void)request, (void)outcome;
    for (volatile int going = 1; going;) continue;
}

static void state(const vmhost_request *request, vmhost_outcome *outcome) {
    static int calls;
    answer(request, outcome, vmhost_format("%d", calls++));
}

static const struct {
    const char *name;
    void (*run)(const vmhost_request *request, vmhost_outcome *outcome);
} cases[] = {
    {"echo", echo},
    {"effects", effects},
    {"in-cluster", in_clusters},
    {"next-await-change", next_await_change},
    {"next-requeue-after", next_requeue_after},
    {"next-requeue", next_requeue},
    {"next-retry", next_retry},
    {"next-fail", next_fail},
    {"next-finalized", next_finalized},
    {"get", get},
    {"get-many", get_many},
    {"list", list},
    {"live", live},
    {"read-errors", read_errors},
    {"settings", settings},
    {"http", http},
    {"log", log_lines},
    {"number", number},
    {"null", null},
    {"text", text},
    {"deep", deep},
    {"size", size},
    {"senses", senses},
    {"error", error},
    {"crash", crash},
    {"memory", memory},
    {"loop", loop},
    {"state", state},
};

static void reconcile(const vmhost_request *request, vmhost_outcome *outcome) {
    const char *name = vmhost_string(request->object, "/spec/case");
    if (!name) name = "echo";
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (strcmp(cases[i].name, name)) continue;
        cases[i].run(request, outcome);
        return;
    }
    vmhost_fail(outcome, "unknown case %s", name);
}

static void map_changes(const vmhost_map_request *request, vmhost_names *names) {
    if (strcmp(request->controller, "cases")) {
        vmhost_set_error("cannot map %s", request->controller);
        return;
    }
    for (size_t i = 0; i < request->count; i++) {
        vmhost_value object = request->changes[i].now.text ? request->changes[i].now : request->changes[i].before;
        vmhost_wake(names, vmhost_string(object, "/metadata/namespace"), vmhost_string(object, "/metadata/name"));
    }
}

const vmhost_description vmhost_plugin = {
    .name = "conformance",
    .version = "1.2.3",
    .controllers = VMHOST_CONTROLLERS(
        {
            .name = "cases",
            .primary = {.kind = &conformance_case,
                        .label_selector = "app=case",
                        .field_selector = "metadata.name!=ignored",
                        .wanted_fields = VMHOST_STRINGS("spec", "status.phase"),
                        .indexes = VMHOST_INDEXES({"by-node", "spec.nodeName"}),
                        .predicates = {.changed = VMHOST_GENERATION_CHANGED | VMHOST_LABELS_CHANGED,
                                       .label_selector = "tier in (a,b)",
                                       .field_selector = "spec.paused!=true",
                                       .cel = "object.spec.case != ''"}},
            .owns = VMHOST_WATCHES({.kind = &config_map}),
            .watches = VMHOST_WATCHES({.kind = &secret, .metadata_only = true, .map = {.type = VMHOST_MAP_GUEST}},
                                      {.kind = &node, .map = {VMHOST_MAP_INDEX, "by-node"}}, {.kind = &deployment, .map = {VMHOST_MAP_LABEL, "case"}},
                                      {.kind = &stateful_set, .map = {VMHOST_MAP_FIELD, "spec.serviceName"}},
                                      {.kind = &service, .map = {.type = VMHOST_MAP_NAME}}, {.kind = &endpoints, .map = {.type = VMHOST_MAP_OWNER}}),
            .reads = VMHOST_WATCHES({.kind = &namespace_kind}, {.kind = &pod, .live = true}),
            .finalizer = "conformance.vmhost.dev/clean-up",
            .previous = true,
            .event_source = "conformance-controller",
            .concurrency = 2,
            .retry = {.base_ms = 10, .cap_ms = 20000, .max_retries = {true, 7}, .per_second = 10, .burst = 100},
        },
        {.name = "ticker", .every_ms = 60000}, {.name = "starter", .once = true}),
    .webhooks = VMHOST_WEBHOOKS(
        {.name = "guard",
         .rules = VMHOST_RULES({.api_groups = VMHOST_STRINGS("conformance.vmhost.dev"),
                                .api_versions = VMHOST_STRINGS("v1"),
                                .resources = VMHOST_STRINGS("cases", "cases/status"),
                                .operations = VMHOST_ON_CREATE | VMHOST_ON_UPDATE | VMHOST_ON_DELETE,
                                .scope = "Namespaced"}),
         .match_conditions = VMHOST_CONDITIONS({"not-me", "request.userInfo.username != 'me'"}),
         .timeout_seconds = 3,
         .reads = VMHOST_WATCHES({.kind = &config_map})},
        {.name = "defaults",
         .mutating = true,
         .rules = VMHOST_RULES({.api_groups = VMHOST_STRINGS("*"),
                                .api_versions = VMHOST_STRINGS("*"),
                                .resources = VMHOST_STRINGS("*/*"),
                                .operations = VMHOST_ON_ALL}),
         .namespace_selector = "{\"matchLabels\":{\"a\":\"b\"}}",
         .object_selector = "{\"matchExpressions\":[{\"key\":\"c\",\"operator\":\"In\",\"values\":[\"d\"]}]}",
         .failure_policy = "Ignore",
         .side_effects = "NoneOnDryRun",
         .reinvocation_policy = "IfNeeded",
         .match_policy = "Exact"}),
    .conversions = VMHOST_CONVERSIONS({.name = "convert",
                                       .group = "conformance.vmhost.dev",
                                       .kind = "Case",
                                       .resource = "cases",
                                       .versions = VMHOST_STRINGS("v1", "v2"),
                                       .reads = VMHOST_WATCHES({.kind = &config_map})}),
    .permissions = VMHOST_PERMISSIONS(
        {.kind = &conformance_case, .verbs = VMHOST_PATCH},
        {.kind = &conformance_case, .verbs = VMHOST_PATCH, .subresources = VMHOST_STRINGS("status"), .namespaces = VMHOST_STRINGS("default"), .optional = true},
        {.kind = &config_map, .verbs = VMHOST_CREATE | VMHOST_PATCH | VMHOST_DELETE}),
    .http = VMHOST_HTTP({.host = "api.example.com",
                         .port = 8080,
                         .scheme = "http",
                         .methods = VMHOST_STRINGS("GET", "POST"),
                         .path_prefix = "/v1",
                         .headers = VMHOST_HTTP_HEADERS(
                             {.name = "Authorization", .prefix = "Bearer ", .secret_ns = "default", .secret_name = "api", .secret_key = "token"},
                             {.name = "X-Tenant", .setting = "tenant"}),
                         .url_setting = "url",
                         .allow_private = true},
                        {.host = "*.example.com"}),
    .custom_resource_definitions = VMHOST_STRINGS(
        VMHOST_JSON({"apiVersion" : "apiextensions.k8s.io/v1",
                     "kind" : "CustomResourceDefinition",
                     "metadata" : {"name" : "cases.conformance.vmhost.dev"},
                     "spec" : {"group" : "conformance.vmhost.dev", "names" : {"plural" : "cases"}}})),
    .settings_schema = VMHOST_JSON({
        "type" : "object",
        "required" : ["given"],
        "properties" : {"given" : {"type" : "string", "minLength" : 1}, "limit" : {"type" : "integer", "minimum" : 1, "default" : 10}}
    }),
    .reconcile = reconcile,
    .map_changes = map_changes,
    .admit = admit,
    .convert = convert,
};
