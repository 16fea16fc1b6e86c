/* vmhost.c: the calls of the host, and the memory of a call: one arena that is freed when the host
 * has read the outcome. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- the arena ---- */

/* In native builds each allocation is separate, so that a sanitizer detects overruns and use after
 * the call. */
#ifdef __wasm__
enum { CHUNK = 64 * 1024 };
#else
enum { CHUNK = 0 };
#endif
enum { ALIGN = 16 };

typedef struct chunk {
    struct chunk *before;
    size_t size, used;
    _Alignas(ALIGN) unsigned char bytes[];
} chunk;

static chunk *arena;

/* Adds a NUL after the last byte, so that the host's strings become C strings. */
static void *take(size_t size) {
    if (size > SIZE_MAX / 2) __builtin_trap();
    size_t needed = size + 1;
    if (CHUNK) needed = (needed + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    if (!arena || arena->size - arena->used < needed) {
        size_t room = needed > CHUNK ? needed : CHUNK;
        chunk *next = malloc(sizeof(chunk) + room);
        if (!next) __builtin_trap();
        *next = (chunk){.before = arena, .size = room};
        arena = next;
    }
    unsigned char *start = arena->bytes + arena->used;
    arena->used += needed;
    start[size] = 0;
    return start;
}

static void arena_empty(void) {
    while (arena && (arena->before || arena->size != CHUNK)) {
        chunk *before = arena->before;
        free(arena);
        arena = before;
    }
    if (arena) arena->used = 0;
}

void *vmhost_alloc(size_t size) { return memset(take(size), 0, size); }

void *list_room(void *items, size_t count, size_t size) {
    if (count & (count - 1)) return items;
    if (count > SIZE_MAX / 4 / size) __builtin_trap();
    void *moved = vmhost_alloc((count ? count * 2 : 1) * size);
    if (count) memcpy(moved, items, count * size);
    return moved;
}

#ifdef __wasm__
#define EXPORT(name) __attribute__((export_name(name)))
#else
#define EXPORT(name)
#endif

/* Allocates memory for the host's arguments and answers. The generated function is weak. */
EXPORT("cabi_realloc") void *cabi_realloc(void *before, size_t old_size, size_t align, size_t new_size) {
    (void)align;
    void *start = take(new_size);
    if (before && old_size) memcpy(start, before, old_size < new_size ? old_size : new_size);
    return start;
}

#ifdef __wasm__
/* Allocates what the preview1 adapter (present if stdio is linked) keeps between calls. */
EXPORT("cabi_realloc_adapter") void *cabi_realloc_adapter(void *before, size_t old_size, size_t align, size_t new_size) {
    (void)old_size;
    if (before) return realloc(before, new_size);
    return aligned_alloc(align, (new_size + align - 1) & ~(align - 1));
}
#endif

/* ---- strings over the border ---- */

const char *copy(const char *from, size_t length) {
    char *start = take(length);
    if (length) memcpy(start, from, length);
    return start;
}

const char *in(plugin_string_t from) { return from.len ? (const char *)from.ptr : ""; }

const char *in_option(plugin_option_string_t from) { return from.is_some ? in(from.val) : NULL; }

/* Returns the length of the UTF-8 character at `at`; 0 if it is invalid. */
static size_t character(const unsigned char *at) {
    static const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t length = at[0] < 0x80 ? 1 : at[0] >> 5 == 6 ? 2 : at[0] >> 4 == 14 ? 3 : at[0] >> 3 == 30 ? 4 : 0;
    unsigned code = length > 1 ? at[0] & (0x7f >> length) : 0;
    for (size_t i = 1; i < length; i++) {
        if (at[i] >> 6 != 2) return 0;
        code = code << 6 | (at[i] & 0x3f);
    }
    if (length > 1 && (code < least[length] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))) return 0;
    return length;
}

plugin_string_t out(const char *from) {
    if (!from) from = "";
    const unsigned char *at = (const unsigned char *)from;
    size_t length;
    while (*at && (length = character(at))) at += length;
    if (!*at) return (plugin_string_t){(uint8_t *)from, (size_t)((const char *)at - from)};
    text repaired = {0};
    for (at = (const unsigned char *)from; *at; at += length ? length : 1) {
        length = character(at);
        text_put(&repaired, length ? (const char *)at : "\xef\xbf\xbd", length ? length : 3);
    }
    const char *start = text_end(&repaired);
    return (plugin_string_t){(uint8_t *)start, repaired.length};
}

plugin_option_string_t out_option(const char *from) {
    if (!from) return (plugin_option_string_t){.is_some = false};
    return (plugin_option_string_t){.is_some = true, .val = out(from)};
}

