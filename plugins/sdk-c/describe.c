/* describe.c: writes the description as the JSON of wit/v1/description.schema.json. Omits the
 * fields that the structures leave at zero. */
#include "internal.h"

#include <string.h>

static bool given(const char *value) { return value && *value; }

/* Begins a member (or, without a name, an element), with a comma if needed. */
static void begin(text *to, const char *name) {
    char last = to->length ? to->start[to->length - 1] : '{';
    if (last != '{' && last != '[') text_puts(to, ",");
    if (!name) return;
    quote(to, name);
    text_puts(to, ":");
}

static void open(text *to, const char *name, const char *bracket) {
    begin(to, name);
    text_puts(to, bracket);
}

static void string(text *to, const char *name, const char *value) {
    if (!value) return;
    begin(to, name);
    quote(to, value);
}

static void number(text *to, const char *name, uint32_t value) {
    if (!value) return;
    begin(to, name);
    text_puts(to, vmhost_format("%u", (unsigned)value));
}

static void flag(text *to, const char *name, bool value) {
    if (!value) return;
    begin(to, name);
    text_puts(to, "true");
}

static void strings(text *to, const char *name, const char *const *values) {
    if (!values) return;
    open(to, name, "[");
    for (; *values; values++) string(to, NULL, *values);
    text_puts(to, "]");
}

/* Writes the names of the set bits. */
static void bits(text *to, const char *name, unsigned set, const char *const *names) {
    open(to, name, "[");
    for (; *names; names++, set >>= 1)
        if (set & 1) string(to, NULL, *names);
    text_puts(to, "]");
}

static void kind(text *to, const vmhost_kind *value) {
    if (given(value->group)) string(to, "group", value->group);
    string(to, "version", value->version);
    string(to, "kind", value->kind);
}

static void predicates(text *to, const vmhost_predicates *value) {
    static const char *const changes[] = {"generation", "labels", "annotations", "resourceVersion", NULL};
    if (!value->changed && !value->label_selector && !value->field_selector && !value->cel) return;
    open(to, "predicates", "{");
    if (value->changed) bits(to, "changed", value->changed, changes);
    string(to, "labelSelector", value->label_selector);
    string(to, "fieldSelector", value->field_selector);
    string(to, "cel", value->cel);
    text_puts(to, "}");
}

static void map(text *to, const vmhost_map *value) {
    static const char *const names[] = {NULL, "name", "owner", "controller", "guest", "label", "field", "index"};
    if (value->type < VMHOST_MAP_LABEL) {
        string(to, "map", names[value->type]);
        return;
    }
    open(to, "map", "{");
    string(to, names[value->type], value->value ? value->value : "");
    text_puts(to, "}");
}

static void watch(text *to, const char *name, const vmhost_watch *value) {
    open(to, name, "{");
    kind(to, value->kind);
    string(to, "labelSelector", value->label_selector);
    string(to, "fieldSelector", value->field_selector);
    strings(to, "wantedFields", value->wanted_fields);
    flag(to, "metadataOnly", value->metadata_only);
    if (value->indexes) {
        open(to, "indexes", "{");
        for (const vmhost_index *index = value->indexes; index->name; index++) string(to, index->name, index->path);
        text_puts(to, "}");
    }
    predicates(to, &value->predicates);
    map(to, &value->map);
    flag(to, "live", value->live);
    text_puts(to, "}");
}

static void watches(text *to, const char *name, const vmhost_watch *values) {
    if (!values) return;
    open(to, name, "[");
    for (; values->kind; values++) watch(to, NULL, values);
    text_puts(to, "]");
}

static void retry(text *to, const vmhost_back_off *value) {
    bool bucket = value->per_second || value->burst;
    if (!value->base_ms && !value->cap_ms && !value->max_retries.limited && !bucket) return;
    open(to, "retry", "{");
    number(to, "baseMs", value->base_ms);
    number(to, "capMs", value->cap_ms);
    if (value->max_retries.limited) {
        begin(to, "maxRetries");
        text_puts(to, vmhost_format("%u", (unsigned)value->max_retries.most));
    }
    if (bucket) {
        open(to, "bucket", "{");
        number(to, "perSecond", value->per_second);
        number(to, "burst", value->burst);
        text_puts(to, "}");
    }
    text_puts(to, "}");
}

static void controller(text *to, const vmhost_controller *value) {
    open(to, NULL, "{");
    string(to, "name", value->name);
    if (value->primary.kind) watch(to, "primary", &value->primary);
    if (value->every_ms || value->once) {
        open(to, "timer", "{");
        number(to, "everyMs", value->every_ms);
        flag(to, "once", value->once);
        text_puts(to, "}");
    }
    watches(to, "owns", value->owns);
    watches(to, "watches", value->watches);
    watches(to, "reads", value->reads);
    string(to, "finalizer", value->finalizer);
    flag(to, "previous", value->previous);
    string(to, "eventSource", value->event_source);
    number(to, "concurrency", value->concurrency);
    retry(to, &value->retry);
    string(to, "clusters", value->clusters);
    text_puts(to, "}");
}

