/* effects.c: converts the outcome of a turn to the records of the contract. */
#include "internal.h"

static void next(vmhost_outcome *outcome, uint8_t tag) { outcome->next = (vmhost_plugin_types_next_t){.tag = tag}; }

void vmhost_await_change(vmhost_outcome *outcome) { next(outcome, VMHOST_PLUGIN_TYPES_NEXT_AWAIT_CHANGE); }

void vmhost_requeue(vmhost_outcome *outcome) { next(outcome, VMHOST_PLUGIN_TYPES_NEXT_REQUEUE); }

void vmhost_finalized(vmhost_outcome *outcome) { next(outcome, VMHOST_PLUGIN_TYPES_NEXT_FINALIZED); }

void vmhost_requeue_after_ms(vmhost_outcome *outcome, uint32_t ms) {
    next(outcome, VMHOST_PLUGIN_TYPES_NEXT_REQUEUE_AFTER_MS);
    outcome->next.val.requeue_after_ms = ms;
}

void vmhost_retry(vmhost_outcome *outcome, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    next(outcome, VMHOST_PLUGIN_TYPES_NEXT_RETRY);
    outcome->next.val.retry = out(vformat(format, arguments));
    va_end(arguments);
}

void vmhost_fail(vmhost_outcome *outcome, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    next(outcome, VMHOST_PLUGIN_TYPES_NEXT_FAIL);
    outcome->next.val.fail = out(vformat(format, arguments));
    va_end(arguments);
}

static void add(vmhost_outcome *outcome, vmhost_plugin_types_effect_t effect) {
    outcome->effects = list_room(outcome->effects, outcome->count, sizeof effect);
    outcome->effects[outcome->count++] = effect;
}

/* Checks a required value; an effect without it is the turn's error. */
static bool given(const char *effect, const char *field, const char *value) {
    if (!value) vmhost_set_error("the effect %s needs .%s", effect, field);
    return value != NULL;
}

static bool keyed(const char *effect, vmhost_key key) { return given(effect, "key.name", key.name) && given(effect, "key.kind", key.kind.kind); }

/* Adds a member with a JSON text to an object that is being written; none without a text. */
static void member(text *to, const char *name, const char *value) {
    if (!value) return;
    text_puts(to, to->length ? "," : "{");
    quote(to, name);
    text_puts(to, ":");
    text_puts(to, value);
}

static const char *quoted(const char *from) { return from ? vmhost_quote(from) : NULL; }

static const char *truth(bool value) { return value ? "true" : "false"; }

static const char *closed(text *object) {
    text_puts(object, "}");
    return text_end(object);
}

static const char *key_form(vmhost_key key) {
    const char *group = key.kind.group, *version = key.kind.version ? key.kind.version : "";
    text form = {0};
    member(&form, "apiVersion", vmhost_quote(group && *group ? vmhost_format("%s/%s", group, version) : version));
    member(&form, "kind", vmhost_quote(key.kind.kind));
    member(&form, "namespace", quoted(key.ns));
    member(&form, "name", vmhost_quote(key.name));
    return closed(&form);
}

/* Adds an effect with these members in the cluster of this name; the empty name is the host's own
 * cluster. */
static void add_there(vmhost_outcome *outcome, const char *cluster, const char *verb, text *members) {
    text effect = {0}, body = {0};
    member(&effect, verb, closed(members));
    member(&body, "cluster", *cluster ? vmhost_quote(cluster) : "null");
    member(&body, "effect", closed(&effect));
    vmhost_add_other(outcome, (struct vmhost_other){"in-cluster", closed(&body)});
}

void vmhost_add_apply(vmhost_outcome *outcome, struct vmhost_apply apply) {
    if (!given("apply", "object", apply.object)) return;
    bool creates = !apply.existing && !apply.subresource;
    if (apply.cluster) {
        text members = {0};
        member(&members, "object", apply.object);
        member(&members, "subresource", quoted(apply.subresource));
        member(&members, "force", truth(!apply.polite));
        member(&members, "createIfAbsent", truth(creates));
        member(&members, "ifVersion", quoted(apply.if_version));
        add_there(outcome, apply.cluster, "apply", &members);
        return;
    }
    vmhost_plugin_types_apply_t record = {
        .object = out(apply.object),
        .subresource = out_option(apply.subresource),
        .force = !apply.polite,
        .create_if_absent = creates,
        .if_version = out_option(apply.if_version),
    };
    add(outcome, (vmhost_plugin_types_effect_t){.tag = VMHOST_PLUGIN_TYPES_EFFECT_APPLY, .val.apply = record});
}

