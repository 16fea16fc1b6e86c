// The conformance guest in C++. ../README.md describes each case.
#include "reviews.hpp"

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <unistd.h>

using namespace vmhost;

static constexpr Kind conformance_case{"conformance.vmhost.dev", "v1", "Case"};
static constexpr Kind config_map{"", "v1", "ConfigMap"}, pod{"", "v1", "Pod"}, namespace_kind{"", "v1", "Namespace"};
static constexpr Kind secret{"", "v1", "Secret"}, node{"", "v1", "Node"}, service{"", "v1", "Service"}, endpoints{"", "v1", "Endpoints"};
static constexpr Kind deployment{"apps", "v1", "Deployment"}, stateful_set{"apps", "v1", "StatefulSet"};

static void answer(const Request &request, Outcome &outcome, Json json) { outcome.patch({.key = request.key, .merge = Json::object({{"answer", json}})}); }

static Key named(const char *name) { return {config_map, "default", name}; }

static Json texts(const Page &page) {
    auto *quoted = static_cast<const char **>(vmhost_alloc(page.count * sizeof(const char *)));
    for (size_t i = 0; i < page.count; i++) quoted[i] = vmhost_quote(page.objects[i].text);
    return Json::raw(vmhost_array_of(quoted, page.count));
}

static void echo(const Request &request, Outcome &outcome) {
    const auto &[kind, ns, name] = request.key;
    Json last = nullptr;
    if (auto *was = request.last) last = Json::object({{"effect", was->effect}, {"code", was->code}, {"reason", was->reason}, {"message", was->message}});
    answer(request, outcome,
           Json::object({{"controller", request.controller},
                         {"key", Json::object({{"group", kind.group}, {"version", kind.version}, {"kind", kind.kind}, {"namespace", ns}, {"name", name}})},
                         {"object", request.object.text},
                         {"previous", request.previous.text},
                         {"deleting", request.deleting},
                         {"attempt", request.attempt},
                         {"last", last}}));
}

static void effects(const Request &, Outcome &outcome) {
    auto object = R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"default"},"data":{"k":"v"}})";
    outcome.apply({.object = object, .subresource = "status", .polite = true, .existing = true, .if_version = "7"});
    outcome.apply({.object = object});
    outcome.patch({.key = named("a"), .subresource = "status", .merge = Json::object({{"data", Json::object({{"k", nullptr}})}}), .if_version = "8"});
    auto operations = Operations().test("/a", 1).add("/b/-", "x").replace("/c~1d", nullptr).remove("/e");
    outcome.patch({.key = {namespace_kind, nullptr, "n"}, .json = operations});
    outcome.create({.object = R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"a-","namespace":"default"}})"});
    outcome.remove({.key = named("a"), .uid = "u-1", .if_version = "9", .propagation = VMHOST_FOREGROUND});
    outcome.remove({.key = named("b")});
    outcome.event({.warning = true, .reason = "Broken", .action = "Mending", .note = "it broke: ☃", .related = named("a")});
    outcome.event({.reason = "Fine"});
    outcome.other({.name = "future", .body = Json::object({{"x", 1}})});
}

static void in_clusters(const Request &, Outcome &outcome) {
    auto object = R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"default"},"data":{"k":"v"}})";
    outcome.apply({.object = object, .cluster = "east"});
    auto data = Json::object({{"data", Json::object({{"k", "v"}})}});
    outcome.patch({.key = named("a"), .subresource = "status", .merge = data, .if_version = "8", .cluster = VMHOST_HOME});
    outcome.create({.object = R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"default"}})", .cluster = "east"});
    outcome.remove({.key = {deployment, "default", "d"}, .uid = "u-1", .propagation = VMHOST_ORPHAN, .cluster = "east"});
}

static Json send_requests() {
    static constexpr const char *words[] = {"", "denied", "invalid", "not-sent", "no-answer", "too-large"};
    static constexpr vmhost_http_header headers[] = {{"content-type", "application/json"}, {"x-case", "http"}, {nullptr, nullptr}};
    auto made = http({.method = "POST", .url = "http://api.example.com:8080/v1/machines", .headers = headers, .body = R"({"n":"☃"})"});
    vmhost_http_error error;
    http({.url = "https://denied.example.com/"}, &error);
    auto type = vmhost_http_header_of(made, "content-type");
    return Json::object({{"status", made.status}, {"type", type}, {"body", made.body}, {"error", words[error.code]}});
}

static void read_many(const Request &request, Outcome &outcome) {
    auto *keys = static_cast<Key *>(vmhost_alloc(1000 * sizeof(Key)));
    for (int i = 0; i < 1000; i++) keys[i] = named(vmhost_format("k%d", i));
    auto *values = vmhost_get_many(keys, 1000, nullptr);
    if (!values) return;
    int found = 0;
    for (int i = 0; i < 1000; i++) found += values[i].text != nullptr;
    answer(request, outcome, Json::object({{"found", found}, {"first", values[0].text}, {"last", values[999].text}}));
}

