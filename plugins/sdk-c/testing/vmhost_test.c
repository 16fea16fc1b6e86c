/* vmhost_test.c: the host's side of the contract, in memory: implements what the generated bindings
 * import, and calls what they export. */
#include "vmhost_test.h"

#include "../internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *cabi_realloc(void *before, size_t old_size, size_t align, size_t new_size);
void __wasm_export_exports_vmhost_plugin_controller_reconcile_post_return(uint8_t *result);

/* ---- what is kept between calls ---- */

typedef struct {
    char **items;
    size_t count;
} texts;

static texts kept, objects, names, values, lines;
/* Of the answers to HTTP requests, those of one answer at the same place. */
static texts requests, bodies;
static int statuses[64];
static vmhost_read_error refusal;
static int checks, failures;

static char *keep(texts *in_list, const char *from) {
    char *held = malloc(strlen(from) + 1);
    in_list->items = realloc(in_list->items, (in_list->count + 1) * sizeof(char *));
    if (!held || !in_list->items) abort();
    return in_list->items[in_list->count++] = strcpy(held, from);
}

static void forget(texts *list) {
    while (list->count) free(list->items[--list->count]);
    free(list->items);
    list->items = NULL;
}

void vmhost_test_object(const char *json) { keep(&objects, json); }

void vmhost_test_setting(const char *name, const char *value) {
    keep(&names, name);
    keep(&values, value);
}

void vmhost_test_response(const char *method, const char *url, int status, const char *body) {
    if (requests.count == sizeof statuses / sizeof *statuses) abort();
    statuses[requests.count] = status;
    keep(&requests, vmhost_format("%s %s", method, url));
    keep(&bodies, body);
}

void vmhost_test_refuse_reads(vmhost_read_error error) { refusal = error; }

/* Ends the call and frees its memory, except for this text. */
static const char *end_call(const char *result) {
    const char *held = keep(&kept, result);
    __wasm_export_exports_vmhost_plugin_controller_reconcile_post_return(NULL);
    return held;
}

const char *vmhost_test_lines(void) {
    const char *all = "";
    for (size_t i = 0; i < lines.count; i++) all = vmhost_format("%s%s\n", all, lines.items[i]);
    forget(&lines);
    return end_call(all);
}

const char *vmhost_test_text(const char *json, const char *pointer) {
    const char *found = vmhost_string((vmhost_value){json}, pointer);
    return end_call(found ? found : "");
}

void vmhost_test_equal(const char *file, int line, const char *have, const char *want) {
    checks++;
    if (have && want && !strcmp(have, want)) return;
    failures++;
    fprintf(stderr, "%s:%d:\n  have %s\n  want %s\n", file, line, have ? have : "NULL", want ? want : "NULL");
}

void vmhost_test_reset(void) {
    forget(&objects);
    forget(&names);
    forget(&values);
    forget(&lines);
    forget(&requests);
    forget(&bodies);
    refusal = (vmhost_read_error){0};
}

int vmhost_test_end(void) {
    vmhost_test_reset();
    end_call("");
    forget(&kept);
    printf("%d checks, %d failed\n", checks, failures);
    return failures != 0;
}

/* ---- what a policy imports ---- */

/* Passes a string as the host does, in the guest's memory. */
static plugin_string_t given(const char *from) {
    size_t length = strlen(from);
    uint8_t *start = cabi_realloc(NULL, 0, 1, length);
    memcpy(start, from, length);
    return (plugin_string_t){start, length};
}

static plugin_option_string_t given_option(const char *from) {
    plugin_option_string_t none = {.is_some = false};
    return from ? (plugin_option_string_t){.is_some = true, .val = given(from)} : none;
}

static const char *held(plugin_string_t from) { return copy((const char *)from.ptr, from.len); }

