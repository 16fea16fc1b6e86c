// Tests of the C++ layer, native: make -C plugins/sdk-c test
#include "../testing/vmhost_test.h"
#include "../vmhost.hpp"

using namespace vmhost;

static constexpr Kind config_map{"", "v1", "ConfigMap"};

static void read_values(const Request &request) {
    Value spec = request.object["/spec"];
    VMHOST_TEST(spec.string("/s") == "x" && !spec.string("/none") && !spec.string("/null"));
    VMHOST_TEST(spec.integer("/n") == 9007199254740993 && !spec.integer("/none"));
    VMHOST_TEST(spec.boolean("/yes") && !spec.boolean("/none"));
    VMHOST_TEST(spec["/null"].type() == VMHOST_NULL && !spec["/none"] && spec["/list"]);
    VMHOST_TEST_EQUAL(spec["/huge"].raw(), "12345678901234567890123");
    const char *seen = "";
    for (Member member : spec["/list"]) seen = vmhost_format("%s%s%s;", seen, member.name ? member.name : "", member.value.raw());
    for (auto [name, value] : spec["/map"]) seen = vmhost_format("%s%s=%s;", seen, name, value.raw());
    for (Member member : spec["/none"]) seen = member.name;
    VMHOST_TEST_EQUAL(seen, "1;[2];a=\"b\";c={};");
}

static void write_values(const Request &request) {
    std::string_view part("hello, world", 5);
    VMHOST_TEST_EQUAL(Json::array({1, -2, 4294967295u, true, nullptr, "a\"b", part, request.object["/spec/huge"], Json::raw("{}"), 'c'}),
                      R"([1,-2,4294967295,true,null,"a\"b","hello",12345678901234567890123,{},99])");
    VMHOST_TEST_EQUAL(Json::object({{"a", 1}, {"b", Json::object({})}, {"c", Json::array({})}}), R"({"a":1,"b":{},"c":[]})");
    VMHOST_TEST_EQUAL(Operations().test("/a", 1).add("/b", "x").replace("/c", nullptr).remove("/d"),
                      R"([{"op":"test","path":"/a","value":1},{"op":"add","path":"/b","value":"x"},{"op":"replace","path":"/c","value":null},{"op":"remove","path":"/d"}])");
}

static void read_cluster() {
    VMHOST_TEST(get({config_map, "default", "a"}) && !get_live({config_map, "default", "b"}));
    int count = 0;
    for (Value object : list_all({.kind = config_map, .limit = 1})) count += object.string("/metadata/name").has_value();
    VMHOST_TEST(count == 2 && list({.kind = config_map, .limit = 1}).next && list_live({.kind = config_map}).count == 2);
    ReadError error;
    list({.kind = config_map, .index = "i", .index_value = "v"}, &error);
    VMHOST_TEST(error.code == VMHOST_INVALID && !vmhost_has_error());
    VMHOST_TEST(setting("colour") == "red" && !setting("none"));
}

static void call_service() {
    static constexpr vmhost_http_header headers[] = {{"x-a", "b"}, {nullptr, nullptr}};
    auto made = http({.method = "POST", .url = "https://a.com/x", .headers = headers, .body = "{}"});
    VMHOST_TEST(made.status == 201 && made.body_size == 8);
    VMHOST_TEST_EQUAL(made.body, R"({"id":7})");
    vmhost_http_error error;
    auto none = http({.url = "https://a.com/y"}, &error);
    VMHOST_TEST(none.status == 0 && error.code == VMHOST_HTTP_NOT_SENT && !vmhost_has_error());
}

static void reconcile(const Request &request, Outcome &outcome) {
    read_values(request);
    write_values(request);
    read_cluster();
    call_service();
    outcome.apply({.object = "{}"});
    outcome.remove({.key = request.key});
    outcome.create({.object = "{}", .cluster = "east"});
    outcome.retry("100% later");
}

static void guard(const Review &review, Verdict &verdict) {
    if (review.object["/bad"]) return verdict.deny("100% bad");
    verdict.change_to(review.object.with("/seen", Json::object({{"by", review.webhook}})));
    verdict.warning("careful");
}