static void read_list(const Request &request, Outcome &outcome) {
    Query query{.kind = config_map,
                .ns = "default",
                .label_selector = "app=web,!legacy",
                .index = "by-node",
                .index_value = "n1",
                .owner = "u-1",
                .metadata_only = true,
                .limit = 2,
                .next = "c-1"};
    Page page = list(query);
    answer(request, outcome, Json::object({{"objects", texts(page)}, {"continue", page.next}}));
}

static void read_live(const Request &request, Outcome &outcome) {
    Value a = get_live({pod, "default", "a"});
    Page page = list_live({.kind = pod});
    answer(request, outcome, Json::object({{"a", a.text}, {"objects", texts(page)}, {"continue", page.next}}));
}

static Json refused(const char *name, vmhost_read_code code) {
    ReadError error;
    get(named(name), &error);
    if (error.code != code) vmhost_set_error("%s is refused with code %d", name, static_cast<int>(error.code));
    return code == VMHOST_TOO_LARGE ? Json(error.limit) : Json(error.text);
}

static void log_lines(const Request &request, Outcome &outcome) {
    for (auto level : {VMHOST_TRACE, VMHOST_DEBUG, VMHOST_INFO, VMHOST_WARN, VMHOST_ERROR}) vmhost_log(level, "one\ntwo ☃");
    std::puts("printed");
    std::fflush(stdout);
    answer(request, outcome, nullptr);
}

static Json setting_or_null(const char *name) {
    auto value = setting(name);
    return value ? Json(*value) : Json(nullptr);
}

static Json presence(Value value) { return value.type() == VMHOST_NULL ? "null" : value ? "value" : "missing"; }

static int depth(Value value) {
    int lists = 0;
    for (; value.type() == VMHOST_ARRAY; lists++) {
        Value inner;
        for (Member member : value) inner = member.value;
        value = inner;
    }
    return lists;
}

static long long nanoseconds(clockid_t clock) {
    timespec now{};
    clock_gettime(clock, &now);
    return static_cast<long long>(now.tv_sec) * 1000000000 + now.tv_nsec;
}

static Json senses() {
    unsigned chance = 0;
    getentropy(&chance, sizeof chance);
    return Json::object({{"wall", nanoseconds(CLOCK_REALTIME)}, {"steady", nanoseconds(CLOCK_MONOTONIC)}, {"chance", chance}});
}

static void reconcile(const Request &request, Outcome &outcome) {
    static int calls;
    Value spec = request.object ? request.object["/spec"] : Value();
    auto name = spec.string("/case").value_or("echo");
    if (name == "echo") echo(request, outcome);
    else if (name == "effects") effects(request, outcome);
    else if (name == "in-cluster") in_clusters(request, outcome);
    else if (name == "next-await-change") outcome.await_change();
    else if (name == "next-requeue-after") outcome.requeue_after_ms(4294967295);
    else if (name == "next-requeue") outcome.requeue();
    else if (name == "next-retry") outcome.retry("later, \"please\"");
    else if (name == "next-fail") outcome.fail("never: ☃");
    else if (name == "next-finalized") outcome.finalized();
    else if (name == "get") answer(request, outcome, Json::object({{"a", get(named("a")).text}, {"b", get(named("b")).text}}));
    else if (name == "get-many") read_many(request, outcome);
    else if (name == "list") read_list(request, outcome);
    else if (name == "live") read_live(request, outcome);
    else if (name == "read-errors")
        answer(request, outcome,
               Json::object({{"not-watched", refused("not-watched", VMHOST_NOT_WATCHED)},
                             {"too-large", refused("too-large", VMHOST_TOO_LARGE)},
                             {"invalid", refused("invalid", VMHOST_INVALID)},
                             {"unavailable", refused("unavailable", VMHOST_UNAVAILABLE)}}));
    else if (name == "settings")
        answer(request, outcome,
               Json::object({{"given", setting_or_null("given")}, {"empty", setting_or_null("empty")}, {"missing", setting_or_null("missing")}}));
    else if (name == "http") answer(request, outcome, send_requests());
    else if (name == "log") log_lines(request, outcome);
    else if (name == "number") answer(request, outcome, Json::array({spec["/number"], spec["/huge"]}));
    else if (name == "null") answer(request, outcome, Json::array({presence(spec["/a"]), presence(spec["/b"]), presence(spec["/c"])}));
    else if (name == "text") answer(request, outcome, Json::array({*spec.string("/text"), *spec.string("/empty")}));
    else if (name == "deep") answer(request, outcome, depth(spec["/deep"]));
    else if (name == "size") answer(request, outcome, std::string_view(request.object.text).size());
    else if (name == "senses") answer(request, outcome, senses());
    else if (name == "error") vmhost_set_error("broken on purpose");
    else if (name == "crash") std::abort();
    else if (name == "memory")
        for (;;) vmhost_alloc(1 << 20);
    else if (name == "loop")
        for (volatile bool going = true; going;) continue;
    else if (name == "state") answer(request, outcome, calls++);
    else outcome.fail(vmhost_format("unknown case %s", name.data()));
}