void http_send(const uint8_t *method, size_t method_length, const uint8_t *url, size_t url_length, const http_header *headers, size_t header_count,
               const uint8_t *body, size_t body_length, int32_t has_timeout, uint32_t timeout, http_result *result) {
    (void)headers, (void)header_count, (void)has_timeout, (void)timeout;
    const char *request = vmhost_format("%s %s", copy((const char *)method, method_length), copy((const char *)url, url_length));
    const char *sent = copy((const char *)body, body_length);
    keep(&lines, *sent ? vmhost_format("http: %s %s", request, sent) : vmhost_format("http: %s", request));
    *result = (http_result){.is_err = true};
    result->val.err.tag = 2;
    result->val.err.val.text = given(vmhost_format("the test gives no answer to %s", request));
    for (size_t i = requests.count; i-- > 0;) {
        if (strcmp(requests.items[i], request)) continue;
        *result = (http_result){.is_err = false};
        result->val.ok.status = (uint16_t)statuses[i];
        result->val.ok.body = given(bodies.items[i]);
        return;
    }
}

void vmhost_plugin_log_log(vmhost_plugin_log_level_t level, plugin_string_t *message) {
    static const char *const levels[] = {"trace", "debug", "info", "warn", "error"};
    keep(&lines, vmhost_format("%s: %s", levels[level], held(*message)));
}

bool vmhost_plugin_config_get(plugin_string_t *name, plugin_string_t *result) {
    for (size_t i = 0; i < names.count; i++) {
        if (strcmp(names.items[i], held(*name))) continue;
        *result = given(values.items[i]);
        return true;
    }
    return false;
}

static bool refused(vmhost_plugin_cluster_read_error_t *error) {
    if (!refusal.code) return false;
    *error = (vmhost_plugin_cluster_read_error_t){.tag = (uint8_t)(refusal.code - VMHOST_NOT_WATCHED)};
    if (refusal.code == VMHOST_TOO_LARGE) error->val.too_large = refusal.limit;
    else error->val.invalid = given(refusal.text ? refusal.text : "");
    return true;
}

static bool has(vmhost_value object, const char *pointer, const char *wanted) {
    const char *have = vmhost_string(object, pointer);
    return wanted ? have && !strcmp(have, wanted) : !have;
}

static bool is_of(vmhost_value object, const vmhost_plugin_types_gvk_t *kind) {
    const char *version = held(kind->version);
    if (kind->group.len) version = vmhost_format("%s/%s", held(kind->group), version);
    return has(object, "/apiVersion", version) && has(object, "/kind", held(kind->kind));
}

bool vmhost_plugin_cluster_get(vmhost_plugin_cluster_object_key_t *key, vmhost_plugin_cluster_option_json_t *result,
                               vmhost_plugin_cluster_read_error_t *error) {
    if (refused(error)) return false;
    result->is_some = false;
    for (size_t i = 0; i < objects.count && !result->is_some; i++) {
        vmhost_value object = {objects.items[i]};
        const char *ns = key->namespace_.is_some ? held(key->namespace_.val) : NULL;
        if (!is_of(object, &key->kind) || !has(object, "/metadata/name", held(key->name)) || !has(object, "/metadata/namespace", ns)) continue;
        result->is_some = true;
        result->val = given(objects.items[i]);
    }
    return true;
}

bool vmhost_plugin_cluster_get_live(vmhost_plugin_cluster_object_key_t *key, vmhost_plugin_cluster_option_json_t *result,
                                    vmhost_plugin_cluster_read_error_t *error) {
    return vmhost_plugin_cluster_get(key, result, error);
}

bool vmhost_plugin_cluster_get_many(vmhost_plugin_cluster_list_object_key_t *keys, vmhost_plugin_cluster_list_option_json_t *result,
                                    vmhost_plugin_cluster_read_error_t *error) {
    if (refused(error)) return false;
    result->len = keys->len;
    result->ptr = cabi_realloc(NULL, 0, sizeof(void *), keys->len * sizeof *result->ptr);
    for (size_t i = 0; i < keys->len; i++) vmhost_plugin_cluster_get(&keys->ptr[i], &result->ptr[i], error);
    return true;
}

