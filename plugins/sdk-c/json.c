/* json.c: reads JSON in place. It builds no tree: a value is a pointer into the text, and other
 * values are skipped, without recursion. */
#include "internal.h"

#include <string.h>

static const char *skip_space(const char *at) { return at + strspn(at, " \t\r\n"); }

/* Returns the position after the closing quote. */
static const char *skip_string(const char *at) {
    for (at++; *at && *at != '"'; at++)
        if (*at == '\\' && !*++at) return NULL;
    return *at ? at + 1 : NULL;
}

const char *skip_value(const char *at) {
    size_t depth = 0;
    do {
        at = skip_space(at);
        if (*at == '"') {
            at = skip_string(at);
        } else if (*at == '{' || *at == '[') {
            depth++, at++;
        } else if (depth && (*at == '}' || *at == ']')) {
            depth--, at++;
        } else if (depth && (*at == ',' || *at == ':')) {
            at++;
        } else {
            size_t length = strcspn(at, ",:[]{}\" \t\r\n");
            at = length ? at + length : NULL;
        }
    } while (at && depth);
    return at;
}

static void bad(void) { vmhost_set_error("json: the text is not well formed"); }

/* Parses the four digits of \uXXXX; returns 0x110000 if they are invalid. */
static uint32_t hex(const char *at) {
    uint32_t code = 0;
    for (int i = 0; i < 4; i++) {
        static const char digits[] = "0123456789abcdef0123456789ABCDEF";
        const char *digit = at[i] ? strchr(digits, at[i]) : NULL;
        if (!digit) return 0x110000;
        code = code << 4 | (uint32_t)((digit - digits) & 15);
    }
    return code;
}

static size_t put_code(char *to, uint32_t code) {
    if (code && code < 0x80) return to[0] = (char)code, 1;
    size_t length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = length - 1; i; i--, code >>= 6) to[i] = (char)(0x80 | (code & 0x3f));
    to[0] = (char)((0xf00 >> length & 0xff) | code);
    return length;
}

/* Returns the string at the quote `at`, unescaped; NULL and an error if it is invalid. A lone
 * surrogate becomes U+FFFD. */
static const char *unescape(const char *at) {
    const char *end = skip_string(at);
    if (!end) return bad(), NULL;
    const char *escape = memchr(at, '\\', (size_t)(end - at));
    if (!escape) return copy(at + 1, (size_t)(end - at) - 2);
    char *start = vmhost_alloc((size_t)(end - at)), *to = start;
    for (at++; at < end - 1; at++) {
        if (*at != '\\') {
            *to++ = *at;
            continue;
        }
        static const char from[] = "bfnrt", real[] = "\b\f\n\r\t";
        const char *known = strchr(from, *++at);
        if (*at != 'u') {
            *to++ = known ? real[known - from] : *at;
            continue;
        }
        uint32_t code = hex(at + 1);
        if (code > 0xffff) return bad(), NULL;
        at += 4;
        if (code >= 0xd800 && code < 0xe000) {
            uint32_t low = code < 0xdc00 && at[1] == '\\' && at[2] == 'u' ? hex(at + 3) : 0;
            bool pair = low >= 0xdc00 && low < 0xe000;
            code = pair ? 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00) : 0xfffd;
            if (pair) at += 6;
        }
        to += put_code(to, code);
    }
    *to = 0;
    return start;
}

/* Returns whether this word is at `at`, and ends there. */
static bool is_word(const char *at, const char *word) {
    size_t length = strlen(word);
    return !strncmp(at, word, length) && (!at[length] || strchr(",]} \t\r\n", at[length]));
}

vmhost_type vmhost_type_of(vmhost_value value) {
    if (!value.text) return VMHOST_MISSING;
    const char *at = skip_space(value.text);
    switch (*at) {
    case 'n': return is_word(at, "null") ? VMHOST_NULL : VMHOST_MISSING;
    case 't': return is_word(at, "true") ? VMHOST_BOOLEAN : VMHOST_MISSING;
    case 'f': return is_word(at, "false") ? VMHOST_BOOLEAN : VMHOST_MISSING;
    case '"': return VMHOST_STRING;
    case '[': return VMHOST_ARRAY;
    case '{': return VMHOST_OBJECT;
    case '-':
    case '0':
    case '1':
    case '2':
    case '3':
    case '4':
    case '5':
    case '6':
    case '7':
    case '8':
    case '9': return VMHOST_NUMBER;
    default: return VMHOST_MISSING;
    }
}

vmhost_iterator vmhost_each(vmhost_value container) {
    vmhost_type type = vmhost_type_of(container);
    if (type != VMHOST_ARRAY && type != VMHOST_OBJECT) return (vmhost_iterator){0};
    return (vmhost_iterator){.rest = skip_space(container.text)};
}

