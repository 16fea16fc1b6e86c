/* text.c: growing texts, a printf without stdio, and writing JSON. */
#include "internal.h"

#include <string.h>

void text_put(text *to, const char *from, size_t length) {
    if (to->room - to->length <= length) {
        size_t room = (to->length + length + 32) * 2;
        char *start = vmhost_alloc(room);
        if (to->length) memcpy(start, to->start, to->length);
        to->start = start;
        to->room = room;
    }
    if (length) memcpy(to->start + to->length, from, length);
    to->length += length;
}

void text_puts(text *to, const char *from) { text_put(to, from, strlen(from)); }

const char *text_end(text *to) {
    text_put(to, "", 1);
    to->length--;
    return to->start;
}

static void put_number(text *to, unsigned long long number, unsigned base) {
    char digits[24];
    size_t at = sizeof digits;
    do digits[--at] = "0123456789abcdef"[number % base];
    while (number /= base);
    text_put(to, digits + at, sizeof digits - at);
}

static long long signed_of(int size, va_list *arguments) {
    if (size == 'l') return va_arg(*arguments, long);
    if (size == 'L') return va_arg(*arguments, long long);
    if (size == 'j') return va_arg(*arguments, intmax_t);
    if (size == 'z') return va_arg(*arguments, ptrdiff_t);
    return va_arg(*arguments, int);
}

static unsigned long long unsigned_of(int size, va_list *arguments) {
    if (size == 'l') return va_arg(*arguments, unsigned long);
    if (size == 'L') return va_arg(*arguments, unsigned long long);
    if (size == 'j') return va_arg(*arguments, uintmax_t);
    if (size == 'z') return va_arg(*arguments, size_t);
    return va_arg(*arguments, unsigned);
}

void text_vformat(text *to, const char *format, va_list from) {
    va_list arguments;
    va_copy(arguments, from);
    for (const char *at = format; *at; at++) {
        const char *percent = strchr(at, '%');
        if (!percent) percent = at + strlen(at);
        text_put(to, at, (size_t)(percent - at));
        if (!*percent) break;
        at = percent + 1;
        int size = 0;
        for (; *at && strchr("hljz", *at); at++) size = size == 'l' && *at == 'l' ? 'L' : *at;
        if (*at == 's') {
            const char *string = va_arg(arguments, const char *);
            text_puts(to, string ? string : "(null)");
        } else if (*at == 'd' || *at == 'i') {
            long long number = signed_of(size, &arguments);
            if (number < 0) text_put(to, "-", 1);
            put_number(to, number < 0 ? 0 - (unsigned long long)number : (unsigned long long)number, 10);
        } else if (*at == 'u' || *at == 'x') {
            put_number(to, unsigned_of(size, &arguments), *at == 'u' ? 10 : 16);
        } else if (*at == 'c') {
            char one = (char)va_arg(arguments, int);
            text_put(to, &one, 1);
        } else if (*at == '%') {
            text_put(to, "%", 1);
        } else {
            /* The rest is copied unchanged, because the types of its arguments are unknown. */
            text_puts(to, percent);
            break;
        }
    }
    va_end(arguments);
}

const char *vformat(const char *format, va_list arguments) {
    text result = {0};
    text_vformat(&result, format, arguments);
    return text_end(&result);
}

const char *vmhost_format(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const char *result = vformat(format, arguments);
    va_end(arguments);
    return result;
}

/* ---- JSON ---- */

void quote(text *to, const char *from) {
    if (!from) {
        text_puts(to, "null");
        return;
    }
    text_put(to, "\"", 1);
    const char *start = from;
    for (;; from++) {
        unsigned char byte = (unsigned char)*from;
        bool nul = byte == 0xc0 && (unsigned char)from[1] == 0x80;
        if (byte >= 0x20 && byte != '"' && byte != '\\' && !nul) continue;
        text_put(to, start, (size_t)(from - start));
        if (!byte) break;
        if (byte == '"' || byte == '\\') {
            text_put(to, (char[]){'\\', (char)byte}, 2);
        } else if (byte == '\n' || byte == '\t') {
            text_put(to, byte == '\n' ? "\\n" : "\\t", 2);
        } else {
            if (nul) byte = 0, from++;
            text_puts(to, "\\u00");
            text_put(to, &"0123456789abcdef"[byte >> 4], 1);
            text_put(to, &"0123456789abcdef"[byte & 15], 1);
        }
        start = from + 1;
    }
    text_put(to, "\"", 1);
}

const char *vmhost_quote(const char *from) {
    text result = {0};
    quote(&result, from);
    return text_end(&result);
}

const char *vmhost_object_of(const char *const *names_and_values, size_t count) {
    text result = {0};
    for (size_t i = 0; i < count; i += 2) {
        const char *value = i + 1 < count ? names_and_values[i + 1] : NULL;
        text_put(&result, i ? "," : "{", 1);
        quote(&result, names_and_values[i] ? names_and_values[i] : "");
        text_put(&result, ":", 1);
        text_puts(&result, value ? value : "null");
    }
    text_puts(&result, count ? "}" : "{}");
    return text_end(&result);
}

const char *vmhost_array_of(const char *const *values, size_t count) {
    text result = {0};
    for (size_t i = 0; i < count; i++) {
        text_put(&result, i ? "," : "[", 1);
        text_puts(&result, values[i] ? values[i] : "null");
    }
    text_puts(&result, count ? "]" : "[]");
    return text_end(&result);
}

static const char *operation(const char *name, const char *path, const char *value) {
    const char *parts[] = {"op", vmhost_quote(name), "path", vmhost_quote(path), "value", value};
    return vmhost_object_of(parts, 6);
}

const char *vmhost_test(const char *path, const char *value) { return operation("test", path, value); }

const char *vmhost_add(const char *path, const char *value) { return operation("add", path, value); }

const char *vmhost_replace(const char *path, const char *value) { return operation("replace", path, value); }

const char *vmhost_remove(const char *path) {
    const char *parts[] = {"op", "\"remove\"", "path", vmhost_quote(path)};
    return vmhost_object_of(parts, 4);
}