static bool is_owned(vmhost_value object, const char *uid) {
    for (vmhost_iterator i = vmhost_each(vmhost_at(object, "/metadata/ownerReferences")); vmhost_next(&i);)
        if (has(i.value, "/uid", uid)) return true;
    return false;
}

/* Supports `a=b,c=d,e`, which is enough for tests. */
static bool is_labelled(vmhost_value object, const char *selector) {
    vmhost_value labels = vmhost_at(object, "/metadata/labels");
    while (*selector) {
        size_t term = strcspn(selector, ","), name = strcspn(selector, ",=");
        bool found = false;
        for (vmhost_iterator i = vmhost_each(labels); vmhost_next(&i);)
            found |= !strcmp(i.name, copy(selector, name)) && (name == term || has(i.value, "", copy(selector + name + 1, term - name - 1)));
        if (!found) return false;
        selector += term + (selector[term] == ',');
    }
    return true;
}

static const char *metadata_of(vmhost_value object) {
    const char *parts[] = {"apiVersion", vmhost_raw(vmhost_at(object, "/apiVersion")), "kind", vmhost_raw(vmhost_at(object, "/kind")),
                           "metadata",   vmhost_raw(vmhost_at(object, "/metadata"))};
    return vmhost_object_of(parts, 6);
}

bool vmhost_plugin_cluster_list(vmhost_plugin_cluster_query_t *query, vmhost_plugin_cluster_page_t *result, vmhost_plugin_cluster_read_error_t *error) {
    if (refused(error)) return false;
    const char *selector = query->label_selector.is_some ? held(query->label_selector.val) : "";
    if (query->index.is_some || strpbrk(selector, "!(")) {
        *error = (vmhost_plugin_cluster_read_error_t){.tag = VMHOST_PLUGIN_CLUSTER_READ_ERROR_INVALID};
        error->val.invalid = given("the test host has no indexes, and knows the label selectors a=b and a only");
        return false;
    }
    size_t skip = query->continue_.is_some ? strtoul(held(query->continue_.val), NULL, 10) : 0, seen = 0, limit = query->limit ? query->limit : 500;
    *result = (vmhost_plugin_cluster_page_t){.objects.ptr = cabi_realloc(NULL, 0, sizeof(void *), objects.count * sizeof *result->objects.ptr)};
    for (size_t i = 0; i < objects.count; i++) {
        vmhost_value object = {objects.items[i]};
        if (!is_of(object, &query->kind) || !is_labelled(object, selector)) continue;
        if (query->namespace_.is_some && !has(object, "/metadata/namespace", held(query->namespace_.val))) continue;
        if (query->owner.is_some && !is_owned(object, held(query->owner.val))) continue;
        if (seen++ < skip) continue;
        if (result->objects.len == limit) {
            result->continue_ = given_option(vmhost_format("%zu", skip + limit));
            break;
        }
        result->objects.ptr[result->objects.len++] = given(query->metadata_only ? metadata_of(object) : objects.items[i]);
    }
    return true;
}

bool vmhost_plugin_cluster_list_live(vmhost_plugin_cluster_query_t *query, vmhost_plugin_cluster_page_t *result, vmhost_plugin_cluster_read_error_t *error) {
    return vmhost_plugin_cluster_list(query, result, error);
}

/* ---- calls of what a policy exports ---- */

/* Adds a member, unless it is NULL. */
static void member(text *to, const char *name, const char *json) {
    if (!json) return;
    if (to->length && to->start[to->length - 1] != '{') text_puts(to, ",");
    quote(to, name);
    text_puts(to, ":");
    text_puts(to, json);
}

static const char *string(plugin_string_t from) { return vmhost_quote(held(from)); }

static const char *option(plugin_option_string_t from) { return from.is_some ? string(from.val) : NULL; }

static const char *boolean(bool value) { return value ? "true" : "false"; }