/* Like vmhost_next, but keeps the name as written, with its quotes. */
static bool next_raw(vmhost_iterator *i) {
    if (!i->rest) return false;
    /* At the opening bracket, at a comma, or after the last element. */
    bool first = *i->rest == '{' || *i->rest == '[';
    bool object = first ? *i->rest == '{' : i->name != NULL;
    const char *at = skip_space(i->rest);
    const char *end = object ? "}" : "]";
    if (first || *at == ',') {
        at = skip_space(at + 1);
        if (first && *at == *end) return i->rest = NULL, false;
        i->name = NULL;
        if (object && *at == '"') {
            i->name = at;
            at = skip_string(at);
            if (at) at = skip_space(at);
            at = at && *at == ':' ? skip_space(at + 1) : NULL;
        } else if (object) {
            at = NULL;
        }
        i->value.text = at;
        i->rest = at ? skip_value(at) : NULL;
        /* Otherwise the next call would take a value's bracket for the container's. */
        if (i->rest) i->rest = skip_space(i->rest);
        if (i->rest && (*i->rest == ',' || *i->rest == *end)) return true;
    } else if (*at == *end) {
        return i->rest = NULL, false;
    }
    bad();
    return i->rest = NULL, false;
}

bool vmhost_next(vmhost_iterator *i) {
    if (!next_raw(i)) return false;
    if (!i->name) return true;
    i->name = unescape(i->name);
    return i->name != NULL;
}

/* Returns whether the member's name, with its quotes, equals this token of a pointer (~1 is /, ~0
 * is ~). */
static bool is_named(const char *name, const char *token, size_t length) {
    const char *end = skip_string(name) - 1, *plain = name + 1;
    if (memchr(plain, '\\', (size_t)(end - plain))) {
        plain = unescape(name);
        if (!plain) return false;
        end = plain + strlen(plain);
    }
    for (const char *stop = token + length; token < stop; token++, plain++) {
        bool escaped = *token == '~' && token + 1 < stop;
        char wanted = escaped ? (*++token == '1' ? '/' : '~') : *token;
        if (plain == end || *plain != wanted) return false;
    }
    return plain == end;
}

static const char *type_name(vmhost_type type) {
    static const char *const names[] = {"missing", "null", "a boolean", "a number", "a string", "a list", "an object"};
    return names[type];
}

static const char *place(const char *pointer, size_t length) { return length ? copy(pointer, length) : "the value"; }

vmhost_value vmhost_at(vmhost_value value, const char *pointer) {
    const char *token = pointer;
    while (*token == '/' && value.text) {
        size_t length = strcspn(++token, "/"), index = 0;
        vmhost_type type = vmhost_type_of(value);
        if (type == VMHOST_NULL) return (vmhost_value){NULL};
        bool index_given = length && strspn(token, "0123456789") >= length;
        if (type != VMHOST_OBJECT && !(type == VMHOST_ARRAY && index_given)) {
            if (type == VMHOST_MISSING) bad();
            else vmhost_set_error("json: %s is %s, not an object", place(pointer, (size_t)(token - 1 - pointer)), type_name(type));
            return (vmhost_value){NULL};
        }
        bool found = false;
        vmhost_iterator i = vmhost_each(value);
        if (type == VMHOST_OBJECT) {
            while (!found && next_raw(&i)) found = is_named(i.name, token, length);
        } else {
            for (size_t digit = 0; digit < length && index < SIZE_MAX / 10 - 1; digit++) index = index * 10 + (size_t)(token[digit] - '0');
            while (!found && next_raw(&i)) found = !index--;
        }
        value = found ? i.value : (vmhost_value){NULL};
        token += length;
    }
    if (*pointer && *pointer != '/') {
        vmhost_set_error("json: the pointer %s does not begin with /", pointer);
        return (vmhost_value){NULL};
    }
    return value;
}

static bool is_type(vmhost_value value, const char *pointer, vmhost_type wanted) {
    vmhost_type type = vmhost_type_of(value);
    if (type == wanted) return true;
    if (value.text && type == VMHOST_MISSING) bad();
    else if (type > VMHOST_NULL) vmhost_set_error("json: %s is %s, not %s", place(pointer, strlen(pointer)), type_name(type), type_name(wanted));
    return false;
}

const char *vmhost_string(vmhost_value from, const char *pointer) {
    vmhost_value value = vmhost_at(from, pointer);
    return is_type(value, pointer, VMHOST_STRING) ? unescape(skip_space(value.text)) : NULL;
}

bool vmhost_integer(vmhost_value from, const char *pointer, int64_t *result) {
    vmhost_value value = vmhost_at(from, pointer);
    if (!is_type(value, pointer, VMHOST_NUMBER)) return false;
    const char *raw = vmhost_raw(value), *at = raw + (*raw == '-');
    uint64_t number = 0, most = *raw == '-' ? (uint64_t)INT64_MAX + 1 : INT64_MAX;
    bool fits = *at != 0;
    for (; *at && fits; at++) {
        unsigned digit = (unsigned)*at - '0';
        fits = digit < 10 && number <= (most - digit) / 10;
        number = number * 10 + digit;
    }
    if (!fits) {
        vmhost_set_error("json: %s is %s, not a 64-bit integer", place(pointer, strlen(pointer)), raw);
        return false;
    }
    *result = *raw == '-' ? (int64_t)(0 - number) : (int64_t)number;
    return true;
}

bool vmhost_boolean(vmhost_value from, const char *pointer) {
    vmhost_value value = vmhost_at(from, pointer);
    return is_type(value, pointer, VMHOST_BOOLEAN) && *skip_space(value.text) == 't';
}

const char *vmhost_raw(vmhost_value value) {
    if (!value.text) return "null";
    const char *start = skip_space(value.text), *end = skip_value(start);
    if (!end) return bad(), "null";
    return copy(start, (size_t)(end - start));
}
