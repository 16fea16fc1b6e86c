/* http.c: HTTP requests to services outside of the cluster (wit/http-v1). Written by hand: the
 * records are in memory as the canonical ABI has them, and a policy that does not call this imports
 * nothing of it. */
#include "internal.h"

#include <string.h>

static const char *const codes[] = {"denied", "invalid", "not sent", "no answer", "too large"};

/* Returns the error to the caller. If `error` is NULL, it becomes the turn's error. */
static vmhost_http_response failed(http_result result, const char *method, const char *url, vmhost_http_error *error) {
    uint8_t tag = result.val.err.tag < 5 ? result.val.err.tag : 3;
    vmhost_http_error told = {.code = (vmhost_http_code)(VMHOST_HTTP_DENIED + tag)};
    if (told.code == VMHOST_HTTP_TOO_LARGE) told.text = vmhost_format("larger than %u bytes", (unsigned)result.val.err.val.limit);
    else told.text = in(result.val.err.val.text);
    if (error) *error = told;
    else {
        /* The query may hold a token. */
        size_t length = strcspn(url, "?#");
        const char *place = memcpy(vmhost_alloc(length + 1), url, length);
        vmhost_set_error("%s %s has no response (%s): %s", method, place, codes[tag], told.text);
    }
    return (vmhost_http_response){0};
}

vmhost_http_response vmhost_http(vmhost_http_request request, vmhost_http_error *error) {
    const char *method = request.method ? request.method : "GET", *url = request.url ? request.url : "";
    plugin_string_t sent_method = out(method), sent_url = out(url);
    http_header *headers = NULL;
    size_t count = 0;
    for (const vmhost_http_header *each = request.headers; each && each->name; each++, count++) {
        headers = list_room(headers, count, sizeof *headers);
        headers[count] = (http_header){out(each->name), out(each->value)};
    }
    size_t size = request.body && !request.body_size ? strlen(request.body) : request.body_size;
    http_result result;
    if (error) *error = (vmhost_http_error){0};
    http_send(sent_method.ptr, sent_method.len, sent_url.ptr, sent_url.len, headers, count, (const uint8_t *)request.body, size, request.timeout_ms != 0,
              request.timeout_ms, &result);
    if (result.is_err) return failed(result, method, url, error);
    vmhost_http_header *names = vmhost_alloc((result.val.ok.headers.len + 1) * sizeof *names);
    for (size_t i = 0; i < result.val.ok.headers.len; i++) {
        http_header from = result.val.ok.headers.ptr[i];
        names[i] = (vmhost_http_header){in(from.name), in(from.value)};
    }
    return (vmhost_http_response){
        .status = result.val.ok.status,
        .headers = names,
        .body = copy((const char *)result.val.ok.body.ptr, result.val.ok.body.len),
        .body_size = result.val.ok.body.len,
    };
}

const char *vmhost_http_header_of(vmhost_http_response response, const char *name) {
    for (const vmhost_http_header *each = response.headers; each && each->name; each++)
        if (!strcmp(each->name, name)) return each->value;
    return NULL;
}