static const char *one(const char *name, const char *json) {
    const char *parts[] = {name, json};
    return vmhost_object_of(parts, 2);
}

static const char *key_text(const vmhost_plugin_types_object_key_t *key) {
    text result = {0};
    const char *kind[] = {"group", string(key->kind.group), "version", string(key->kind.version), "kind", string(key->kind.kind)};
    text_puts(&result, "{");
    member(&result, "kind", vmhost_object_of(kind, 6));
    member(&result, "namespace", option(key->namespace_));
    member(&result, "name", string(key->name));
    text_puts(&result, "}");
    return text_end(&result);
}

static const char *effect_text(const vmhost_plugin_types_effect_t *effect) {
    static const char *const effects[] = {"apply", "patch", "create", "delete", "event", "other"};
    static const char *const propagations[] = {"\"background\"", "\"foreground\"", "\"orphan\""};
    text result = {0}, *to = &result;
    text_puts(to, "{");
    switch (effect->tag) {
    case VMHOST_PLUGIN_TYPES_EFFECT_APPLY:
        member(to, "object", string(effect->val.apply.object));
        member(to, "subresource", option(effect->val.apply.subresource));
        member(to, "force", boolean(effect->val.apply.force));
        member(to, "create-if-absent", boolean(effect->val.apply.create_if_absent));
        member(to, "if-version", option(effect->val.apply.if_version));
        break;
    case VMHOST_PLUGIN_TYPES_EFFECT_PATCH:
        member(to, "key", key_text(&effect->val.patch.key));
        member(to, "subresource", option(effect->val.patch.subresource));
        member(to, "type", effect->val.patch.type == VMHOST_PLUGIN_TYPES_PATCH_TYPE_JSON ? "\"json\"" : "\"merge\"");
        member(to, "body", string(effect->val.patch.body));
        member(to, "if-version", option(effect->val.patch.if_version));
        break;
    case VMHOST_PLUGIN_TYPES_EFFECT_CREATE: member(to, "object", string(effect->val.create.object)); break;
    case VMHOST_PLUGIN_TYPES_EFFECT_DELETE:
        member(to, "key", key_text(&effect->val.delete_.key));
        member(to, "uid", option(effect->val.delete_.uid));
        member(to, "if-version", option(effect->val.delete_.if_version));
        member(to, "propagation", effect->val.delete_.propagation.is_some ? propagations[effect->val.delete_.propagation.val] : NULL);
        break;
    case VMHOST_PLUGIN_TYPES_EFFECT_EVENT:
        member(to, "type", effect->val.event.type == VMHOST_PLUGIN_TYPES_EVENT_TYPE_WARNING ? "\"warning\"" : "\"normal\"");
        member(to, "reason", string(effect->val.event.reason));
        member(to, "action", string(effect->val.event.action));
        member(to, "note", string(effect->val.event.note));
        member(to, "related", effect->val.event.related.is_some ? key_text(&effect->val.event.related.val) : NULL);
        break;
    default: member(to, "name", string(effect->val.other.name)); member(to, "body", string(effect->val.other.body));
    }
    text_puts(to, "}");
    return one(effects[effect->tag], text_end(to));
}

static const char *next_text(const vmhost_plugin_types_next_t *next) {
    switch (next->tag) {
    case VMHOST_PLUGIN_TYPES_NEXT_AWAIT_CHANGE: return "\"await-change\"";
    case VMHOST_PLUGIN_TYPES_NEXT_REQUEUE_AFTER_MS: return one("requeue-after-ms", vmhost_format("%u", (unsigned)next->val.requeue_after_ms));
    case VMHOST_PLUGIN_TYPES_NEXT_REQUEUE: return "\"requeue\"";
    case VMHOST_PLUGIN_TYPES_NEXT_RETRY: return one("retry", string(next->val.retry));
    case VMHOST_PLUGIN_TYPES_NEXT_FAIL: return one("fail", string(next->val.fail));
    default: return "\"finalized\"";
    }
}