vmhost_plugin_types_gvk_t out_kind(vmhost_kind kind) { return (vmhost_plugin_types_gvk_t){out(kind.group), out(kind.version), out(kind.kind)}; }

vmhost_plugin_types_object_key_t out_key(vmhost_key key) { return (vmhost_plugin_types_object_key_t){out_kind(key.kind), out_option(key.ns), out(key.name)}; }

/* ---- log, settings and the turn's error ---- */

static const char *error;

void vmhost_set_error(const char *format, ...) {
    if (error) return;
    va_list arguments;
    va_start(arguments, format);
    error = vformat(format, arguments);
    va_end(arguments);
}

bool vmhost_has_error(void) { return error != NULL; }

const char *take_error(void) {
    const char *taken = error;
    error = NULL;
    return taken;
}

void vmhost_log(vmhost_level level, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    plugin_string_t line = out(vformat(format, arguments));
    va_end(arguments);
    vmhost_plugin_log_log((vmhost_plugin_log_level_t)level, &line);
}

const char *vmhost_setting(const char *name) {
    plugin_string_t asked = out(name), value;
    return vmhost_plugin_config_get(&asked, &value) ? in(value) : NULL;
}

/* ---- the calls of the host ---- */

bool exports_vmhost_plugin_controller_describe(exports_vmhost_plugin_controller_json_t *result, plugin_string_t *failure) {
    bool works = vmhost_plugin.reconcile || vmhost_plugin.admit || vmhost_plugin.convert;
    if (works) *result = out(describe(&vmhost_plugin));
    else *failure = out("the plugin has no reconcile, admit or convert");
    return works;
}

void exports_vmhost_plugin_controller_reconcile(exports_vmhost_plugin_controller_request_t *from, exports_vmhost_plugin_controller_outcome_t *result) {
    const vmhost_plugin_types_refusal_t *last = &from->last.val;
    vmhost_refusal refusal;
    vmhost_request request = {
        .controller = in(from->controller),
        .key = {{in(from->key.kind.group), in(from->key.kind.version), in(from->key.kind.kind)}, in_option(from->key.namespace_), in(from->key.name)},
        .object.text = from->object.is_some ? in(from->object.val) : NULL,
        .previous.text = from->previous.is_some ? in(from->previous.val) : NULL,
        .deleting = from->deleting,
        .attempt = from->attempt,
    };
    if (from->last.is_some) {
        refusal = (vmhost_refusal){last->effect, last->code, in(last->reason), in(last->message)};
        request.last = &refusal;
    }
    vmhost_outcome outcome = {0};
    error = NULL;
    turn(&request, &outcome);
    if (error) {
        outcome = (vmhost_outcome){0};
        vmhost_retry(&outcome, "%s", error);
    }
    *result = (exports_vmhost_plugin_controller_outcome_t){{outcome.effects, outcome.count}, outcome.next};
}

bool exports_vmhost_plugin_controller_map_changes(exports_vmhost_plugin_controller_map_request_t *from,
                                                  exports_vmhost_plugin_controller_list_object_name_t *result, plugin_string_t *failure) {
    size_t count = from->changes.len;
    vmhost_change *changes = vmhost_alloc(count * sizeof *changes);
    for (size_t i = 0; i < count; i++) {
        const vmhost_plugin_types_change_t *change = &from->changes.ptr[i];
        changes[i].before.text = change->old.is_some ? in(change->old.val) : NULL;
        changes[i].now.text = change->new_.is_some ? in(change->new_.val) : NULL;
    }
    vmhost_map_request request = {in(from->controller), changes, count};
    vmhost_names names = {0};
    error = NULL;
    if (vmhost_plugin.map_changes) vmhost_plugin.map_changes(&request, &names);
    *result = (exports_vmhost_plugin_controller_list_object_name_t){names.items, names.count};
    if (error) *failure = out(error);
    return !error;
}

/* The host has read the result of the call. These functions, too, are weak in the generated code.
 */
EXPORT("cabi_post_vmhost:plugin/controller@1.0.0#describe") void __wasm_export_exports_vmhost_plugin_controller_describe_post_return(uint8_t *result) {
    (void)result;
    arena_empty();
}

EXPORT("cabi_post_vmhost:plugin/controller@1.0.0#reconcile") void __wasm_export_exports_vmhost_plugin_controller_reconcile_post_return(uint8_t *result) {
    (void)result;
    arena_empty();
}

EXPORT("cabi_post_vmhost:plugin/controller@1.0.0#map-changes") void __wasm_export_exports_vmhost_plugin_controller_map_changes_post_return(uint8_t *result) {
    (void)result;
    arena_empty();
}