void vmhost_add_patch(vmhost_outcome *outcome, struct vmhost_patch patch) {
    if (!keyed("patch", patch.key)) return;
    if (!patch.merge == !patch.json) {
        vmhost_set_error("the effect patch needs either .merge or .json");
        return;
    }
    if (patch.cluster) {
        text members = {0};
        member(&members, "key", key_form(patch.key));
        member(&members, "subresource", quoted(patch.subresource));
        member(&members, "type", patch.json ? "\"json\"" : "\"merge\"");
        member(&members, "body", patch.json ? patch.json : patch.merge);
        member(&members, "ifVersion", quoted(patch.if_version));
        add_there(outcome, patch.cluster, "patch", &members);
        return;
    }
    vmhost_plugin_types_patch_t record = {
        .key = out_key(patch.key),
        .subresource = out_option(patch.subresource),
        .type = patch.json ? VMHOST_PLUGIN_TYPES_PATCH_TYPE_JSON : VMHOST_PLUGIN_TYPES_PATCH_TYPE_MERGE,
        .body = out(patch.json ? patch.json : patch.merge),
        .if_version = out_option(patch.if_version),
    };
    add(outcome, (vmhost_plugin_types_effect_t){.tag = VMHOST_PLUGIN_TYPES_EFFECT_PATCH, .val.patch = record});
}

void vmhost_add_create(vmhost_outcome *outcome, struct vmhost_create create) {
    if (!given("create", "object", create.object)) return;
    if (create.cluster) {
        text members = {0};
        member(&members, "object", create.object);
        add_there(outcome, create.cluster, "create", &members);
        return;
    }
    vmhost_plugin_types_create_t record = {out(create.object)};
    add(outcome, (vmhost_plugin_types_effect_t){.tag = VMHOST_PLUGIN_TYPES_EFFECT_CREATE, .val.create = record});
}

void vmhost_add_delete(vmhost_outcome *outcome, struct vmhost_delete delete_) {
    if (!keyed("delete", delete_.key)) return;
    if (delete_.cluster) {
        static const char *const propagations[] = {NULL, "\"background\"", "\"foreground\"", "\"orphan\""};
        text members = {0};
        member(&members, "key", key_form(delete_.key));
        member(&members, "uid", quoted(delete_.uid));
        member(&members, "ifVersion", quoted(delete_.if_version));
        member(&members, "propagation", propagations[delete_.propagation]);
        add_there(outcome, delete_.cluster, "delete", &members);
        return;
    }
    vmhost_plugin_types_delete_t record = {.key = out_key(delete_.key), .uid = out_option(delete_.uid), .if_version = out_option(delete_.if_version)};
    if (delete_.propagation) {
        record.propagation.is_some = true;
        record.propagation.val = (vmhost_plugin_types_propagation_t)(delete_.propagation - VMHOST_BACKGROUND);
    }
    add(outcome, (vmhost_plugin_types_effect_t){.tag = VMHOST_PLUGIN_TYPES_EFFECT_DELETE, .val.delete_ = record});
}

void vmhost_add_event(vmhost_outcome *outcome, struct vmhost_event event) {
    if (!given("event", "reason", event.reason)) return;
    vmhost_plugin_types_event_t record = {
        .type = event.warning ? VMHOST_PLUGIN_TYPES_EVENT_TYPE_WARNING : VMHOST_PLUGIN_TYPES_EVENT_TYPE_NORMAL,
        .reason = out(event.reason),
        .action = out(event.action),
        .note = out(event.note),
    };
    if (event.related.name) {
        record.related.is_some = true;
        record.related.val = out_key(event.related);
    }
    add(outcome, (vmhost_plugin_types_effect_t){.tag = VMHOST_PLUGIN_TYPES_EFFECT_EVENT, .val.event = record});
}

void vmhost_add_other(vmhost_outcome *outcome, struct vmhost_other other) {
    if (!given("other", "name", other.name)) return;
    vmhost_plugin_types_other_t record = {out(other.name), out(other.body)};
    add(outcome, (vmhost_plugin_types_effect_t){.tag = VMHOST_PLUGIN_TYPES_EFFECT_OTHER, .val.other = record});
}

void vmhost_wake(vmhost_names *names, const char *ns, const char *name) {
    names->items = list_room(names->items, names->count, sizeof *names->items);
    names->items[names->count++] = (vmhost_plugin_types_object_name_t){out_option(ns), out(name)};
}