const char *vmhost_test_describe(void) {
    exports_vmhost_plugin_controller_json_t result;
    plugin_string_t failure;
    return end_call(exports_vmhost_plugin_controller_describe(&result, &failure) ? held(result) : one("error", string(failure)));
}

const char *vmhost_test_reconcile(vmhost_request request) {
    const vmhost_key *key = &request.key;
    exports_vmhost_plugin_controller_request_t from = {
        .controller = given(request.controller ? request.controller : ""),
        .key = {{given(key->kind.group ? key->kind.group : ""), given(key->kind.version ? key->kind.version : ""), given(key->kind.kind ? key->kind.kind : "")},
                given_option(key->ns),
                given(key->name ? key->name : "")},
        .deleting = request.deleting,
        .attempt = request.attempt,
    };
    plugin_option_string_t object = given_option(request.object.text), previous = given_option(request.previous.text);
    from.object = (vmhost_plugin_types_option_json_t){object.is_some, object.val};
    from.previous = (vmhost_plugin_types_option_json_t){previous.is_some, previous.val};
    if (request.last) {
        from.last.is_some = true;
        from.last.val = (vmhost_plugin_types_refusal_t){request.last->effect, request.last->code, given(request.last->reason), given(request.last->message)};
    }
    exports_vmhost_plugin_controller_outcome_t outcome;
    exports_vmhost_plugin_controller_reconcile(&from, &outcome);
    text effects = {0};
    for (size_t i = 0; i < outcome.effects.len; i++) {
        text_puts(&effects, i ? "," : "[");
        text_puts(&effects, effect_text(&outcome.effects.ptr[i]));
    }
    text_puts(&effects, outcome.effects.len ? "]" : "[]");
    const char *parts[] = {"effects", text_end(&effects), "next", next_text(&outcome.next)};
    return end_call(vmhost_object_of(parts, 4));
}

/* Returns the body of the effect `kind` in lower case; without it, the outcome. */
static const char *answered(const char *controller, const char *kind, const char *name, const char *object) {
    const char *outcome = vmhost_test_reconcile((vmhost_request){controller, {{"vmhost", "v1", kind}, NULL, "u-1"}, .object = {object}});
    const char *body = vmhost_test_text(outcome, "/effects/0/other/body");
    return strcmp(vmhost_test_text(outcome, "/effects/0/other/name"), name) ? outcome : body;
}

const char *vmhost_test_admit(const char *webhook, const char *request) { return answered(webhook, "Admission", "admission", request); }

const char *vmhost_test_convert(const char *conversion, const char *batch) { return answered(conversion, "Conversion", "conversion", batch); }

const char *vmhost_test_map_changes(vmhost_map_request request) {
    exports_vmhost_plugin_controller_map_request_t from = {.controller = given(request.controller)};
    from.changes.len = request.count;
    from.changes.ptr = cabi_realloc(NULL, 0, sizeof(void *), request.count * sizeof *from.changes.ptr);
    for (size_t i = 0; i < request.count; i++) {
        plugin_option_string_t before = given_option(request.changes[i].before.text), now = given_option(request.changes[i].now.text);
        from.changes.ptr[i].old = (vmhost_plugin_types_option_json_t){before.is_some, before.val};
        from.changes.ptr[i].new_ = (vmhost_plugin_types_option_json_t){now.is_some, now.val};
    }
    exports_vmhost_plugin_controller_list_object_name_t found;
    plugin_string_t error;
    if (!exports_vmhost_plugin_controller_map_changes(&from, &found, &error)) return end_call(one("error", string(error)));
    const char **all = vmhost_alloc(found.len * sizeof *all);
    for (size_t i = 0; i < found.len; i++) {
        text name = {0};
        text_puts(&name, "{");
        member(&name, "namespace", option(found.ptr[i].namespace_));
        member(&name, "name", string(found.ptr[i].name));
        text_puts(&name, "}");
        all[i] = text_end(&name);
    }
    return end_call(vmhost_array_of(all, found.len));
}
