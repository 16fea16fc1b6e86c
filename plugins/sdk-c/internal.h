/* internal.h: shared by the files of the SDK. Not for plugins. */
#ifndef VMHOST_INTERNAL_H
#define VMHOST_INTERNAL_H

#include <stdarg.h>

#include "bindings/plugin.h"
#include "vmhost.h"

/* Their linker names, which must not collide with a plugin's functions. */
#define text_put vmhost_internal_text_put
#define text_puts vmhost_internal_text_puts
#define text_vformat vmhost_internal_text_vformat
#define text_end vmhost_internal_text_end
#define list_room vmhost_internal_list_room
#define copy vmhost_internal_copy
#define out vmhost_internal_out
#define out_option vmhost_internal_out_option
#define out_key vmhost_internal_out_key
#define out_kind vmhost_internal_out_kind
#define in vmhost_internal_in
#define in_option vmhost_internal_in_option
#define vformat vmhost_internal_vformat
#define quote vmhost_internal_quote
#define skip_value vmhost_internal_skip_value
#define describe vmhost_internal_describe
#define http_send vmhost_internal_http_send
#define diff vmhost_internal_diff
#define turn vmhost_internal_turn
#define take_error vmhost_internal_take_error

/* A text that grows in the arena. */
typedef struct {
    char *start;
    size_t length, room;
} text;

void text_put(text *to, const char *from, size_t length);
void text_puts(text *to, const char *from);
void text_vformat(text *to, const char *format, va_list arguments);
/* Returns the characters, with a NUL at the end; the text can grow further. */
const char *text_end(text *to);

/* Returns room for one more element. A full list in the arena moves to one of twice the size. */
void *list_room(void *items, size_t count, size_t size);

const char *copy(const char *from, size_t length);
/* Convert strings to the contract's (replacing bytes that are not UTF-8, which would trap) and from
 * them. */
plugin_string_t out(const char *from);
plugin_option_string_t out_option(const char *from);
vmhost_plugin_types_object_key_t out_key(vmhost_key key);
vmhost_plugin_types_gvk_t out_kind(vmhost_kind kind);
const char *in(plugin_string_t from);
const char *in_option(plugin_option_string_t from);

/* wit/http-v1 in memory. */
typedef struct {
    plugin_string_t name, value;
} http_header;

typedef struct {
    bool is_err;
    union {
        struct {
            uint16_t status;
            struct {
                http_header *ptr;
                size_t len;
            } headers;
            plugin_string_t body;
        } ok;
        struct {
            uint8_t tag;
            union {
                plugin_string_t text;
                uint32_t limit;
            } val;
        } err;
    } val;
} http_result;

/* The host's function; in native tests vmhost_test.c defines it. */
#ifdef __wasm__
__attribute__((__import_module__("vmhost:http/http@1.0.0"), __import_name__("send")))
#endif
extern void http_send(const uint8_t *method, size_t method_length, const uint8_t *url, size_t url_length, const http_header *headers, size_t header_count,
                      const uint8_t *body, size_t body_length, int32_t has_timeout, uint32_t timeout, http_result *result);

/* Like vmhost_format, with a va_list. */
const char *vformat(const char *format, va_list arguments);
void quote(text *to, const char *from);
/* Returns the position after this JSON value; NULL if the text ends before. */
const char *skip_value(const char *at);

struct vmhost_outcome {
    vmhost_plugin_types_effect_t *effects;
    size_t count;
    vmhost_plugin_types_next_t next;
};

struct vmhost_names {
    vmhost_plugin_types_object_name_t *items;
    size_t count;
};

const char *describe(const vmhost_description *description);

/* Texts in the arena. */
typedef struct {
    const char **items;
    size_t count;
} text_list;

/* Adds the operations of a JSON patch that make one value into another, in the order of the
 * members' names. */
void diff(vmhost_value before, vmhost_value after, text_list *operations);
/* Calls the policy's function for this request. */
void turn(const vmhost_request *request, vmhost_outcome *outcome);
/* Returns the call's error and forgets it; NULL if there is none. */
const char *take_error(void);

#endif