static const char *one(Value object, const Batch &batch) { return object.with("/version", Json(batch.version)); }

const Description vmhost_plugin = {
    .name = "test",
    .controllers = {{.name = "all", .primary = {.kind = &config_map, .wanted_fields = {"spec"}}}, {.name = "timer", .once = true}},
    .webhooks = {{.name = "guard", .rules = {{.api_groups = {""}, .api_versions = {"v1"}, .resources = {"pods"}}}}},
    .permissions = {{.kind = &config_map, .verbs = VMHOST_PATCH, .optional = true}},
    .http = {{.host = "a.com",
              .methods = {"GET", "POST"},
              .headers = {{.name = "Authorization", .prefix = "Bearer ", .secret_ns = "n", .secret_name = "s", .secret_key = "k"}}}},
    .settings_schema = R"({"type":"object","required":["zone"]})",
    .reconcile = turn<reconcile>,
    .admit = admit<guard>,
    .convert = convert<one>,
};

int main() {
    VMHOST_TEST_EQUAL(vmhost_test_describe(), R"({"apiVersion":"vmhost/v1","name":"test","controllers":[{"name":"all","primary":{"version":"v1","kind":"ConfigMap",)"
                                              R"("wantedFields":["spec"]}},{"name":"timer","timer":{"once":true}}],"webhooks":[{"name":"guard","type":"validating","rules":[)"
                                              R"({"apiGroups":[""],"apiVersions":["v1"],"resources":["pods"],"operations":["CREATE","UPDATE"]}]}],"permissions":[)"
                                              R"({"version":"v1","kind":"ConfigMap","verbs":["patch"],"optional":true}],"http":[{"host":"a.com","methods":["GET","POST"],"headers":[)"
                                              R"({"name":"Authorization","prefix":"Bearer ","secret":{"namespace":"n","name":"s","key":"k"}}]}],)"
                                              R"("settingsSchema":{"type":"object","required":["zone"]}})");
    VMHOST_TEST_EQUAL(vmhost_test_admit("guard", R"({"object":{"bad":1}})"), R"({"allowed":false,"status":{"message":"100% bad","code":403,"reason":"Forbidden"}})");
    VMHOST_TEST_EQUAL(vmhost_test_admit("guard", R"({"object":{"a":1}})"),
                      R"({"allowed":true,"patch":[{"op":"add","path":"/seen","value":{"by":"guard"}}],"warnings":["careful"]})");
    VMHOST_TEST_EQUAL(vmhost_test_convert("vm", R"({"desiredAPIVersion":"g/v2","objects":[{"apiVersion":"g/v1"},{"apiVersion":"g/v2"}]})"),
                      R"({"convertedObjects":[{"apiVersion":"g/v2","version":"v2"},{"apiVersion":"g/v2"}]})");
    vmhost_test_object(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"default"}})");
    vmhost_test_object(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"default"}})");
    vmhost_test_setting("colour", "red");
    vmhost_test_response("POST", "https://a.com/x", 201, R"({"id":7})");
    vmhost_request request = {};
    request.controller = "all";
    request.key = {config_map, "default", "a"};
    request.object = {R"({"spec":{"s":"x","null":null,"n":9007199254740993,"huge":12345678901234567890123,"yes":true,"list":[1,[2]],"map":{"a":"b","c":{}}}})"};
    const char *outcome = vmhost_test_reconcile(request);
    VMHOST_TEST_EQUAL(vmhost_test_text(outcome, "/effects/1/delete/key/name"), "a");
    VMHOST_TEST_EQUAL(vmhost_test_text(outcome, "/effects/2/other/body"), R"({"cluster":"east","effect":{"create":{"object":{}}}})");
    VMHOST_TEST_EQUAL(vmhost_test_text(outcome, "/next/retry"), "100% later");
    VMHOST_TEST_EQUAL(vmhost_test_lines(), "http: POST https://a.com/x {}\nhttp: GET https://a.com/y\n");
    return vmhost_test_end();
}