static void permission(text *to, const vmhost_permission *value) {
    static const char *const verbs[] = {"create", "patch", "delete", NULL};
    open(to, NULL, "{");
    kind(to, value->kind);
    bits(to, "verbs", value->verbs, verbs);
    strings(to, "subresources", value->subresources);
    strings(to, "namespaces", value->namespaces);
    flag(to, "optional", value->optional);
    text_puts(to, "}");
}

static void raw(text *to, const char *name, const char *json) {
    if (!json) return;
    begin(to, name);
    text_puts(to, json);
}

static void rule(text *to, const vmhost_rule *value) {
    static const char *const operations[] = {"CREATE", "UPDATE", "DELETE", "CONNECT", "*", NULL};
    open(to, NULL, "{");
    strings(to, "apiGroups", value->api_groups);
    strings(to, "apiVersions", value->api_versions);
    strings(to, "resources", value->resources);
    bits(to, "operations", value->operations ? value->operations : VMHOST_ON_CREATE | VMHOST_ON_UPDATE, operations);
    string(to, "scope", value->scope);
    text_puts(to, "}");
}

static void webhook(text *to, const vmhost_webhook *value) {
    open(to, NULL, "{");
    string(to, "name", value->name);
    string(to, "type", value->mutating ? "mutating" : "validating");
    open(to, "rules", "[");
    for (const vmhost_rule *each = value->rules; each && each->resources; each++) rule(to, each);
    text_puts(to, "]");
    raw(to, "namespaceSelector", value->namespace_selector);
    raw(to, "objectSelector", value->object_selector);
    if (value->match_conditions) {
        open(to, "matchConditions", "[");
        for (const vmhost_match_condition *each = value->match_conditions; each->name; each++) {
            open(to, NULL, "{");
            string(to, "name", each->name);
            string(to, "expression", each->expression);
            text_puts(to, "}");
        }
        text_puts(to, "]");
    }
    string(to, "failurePolicy", value->failure_policy);
    string(to, "sideEffects", value->side_effects);
    number(to, "timeoutSeconds", value->timeout_seconds);
    string(to, "reinvocationPolicy", value->reinvocation_policy);
    string(to, "matchPolicy", value->match_policy);
    watches(to, "reads", value->reads);
    text_puts(to, "}");
}

static void conversion(text *to, const vmhost_conversion *value) {
    open(to, NULL, "{");
    string(to, "name", value->name);
    string(to, "group", value->group);
    string(to, "kind", value->kind);
    string(to, "resource", value->resource);
    strings(to, "versions", value->versions);
    watches(to, "reads", value->reads);
    text_puts(to, "}");
}

static void webhooks(text *to, const vmhost_description *value) {
    if (value->webhooks) {
        open(to, "webhooks", "[");
        for (const vmhost_webhook *each = value->webhooks; each->name; each++) webhook(to, each);
        text_puts(to, "]");
    }
    if (value->conversions) {
        open(to, "conversions", "[");
        for (const vmhost_conversion *each = value->conversions; each->name; each++) conversion(to, each);
        text_puts(to, "]");
    }
}

static void header(text *to, const vmhost_header_from *value) {
    open(to, NULL, "{");
    string(to, "name", value->name);
    string(to, "prefix", value->prefix);
    if (value->secret_name) {
        open(to, "secret", "{");
        string(to, "namespace", value->secret_ns);
        string(to, "name", value->secret_name);
        string(to, "key", value->secret_key);
        text_puts(to, "}");
    }
    string(to, "setting", value->setting);
    text_puts(to, "}");
}

static void http(text *to, const vmhost_http_grant *value) {
    open(to, NULL, "{");
    string(to, "host", value->host);
    number(to, "port", value->port);
    string(to, "scheme", value->scheme);
    strings(to, "methods", value->methods);
    string(to, "pathPrefix", value->path_prefix);
    if (value->headers) {
        open(to, "headers", "[");
        for (const vmhost_header_from *each = value->headers; each->name; each++) header(to, each);
        text_puts(to, "]");
    }
    string(to, "urlSetting", value->url_setting);
    flag(to, "allowPrivate", value->allow_private);
    text_puts(to, "}");
}

const char *describe(const vmhost_description *value) {
    text result = {0}, *to = &result;
    text_puts(to, "{");
    string(to, "apiVersion", "vmhost/v1");
    string(to, "name", value->name);
    string(to, "version", value->version);
    open(to, "controllers", "[");
    for (const vmhost_controller *each = value->controllers; each && each->name; each++) controller(to, each);
    text_puts(to, "]");
    webhooks(to, value);
    open(to, "permissions", "[");
    for (const vmhost_permission *each = value->permissions; each && each->kind; each++) permission(to, each);
    text_puts(to, "]");
    if (value->http) {
        open(to, "http", "[");
        for (const vmhost_http_grant *each = value->http; each->host; each++) http(to, each);
        text_puts(to, "]");
    }
    if (value->custom_resource_definitions) {
        open(to, "setup", "{");
        open(to, "customResourceDefinitions", "[");
        for (const char *const *each = value->custom_resource_definitions; *each; each++) {
            begin(to, NULL);
            text_puts(to, *each);
        }
        text_puts(to, "]}");
    }
    raw(to, "settingsSchema", value->settings_schema);
    text_puts(to, "}");
    return text_end(to);
}