static void map_changes(const vmhost_map_request *request, vmhost_names *names) {
    if (std::string_view(request->controller) != "cases") {
        vmhost_set_error("cannot map %s", request->controller);
        return;
    }
    for (size_t i = 0; i < request->count; i++) {
        auto &[before, now] = request->changes[i];
        vmhost_value object = now.text ? now : before;
        vmhost_wake(names, vmhost_string(object, "/metadata/namespace"), vmhost_string(object, "/metadata/name"));
    }
}

const Description vmhost_plugin = {
    .name = "conformance",
    .version = "1.2.3",
    .controllers = {{
                        .name = "cases",
                        .primary = {.kind = &conformance_case,
                                    .label_selector = "app=case",
                                    .field_selector = "metadata.name!=ignored",
                                    .wanted_fields = {"spec", "status.phase"},
                                    .indexes = {{"by-node", "spec.nodeName"}},
                                    .predicates = {.changed = VMHOST_GENERATION_CHANGED | VMHOST_LABELS_CHANGED,
                                                   .label_selector = "tier in (a,b)",
                                                   .field_selector = "spec.paused!=true",
                                                   .cel = "object.spec.case != ''"}},
                        .owns = {{.kind = &config_map}},
                        .watches = {{.kind = &secret, .metadata_only = true, .map = {VMHOST_MAP_GUEST}},
                                    {.kind = &node, .map = {VMHOST_MAP_INDEX, "by-node"}},
                                    {.kind = &deployment, .map = {VMHOST_MAP_LABEL, "case"}},
                                    {.kind = &stateful_set, .map = {VMHOST_MAP_FIELD, "spec.serviceName"}},
                                    {.kind = &service, .map = {VMHOST_MAP_NAME}},
                                    {.kind = &endpoints, .map = {VMHOST_MAP_OWNER}}},
                        .reads = {{.kind = &namespace_kind}, {.kind = &pod, .live = true}},
                        .finalizer = "conformance.vmhost.dev/clean-up",
                        .previous = true,
                        .event_source = "conformance-controller",
                        .concurrency = 2,
                        .retry = {.base_ms = 10, .cap_ms = 20000, .max_retries = {true, 7}, .per_second = 10, .burst = 100},
                    },
                    {.name = "ticker", .every_ms = 60000},
                    {.name = "starter", .once = true}},
    .webhooks = {{.name = "guard",
                  .rules = {{.api_groups = {"conformance.vmhost.dev"},
                             .api_versions = {"v1"},
                             .resources = {"cases", "cases/status"},
                             .operations = VMHOST_ON_CREATE | VMHOST_ON_UPDATE | VMHOST_ON_DELETE,
                             .scope = "Namespaced"}},
                  .match_conditions = {{"not-me", "request.userInfo.username != 'me'"}},
                  .timeout_seconds = 3,
                  .reads = {{.kind = &config_map}}},
                 {.name = "defaults",
                  .mutating = true,
                  .rules = {{.api_groups = {"*"}, .api_versions = {"*"}, .resources = {"*/*"}, .operations = VMHOST_ON_ALL}},
                  .namespace_selector = R"({"matchLabels":{"a":"b"}})",
                  .object_selector = R"({"matchExpressions":[{"key":"c","operator":"In","values":["d"]}]})",
                  .failure_policy = "Ignore",
                  .side_effects = "NoneOnDryRun",
                  .reinvocation_policy = "IfNeeded",
                  .match_policy = "Exact"}},
    .conversions = {{.name = "convert",
                     .group = "conformance.vmhost.dev",
                     .kind = "Case",
                     .resource = "cases",
                     .versions = {"v1", "v2"},
                     .reads = {{.kind = &config_map}}}},
    .permissions = {{.kind = &conformance_case, .verbs = VMHOST_PATCH},
                    {.kind = &conformance_case, .verbs = VMHOST_PATCH, .subresources = {"status"}, .namespaces = {"default"}, .optional = true},
                    {.kind = &config_map, .verbs = VMHOST_CREATE | VMHOST_PATCH | VMHOST_DELETE}},
    .http = {{.host = "api.example.com",
              .port = 8080,
              .scheme = "http",
              .methods = {"GET", "POST"},
              .path_prefix = "/v1",
              .headers = {{.name = "Authorization", .prefix = "Bearer ", .secret_ns = "default", .secret_name = "api", .secret_key = "token"},
                          {.name = "X-Tenant", .setting = "tenant"}},
              .url_setting = "url",
              .allow_private = true},
             {.host = "*.example.com"}},
    .custom_resource_definitions =
        {R"({"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"cases.conformance.vmhost.dev"},"spec":{"group":"conformance.vmhost.dev","names":{"plural":"cases"}}})"},
    .settings_schema =
        R"({"type":"object","required":["given"],"properties":{"given":{"type":"string","minLength":1},"limit":{"type":"integer","minimum":1,"default":10}}})",
    .reconcile = turn<reconcile>,
    .map_changes = map_changes,
    .admit = admit<review>,
    .convert = convert<one>,
};
