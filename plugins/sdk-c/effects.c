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

void vmhost_add_apply(vmhost_outcome *outcome, struct vmhost_apply apply) {
    if (!given("apply", "object", apply.object)) return;
    vmhost_plugin_types_apply_t record = {
        .object = out(apply.object),
        .subresource = out_option(apply.subresource),
        .force = !apply.polite,
        .create_if_absent = !apply.existing && !apply.subresource,
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
    vmhost_plugin_types_create_t record = {out(create.object)};
    add(outcome, (vmhost_plugin_types_effect_t){.tag = VMHOST_PLUGIN_TYPES_EFFECT_CREATE, .val.create = record});
}

void vmhost_add_delete(vmhost_outcome *outcome, struct vmhost_delete delete_) {
    if (!keyed("delete", delete_.key)) return;
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
