/* diff.c: the JSON patch (RFC 6902) between two JSON text_list, and a text with another value in it. It
 * must not know what the text_list are. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

/* A member of an object, or (without a name) an element of a list. */
typedef struct {
    const char *name;
    vmhost_value value;
} part;

typedef struct {
    part *items;
    size_t count;
} parts;

static parts parts_of(vmhost_value container) {
    parts all = {0};
    for (vmhost_iterator i = vmhost_each(container); vmhost_next(&i);) {
        all.items = list_room(all.items, all.count, sizeof *all.items);
        all.items[all.count++] = (part){i.name, i.value};
    }
    return all;
}

static int by_name(const void *a, const void *b) { return strcmp(((const part *)a)->name, ((const part *)b)->name); }

static parts members_of(vmhost_value object) {
    parts all = parts_of(object);
    if (all.count) qsort(all.items, all.count, sizeof *all.items, by_name);
    return all;
}

static bool is_equal(vmhost_value a, vmhost_value b);

static bool are_equal(parts a, parts b) {
    if (a.count != b.count) return false;
    for (size_t i = 0; i < a.count; i++) {
        if (a.items[i].name && strcmp(a.items[i].name, b.items[i].name)) return false;
        if (!is_equal(a.items[i].value, b.items[i].value)) return false;
    }
    return true;
}

static bool is_equal(vmhost_value a, vmhost_value b) {
    vmhost_type type = vmhost_type_of(a);
    if (type != vmhost_type_of(b)) return false;
    if (type == VMHOST_OBJECT) return are_equal(members_of(a), members_of(b));
    if (type == VMHOST_ARRAY) return are_equal(parts_of(a), parts_of(b));
    if (type != VMHOST_STRING) return !strcmp(vmhost_raw(a), vmhost_raw(b));
    const char *left = vmhost_string(a, ""), *right = vmhost_string(b, "");
    return left && right && !strcmp(left, right);
}

static void put(text_list *to, const char *operation) {
    to->items = list_room(to->items, to->count, sizeof *to->items);
    to->items[to->count++] = operation;
}

/* Returns the path of a member: ~ and / are escaped. */
static const char *below(const char *path, const char *name) {
    text result = {0};
    text_puts(&result, path);
    text_puts(&result, "/");
    for (; *name; name++) {
        if (*name == '~') text_puts(&result, "~0");
        else if (*name == '/') text_puts(&result, "~1");
        else text_put(&result, name, 1);
    }
    return text_end(&result);
}

static void compare(const char *path, vmhost_value before, vmhost_value after, text_list *to);

static void compare_members(const char *path, parts before, parts after, text_list *to) {
    size_t a = 0, b = 0;
    while (a < before.count || b < after.count) {
        int order = a == before.count ? 1 : b == after.count ? -1 : by_name(&before.items[a], &after.items[b]);
        const char *place = below(path, order > 0 ? after.items[b].name : before.items[a].name);
        if (order < 0) put(to, vmhost_remove(place));
        else if (order > 0) put(to, vmhost_add(place, vmhost_raw(after.items[b].value)));
        else compare(place, before.items[a].value, after.items[b].value, to);
        a += order <= 0;
        b += order >= 0;
    }
}

static const char *element(const char *path, size_t at) { return vmhost_format("%s/%zu", path, at); }

/* Equal elements at both ends stay; those between are compared one by one, and what is left over is
 * added or removed. */
static void compare_elements(const char *path, parts before, parts after, text_list *to) {
    size_t least = before.count < after.count ? before.count : after.count, start = 0, end = 0;
    while (start < least && is_equal(before.items[start].value, after.items[start].value)) start++;
    while (end < least - start && is_equal(before.items[before.count - 1 - end].value, after.items[after.count - 1 - end].value)) end++;
    size_t both = least - end;
    for (size_t i = start; i < both; i++) compare(element(path, i), before.items[i].value, after.items[i].value, to);
    for (size_t i = both; i < after.count - end; i++) put(to, vmhost_add(element(path, i), vmhost_raw(after.items[i].value)));
    /* From the back, so that no removal moves what a later one names. */
    for (size_t i = before.count - end; i > both; i--) put(to, vmhost_remove(element(path, i - 1)));
}

static void compare(const char *path, vmhost_value before, vmhost_value after, text_list *to) {
    if (is_equal(before, after)) return;
    vmhost_type type = vmhost_type_of(before);
    bool alike = type == vmhost_type_of(after);
    if (alike && type == VMHOST_OBJECT) compare_members(path, members_of(before), members_of(after), to);
    else if (alike && type == VMHOST_ARRAY) compare_elements(path, parts_of(before), parts_of(after), to);
    else put(to, vmhost_replace(path, vmhost_raw(after)));
}

void diff(vmhost_value before, vmhost_value after, text_list *operations) { compare("", before, after, operations); }

/* ---- a text with another value in it ---- */

/* Returns a token of a pointer, unescaped (~1 is /, ~0 is ~). */
static const char *name_of(const char *token, size_t length) {
    text result = {0};
    for (const char *stop = token + length; token < stop; token++) {
        bool escaped = *token == '~' && token + 1 < stop;
        if (escaped) text_puts(&result, *++token == '1' ? "/" : "~");
        else text_put(&result, token, 1);
    }
    return text_end(&result);
}

/* Adds a member or an element; a value of NULL is left out. */
static void append(text *to, const char *name, const char *value) {
    if (!value) return;
    if (to->length > 1) text_puts(to, ",");
    if (name) {
        quote(to, name);
        text_puts(to, ":");
    }
    text_puts(to, value);
}

const char *vmhost_set_at(vmhost_value from, const char *pointer, const char *json) {
    if (!*pointer) return json;
    size_t length = strcspn(pointer + 1, "/");
    const char *name = name_of(pointer + 1, length), *rest = pointer + 1 + length;
    vmhost_type type = vmhost_type_of(from);
    bool list = type == VMHOST_ARRAY;
    if (*pointer != '/' || (type > VMHOST_NULL && type < VMHOST_ARRAY)) {
        vmhost_set_error("json: there is no place %s to set", pointer);
        return vmhost_raw(from);
    }
    text result = {0};
    text_puts(&result, list ? "[" : "{");
    bool found = false;
    size_t at = 0;
    for (vmhost_iterator i = vmhost_each(from); vmhost_next(&i); at++) {
        bool here = !strcmp(list ? vmhost_format("%zu", at) : i.name, name);
        found = found || here;
        append(&result, i.name, here ? vmhost_set_at(i.value, rest, json) : vmhost_raw(i.value));
    }
    if (!found && list && strcmp(name, "-") && strcmp(name, vmhost_format("%zu", at))) vmhost_set_error("json: the list has no element %s", name);
    else if (!found && json) append(&result, list ? NULL : name, vmhost_set_at((vmhost_value){NULL}, rest, json));
    text_puts(&result, list ? "]" : "}");
    return text_end(&result);
}
