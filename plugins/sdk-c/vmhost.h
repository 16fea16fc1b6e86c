/* vmhost.h: write a vmhost policy in C. One header; link all `*.c` files of this folder (not those
 * of its subfolders).
 *
 * A plugin is one constant, `vmhost_plugin`: its description and its function `reconcile`. See
 * README.md for a complete plugin.
 *
 * Memory: a plugin frees nothing. All that these functions return, all that a request contains and
 * all that is passed to an effect is in one arena, which the SDK frees when the host has read the
 * outcome. Do not keep any of it in a global variable. Strings end with a NUL; NULL means "absent".
 *
 * Errors: when a value cannot be read (a status that is a number, a read that is refused), the SDK
 * records the turn's error, and the function returns NULL, false or a missing value. A turn with an
 * error ends in `retry` with the error's text and without effects, whatever `reconcile` has added
 * to the outcome. So a check after each call is not necessary; `vmhost_has_error` returns whether
 * there is an error. `vmhost_set_error` records an error of the plugin's own. The first error
 * counts. */
#ifndef VMHOST_H
#define VMHOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define VMHOST_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define VMHOST_PRINTF(text, first)
#endif

/* A list in a description: in C a pointer to elements of which the last is zero (see VMHOST_STRINGS
 * and the macros below it), in C++ a braced list. */
#ifdef __cplusplus
#include <initializer_list>
#include <new>
#include <stdlib.h>
template <typename T> struct vmhost_list_of {
    const T *items = nullptr;
    vmhost_list_of() = default;
    /* A description lives as long as the plugin, and so do its lists. Not with `new`, which can
     * link all of stdio. */
    vmhost_list_of(std::initializer_list<T> from) {
        T *copy = static_cast<T *>(calloc(from.size() + 1, sizeof(T)));
        items = copy;
        for (const T &item : from) new (copy++) T(item);
    }
};
#define VMHOST_LIST(type) vmhost_list_of<type>
extern "C" {
#else
#define VMHOST_LIST(type) type const *
#define VMHOST_STRINGS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define VMHOST_CONTROLLERS(...) ((const vmhost_controller[]){__VA_ARGS__, {0}})
#define VMHOST_WATCHES(...) ((const vmhost_watch[]){__VA_ARGS__, {0}})
#define VMHOST_PERMISSIONS(...) ((const vmhost_permission[]){__VA_ARGS__, {0}})
#define VMHOST_WEBHOOKS(...) ((const vmhost_webhook[]){__VA_ARGS__, {0}})
#define VMHOST_RULES(...) ((const vmhost_rule[]){__VA_ARGS__, {0}})
#define VMHOST_CONDITIONS(...) ((const vmhost_match_condition[]){__VA_ARGS__, {0}})
#define VMHOST_CONVERSIONS(...) ((const vmhost_conversion[]){__VA_ARGS__, {0}})
#define VMHOST_INDEXES(...) ((const vmhost_index[]){__VA_ARGS__, {0}})
#define VMHOST_HTTP(...) ((const vmhost_http_grant[]){__VA_ARGS__, {0}})
#define VMHOST_HTTP_HEADERS(...) ((const vmhost_header_from[]){__VA_ARGS__, {0}})
#define VMHOST_HEADERS(...) ((const vmhost_http_header[]){__VA_ARGS__, {0}})
#endif

/* ---- names ---- */

/* A group, version and kind. The core group is "" or NULL. */
typedef struct vmhost_kind {
    const char *group, *version, *kind;
} vmhost_kind;

/* The key of one object. `ns` is its namespace; NULL if and only if the kind is cluster-scoped. */
typedef struct vmhost_key {
    vmhost_kind kind;
    const char *ns, *name;
} vmhost_key;

/* A JSON value: a pointer to its first character within a larger text. `text` is NULL if the value
 * is absent. For a whole object it is the text that the API server wrote. */
typedef struct vmhost_value {
    const char *text;
} vmhost_value;

/* ---- a turn ---- */

/* Which effect of this key's last turn was refused, and why. */
typedef struct vmhost_refusal {
    uint32_t effect;     /* its index, from 0 */
    uint16_t code;       /* HTTP status: 409, 422, 403 */
    const char *reason;  /* `Conflict`, `Invalid`, `Forbidden` */
    const char *message; /* for people */
} vmhost_refusal;

/* The input of a turn: a key and the newest snapshot of its object. */
typedef struct vmhost_request {
    const char *controller;     /* its name in the description */
    vmhost_key key;             /* the object to reconcile */
    vmhost_value object;        /* its text; absent if it was deleted */
    vmhost_value previous;      /* only with `.previous`: as of the last turn that succeeded */
    bool deleting;              /* only with `.finalizer`: clean up, then `vmhost_finalized` */
    uint32_t attempt;           /* failures since the last success */
    const vmhost_refusal *last; /* NULL if no effect was refused */
} vmhost_request;

/* The result of a turn: effects, which are carried out in order, and the next step. Initially
 * without effects, and awaiting the next change. */
typedef struct vmhost_outcome vmhost_outcome;

/* A change of an object that a watch with VMHOST_MAP_GUEST saw. `before` is absent for a new
 * object, `now` for a deleted one. */
typedef struct vmhost_change {
    vmhost_value before, now;
} vmhost_change;

typedef struct vmhost_map_request {
    const char *controller;
    const vmhost_change *changes;
    size_t count;
} vmhost_map_request;

/* The objects of the primary kind to reconcile; see vmhost_wake. */
typedef struct vmhost_names vmhost_names;

/* ---- the description: all that is left out has the default of the contract ---- */

/* Which keys a change wakes. VMHOST_MAP_LABEL, _FIELD and _INDEX require a `value`: the label, the
 * path, the name of the index. */
typedef enum {
    VMHOST_MAP_NONE,
    VMHOST_MAP_NAME,
    VMHOST_MAP_OWNER,
    VMHOST_MAP_CONTROLLER,
    VMHOST_MAP_GUEST,
    VMHOST_MAP_LABEL,
    VMHOST_MAP_FIELD,
    VMHOST_MAP_INDEX
} vmhost_map_type;

typedef struct vmhost_map {
    vmhost_map_type type;
    const char *value;
} vmhost_map;

/* What must differ in an update; combine them with |. */
enum { VMHOST_GENERATION_CHANGED = 1, VMHOST_LABELS_CHANGED = 2, VMHOST_ANNOTATIONS_CHANGED = 4, VMHOST_RESOURCE_VERSION_CHANGED = 8 };

/* Which changes wake keys; all conditions must hold. A deletion always wakes keys. */
typedef struct vmhost_predicates {
    unsigned changed;
    const char *label_selector, *field_selector, *cel;
} vmhost_predicates;

/* An index: its name, and the path of the field, such as spec.volumes[*].secret.secretName. */
typedef struct vmhost_index {
    const char *name, *path;
} vmhost_index;

/* A kind that a controller watches or reads. */
typedef struct vmhost_watch {
    const vmhost_kind *kind;
    const char *label_selector, *field_selector; /* other objects are not cached */
    VMHOST_LIST(char const *) wanted_fields;     /* cache only these dotted paths and the metadata */
    bool metadata_only;
    VMHOST_LIST(vmhost_index) indexes;
    vmhost_predicates predicates;
    vmhost_map map; /* only in `watches` */
    bool live;      /* only in `reads`: no cache, live reads only */
} vmhost_watch;

typedef struct vmhost_retries {
    bool limited; /* false: retried forever */
    uint32_t most;
} vmhost_retries;

/* The back-off of a failing key; 0 selects the default. `max_retries = {true, 7}`: dropped and
 * reported after seven retries. */
typedef struct vmhost_back_off {
    uint32_t base_ms, cap_ms;
    vmhost_retries max_retries;
    uint32_t per_second, burst; /* a rate limit for the retries of all keys */
} vmhost_back_off;

/* One controller: `primary`, or `every_ms`, or `once`. */
typedef struct vmhost_controller {
    const char *name;
    vmhost_watch primary;
    uint32_t every_ms;
    bool once;
    VMHOST_LIST(vmhost_watch) owns;
    VMHOST_LIST(vmhost_watch) watches;
    VMHOST_LIST(vmhost_watch) reads;
    const char *finalizer;
    bool previous;
    const char *event_source;
    uint32_t concurrency;
    vmhost_back_off retry;
    /* In which clusters the keys are: "home" (the default), "members", or a label selector of them. */
    const char *clusters;
} vmhost_controller;

/* Combine them with |. VMHOST_PATCH covers apply and patch. */
enum { VMHOST_CREATE = 1, VMHOST_PATCH = 2, VMHOST_DELETE = 4 };

/* What effects may write. The host refuses other effects before anything is written. */
typedef struct vmhost_permission {
    const vmhost_kind *kind;
    unsigned verbs;
    VMHOST_LIST(char const *) subresources; /* only these; if empty, the object itself */
    VMHOST_LIST(char const *) namespaces;   /* only these */
    bool optional;                          /* the plugin also works without it: if it is not granted, it is left out */
} vmhost_permission;

/* The requests of a webhook; combine them with |. 0: creations and updates. */
enum { VMHOST_ON_CREATE = 1, VMHOST_ON_UPDATE = 2, VMHOST_ON_DELETE = 4, VMHOST_ON_CONNECT = 8, VMHOST_ON_ALL = 16 };

/* Requests that a webhook is asked about. The core group is ""; `resources` are plurals (`pods`,
 * `pods/exec`); each list may contain "*". */
typedef struct vmhost_rule {
    VMHOST_LIST(char const *) api_groups;
    VMHOST_LIST(char const *) api_versions;
    VMHOST_LIST(char const *) resources;
    unsigned operations;
    const char *scope; /* `*`, `Namespaced`, `Cluster` */
} vmhost_rule;

/* A CEL expression over `object`, `oldObject` and `request`. */
typedef struct vmhost_match_condition {
    const char *name, *expression;
} vmhost_match_condition;

/* An admission webhook, which `admit` answers. Its name is unique in the plugin. */
typedef struct vmhost_webhook {
    const char *name;
    bool mutating; /* may change objects */
    VMHOST_LIST(vmhost_rule) rules;
    const char *namespace_selector, *object_selector; /* JSON: label selectors */
    VMHOST_LIST(vmhost_match_condition) match_conditions;
    const char *failure_policy;      /* without an answer: `Fail`, `Ignore` */
    const char *side_effects;        /* `None`, `NoneOnDryRun` */
    uint32_t timeout_seconds;        /* 1 to 30; 0: 10 */
    const char *reinvocation_policy; /* `Never`, `IfNeeded` */
    const char *match_policy;        /* `Equivalent`, `Exact` */
    VMHOST_LIST(vmhost_watch) reads;
} vmhost_webhook;

/* A custom resource whose versions `convert` converts into each other. `resource` is the plural;
 * `reads` must not contain the kind itself. */
typedef struct vmhost_conversion {
    const char *name, *group, *kind, *resource;
    VMHOST_LIST(char const *) versions;
    VMHOST_LIST(vmhost_watch) reads;
} vmhost_conversion;

/* A change that somebody asked for, and the answer; see below. */
typedef struct vmhost_review vmhost_review;
typedef struct vmhost_verdict vmhost_verdict;
/* Objects that are to be of another version, and the result. */
typedef struct vmhost_batch vmhost_batch;
typedef struct vmhost_converted vmhost_converted;

/* A header that the host adds, with the value of a Secret's key or of an operator's setting behind
 * `prefix`. The policy never sees it. */
typedef struct vmhost_header_from {
    const char *name, *prefix;
    const char *secret_ns, *secret_name, *secret_key;
    const char *setting;
} vmhost_header_from;

/* Requests that the plugin may send to a service outside of the cluster. */
typedef struct vmhost_http_grant {
    const char *host; /* a name, *.domain, or an address */
    uint32_t port;    /* 0: 443, or 80 with the scheme http */
    const char *scheme;
    VMHOST_LIST(char const *) methods; /* if empty, GET only */
    const char *path_prefix;
    VMHOST_LIST(vmhost_header_from) headers;
    const char *url_setting; /* the operator's setting with the URL of the service */
    bool allow_private;      /* it may have a private address; the operator has to name it, too */
} vmhost_http_grant;

/* The plugin. `name` owns fields: do not change it. */
typedef struct vmhost_description {
    const char *name, *version;
    VMHOST_LIST(vmhost_controller) controllers;
    VMHOST_LIST(vmhost_webhook) webhooks;
    VMHOST_LIST(vmhost_conversion) conversions;
    VMHOST_LIST(vmhost_permission) permissions;
    VMHOST_LIST(vmhost_http_grant) http;
    VMHOST_LIST(char const *) custom_resource_definitions; /* JSON texts, installed before the start if the operator allows it */
    /* JSON: the structural schema (as openAPIV3Schema of a CustomResourceDefinition) that the
     * settings of a Plugin object have to fit. A setting that is not a string is read as JSON. */
    const char *settings_schema;
    /* Runs one turn. It must not rely on memory of earlier calls. Absent in a plugin without
     * controllers. */
    void (*reconcile)(const vmhost_request *request, vmhost_outcome *outcome);
    /* Maps changes, for watches with VMHOST_MAP_GUEST. */
    void (*map_changes)(const vmhost_map_request *request, vmhost_names *names);
    /* Answers a review of a webhook. It must give a verdict; an error is none, and the webhook's
     * failure policy decides about the request. */
    void (*admit)(const vmhost_review *review, vmhost_verdict *verdict);
    /* Converts objects: all of them, in their order. An error fails the client's request with its
     * text. */
    void (*convert)(const vmhost_batch *batch, vmhost_converted *converted);
} vmhost_description;

/* The only symbol that a plugin defines. */
extern const vmhost_description vmhost_plugin;

/* ---- what comes after the effects; the last call counts ---- */

void vmhost_await_change(vmhost_outcome *outcome);
void vmhost_requeue_after_ms(vmhost_outcome *outcome, uint32_t ms);
void vmhost_requeue(vmhost_outcome *outcome);
/* A temporary failure: counted, logged, retried. Unlike vmhost_set_error it keeps the effects. */
void vmhost_retry(vmhost_outcome *outcome, const char *format, ...) VMHOST_PRINTF(2, 3);
/* A permanent failure, which a retry cannot fix. */
void vmhost_fail(vmhost_outcome *outcome, const char *format, ...) VMHOST_PRINTF(2, 3);
/* The clean-up of an object that is being deleted is complete. */
void vmhost_finalized(vmhost_outcome *outcome);

/* ---- effects: `vmhost_patch(outcome, .key = request->key, .merge = body)` ----
 *
 * `.cluster` is absent for the cluster of the turn, the name of a member, or VMHOST_HOME for the
 * host's own cluster. The plugin needs the same permission, and a controller in that cluster. */
#define VMHOST_HOME ""

/* Server-side apply of a JSON object with apiVersion, kind and metadata.name. It takes over fields
 * of other managers and creates the object if it is absent (never with a subresource). */
struct vmhost_apply {
    const char *object, *subresource;
    bool polite;   /* fail if another manager owns a field */
    bool existing; /* do not create it */
    const char *if_version, *cluster;
};

/* Either a JSON merge patch, or a JSON patch: see VMHOST_OPERATIONS. */
struct vmhost_patch {
    vmhost_key key;
    const char *subresource, *merge, *json, *if_version, *cluster;
};

struct vmhost_create {
    const char *object, *cluster;
};

typedef enum { VMHOST_DEFAULT, VMHOST_BACKGROUND, VMHOST_FOREGROUND, VMHOST_ORPHAN } vmhost_propagation;

struct vmhost_delete {
    vmhost_key key;
    const char *uid, *if_version;
    vmhost_propagation propagation;
    const char *cluster;
};

/* An Event about the request's object. `related` is absent if it has no name. */
struct vmhost_event {
    bool warning;
    const char *reason, *action, *note;
    vmhost_key related;
};

/* An effect that this version of the contract has no case for. */
struct vmhost_other {
    const char *name, *body;
};

void vmhost_add_apply(vmhost_outcome *outcome, struct vmhost_apply apply);
void vmhost_add_patch(vmhost_outcome *outcome, struct vmhost_patch patch);
void vmhost_add_create(vmhost_outcome *outcome, struct vmhost_create create);
void vmhost_add_delete(vmhost_outcome *outcome, struct vmhost_delete delete_);
void vmhost_add_event(vmhost_outcome *outcome, struct vmhost_event event);
void vmhost_add_other(vmhost_outcome *outcome, struct vmhost_other other);

#ifndef __cplusplus
#define vmhost_apply(outcome, ...) vmhost_add_apply((outcome), (struct vmhost_apply){__VA_ARGS__})
#define vmhost_patch(outcome, ...) vmhost_add_patch((outcome), (struct vmhost_patch){__VA_ARGS__})
#define vmhost_create(outcome, ...) vmhost_add_create((outcome), (struct vmhost_create){__VA_ARGS__})
#define vmhost_delete(outcome, ...) vmhost_add_delete((outcome), (struct vmhost_delete){__VA_ARGS__})
#define vmhost_event(outcome, ...) vmhost_add_event((outcome), (struct vmhost_event){__VA_ARGS__})
#define vmhost_other(outcome, ...) vmhost_add_other((outcome), (struct vmhost_other){__VA_ARGS__})
#endif

/* In map_changes: reconcile this object of the primary kind. `ns` is NULL for a cluster-scoped
 * kind. */
void vmhost_wake(vmhost_names *names, const char *ns, const char *name);

/* ---- admission and conversion ---- */

/* A change that somebody asked for: the `request` of an AdmissionReview. Absent strings are "". */
struct vmhost_review {
    const char *webhook; /* its name in the description */
    const char *uid;
    const char *operation; /* `CREATE`, `UPDATE`, `DELETE`, `CONNECT` */
    vmhost_kind kind;
    const char *resource, *sub_resource;
    const char *name; /* "" for a new object with a generateName */
    const char *ns;   /* NULL for a cluster-scoped object */
    const char *user;
    bool dry_run;            /* nothing will be stored; the verdict must be the same */
    vmhost_value object;     /* as it would be stored; absent for a deletion */
    vmhost_value old_object; /* as it is stored; absent for a new object */
    vmhost_value request;    /* everything as it came */
};

void vmhost_allow(vmhost_verdict *verdict);
/* Refuse the request with a text that the user sees: 403 Forbidden, or another HTTP status (400 to
 * 599) and its reason (or NULL). */
void vmhost_deny(vmhost_verdict *verdict, const char *format, ...) VMHOST_PRINTF(2, 3);
void vmhost_deny_as(vmhost_verdict *verdict, uint16_t code, const char *reason, const char *format, ...) VMHOST_PRINTF(4, 5);
/* A warning for the user, whatever the verdict is; at most 120 characters are shown by all clients.
 * An annotation of the request's audit event. */
void vmhost_warning(vmhost_verdict *verdict, const char *format, ...) VMHOST_PRINTF(2, 3);
void vmhost_audit(vmhost_verdict *verdict, const char *key, const char *value);
/* Allow the request with a changed object: by an operation such as vmhost_add("/spec/a", "1"), or
 * to this whole JSON text, from which the smallest patch that the SDK finds is made. vmhost_set_at
 * makes such texts. */
void vmhost_operation(vmhost_verdict *verdict, const char *operation);
void vmhost_change_to(vmhost_verdict *verdict, const char *object);

struct vmhost_batch {
    const char *conversion; /* its name in the description */
    const char *desired;    /* the apiVersion that all objects are to have: g.io/v2 */
    const char *version;    /* v2 */
    const vmhost_value *objects;
    size_t count;
};

/* Adds the next object, as JSON text. */
void vmhost_convert_to(vmhost_converted *converted, const char *object);

/* ---- reading JSON ---- */

typedef enum { VMHOST_MISSING, VMHOST_NULL, VMHOST_BOOLEAN, VMHOST_NUMBER, VMHOST_STRING, VMHOST_ARRAY, VMHOST_OBJECT } vmhost_type;

/* Returns the value at a JSON pointer (RFC 6901: "/spec/ports/0",
 * "/metadata/labels/app.kubernetes.io~1name"; "" is the value itself). A path through a value
 * without parts, such as a number, is an error; a path through null is not. */
vmhost_value vmhost_at(vmhost_value from, const char *pointer);
vmhost_type vmhost_type_of(vmhost_value value);
/* Returns a string, unescaped; NULL if it is missing or null. (U+0000, which a C string cannot
 * contain, becomes the two bytes C0 80, and vmhost_quote converts it back.) */
const char *vmhost_string(vmhost_value from, const char *pointer);
/* Returns whether the value is a 64-bit integer. For all other numbers: vmhost_raw. */
bool vmhost_integer(vmhost_value from, const char *pointer, int64_t *result);
/* Returns whether the value is `true`. */
bool vmhost_boolean(vmhost_value from, const char *pointer);
/* Returns the value's text, exactly as written; "null" if it is missing. */
const char *vmhost_raw(vmhost_value value);

/* `for (vmhost_iterator i = vmhost_each(value); vmhost_next(&i);)` iterates over a list, or over an
 * object with `i.name`. */
typedef struct vmhost_iterator {
    const char *name;
    vmhost_value value;
    const char *rest;
} vmhost_iterator;

vmhost_iterator vmhost_each(vmhost_value container);
bool vmhost_next(vmhost_iterator *iterator);

/* ---- writing JSON: texts that are put together ---- */

/* Returns a JSON string; `null` for NULL. */
const char *vmhost_quote(const char *text);
/* Formats like printf: %s %c %d %i %u %x with h, l, ll, j, z. No floating point, which would link
 * the C library's stdio. `vmhost_format("%d", n)` is a JSON number. */
const char *vmhost_format(const char *format, ...) VMHOST_PRINTF(1, 2);
/* Return an object of alternating names and JSON texts, and a list of JSON texts. NULL becomes
 * `null`. */
const char *vmhost_object_of(const char *const *names_and_values, size_t count);
const char *vmhost_array_of(const char *const *values, size_t count);
/* Returns the text of `from` with the value at a JSON pointer set to a JSON text, or removed if that
 * is NULL. Objects on the way are created; an element of a list is replaced, or added with `-`. */
const char *vmhost_set_at(vmhost_value from, const char *pointer, const char *json);
/* The operations of a JSON patch, for VMHOST_OPERATIONS. If a test fails, nothing changes, and the
 * host retries the key. */
const char *vmhost_test(const char *path, const char *value);
const char *vmhost_add(const char *path, const char *value);
const char *vmhost_replace(const char *path, const char *value);
const char *vmhost_remove(const char *path);

#ifndef __cplusplus
#define VMHOST_TEXTS(...) ((const char *const[]){__VA_ARGS__}), sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *)
/* VMHOST_OBJECT_OF("status", VMHOST_OBJECT_OF("message", vmhost_quote(text))) */
#define VMHOST_OBJECT_OF(...) vmhost_object_of(VMHOST_TEXTS(__VA_ARGS__))
#define VMHOST_ARRAY_OF(...) vmhost_array_of(VMHOST_TEXTS(__VA_ARGS__))
#define VMHOST_OPERATIONS(...) VMHOST_ARRAY_OF(__VA_ARGS__)
/* JSON as source: VMHOST_JSON({"apiVersion": "v1", "data": {"k": "v"}}) */
#define VMHOST_JSON(...) #__VA_ARGS__
#endif

/* ---- reading the cluster: all kinds are named in the description ---- */

typedef enum { VMHOST_READ_OK, VMHOST_NOT_WATCHED, VMHOST_TOO_LARGE, VMHOST_INVALID, VMHOST_UNAVAILABLE } vmhost_read_code;

/* Why a read was refused. Every read takes a pointer to one; with NULL a refusal is the turn's
 * error. A missing object is not an error. */
typedef struct vmhost_read_error {
    vmhost_read_code code;
    const char *text; /* the kind that is not watched, or the reason */
    uint32_t limit;   /* of VMHOST_TOO_LARGE, in bytes */
} vmhost_read_error;

/* Which objects to list; all conditions must hold. */
typedef struct vmhost_query {
    vmhost_kind kind;
    const char *ns, *label_selector, *index, *index_value, *owner;
    bool metadata_only;
    uint32_t limit;   /* objects per page; 0: 500 */
    const char *next; /* the `next` of the page before */
} vmhost_query;

typedef struct vmhost_page {
    const vmhost_value *objects;
    size_t count;
    const char *next; /* NULL after the last page */
} vmhost_page;

vmhost_value vmhost_get(vmhost_key key, vmhost_read_error *error);
vmhost_value vmhost_get_live(vmhost_key key, vmhost_read_error *error);
/* Returns as many values as keys, in their order; NULL if the read was refused. */
const vmhost_value *vmhost_get_many(const vmhost_key *keys, size_t count, vmhost_read_error *error);
vmhost_page vmhost_list(vmhost_query query, vmhost_read_error *error);
vmhost_page vmhost_list_live(vmhost_query query, vmhost_read_error *error);
/* Returns all pages of the cache as one. */
vmhost_page vmhost_list_all(vmhost_query query, vmhost_read_error *error);
/* Returns a setting of the operator; NULL if it is not set. */
const char *vmhost_setting(const char *name);

/* ---- HTTP requests: all services are named in the description ---- */

typedef struct vmhost_http_header {
    const char *name, *value;
} vmhost_http_header;

typedef struct vmhost_http_request {
    const char *method; /* NULL: GET */
    const char *url;
    const vmhost_http_header *headers; /* the last one is zero: VMHOST_HEADERS */
    const char *body;
    size_t body_size;    /* 0: up to the NUL */
    uint32_t timeout_ms; /* 0: what is left of the call's time */
} vmhost_http_request;

/* What came back, whatever its status. */
typedef struct vmhost_http_response {
    int status;                        /* 0: there is none */
    const vmhost_http_header *headers; /* with names in lower case; the last one is zero */
    const char *body;                  /* with a NUL at its end */
    size_t body_size;
} vmhost_http_response;

typedef enum {
    VMHOST_HTTP_OK,
    VMHOST_HTTP_DENIED,
    VMHOST_HTTP_INVALID,
    VMHOST_HTTP_NOT_SENT,
    VMHOST_HTTP_NO_ANSWER, /* it may have been carried out */
    VMHOST_HTTP_TOO_LARGE
} vmhost_http_code;

typedef struct vmhost_http_error {
    vmhost_http_code code;
    const char *text;
} vmhost_http_error;

/* Sends a request and waits for the whole response. With NULL for `error`, no response is the
 * turn's error. */
vmhost_http_response vmhost_http(vmhost_http_request request, vmhost_http_error *error);
/* Returns the first value of a header, whose name is in lower case; NULL if there is none. */
const char *vmhost_http_header_of(vmhost_http_response response, const char *name);

/* ---- log, errors, memory ---- */

typedef enum { VMHOST_TRACE, VMHOST_DEBUG, VMHOST_INFO, VMHOST_WARN, VMHOST_ERROR } vmhost_level;

/* Formats as vmhost_format does. */
void vmhost_log(vmhost_level level, const char *format, ...) VMHOST_PRINTF(2, 3);
#define vmhost_trace(...) vmhost_log(VMHOST_TRACE, __VA_ARGS__)
#define vmhost_debug(...) vmhost_log(VMHOST_DEBUG, __VA_ARGS__)
#define vmhost_info(...) vmhost_log(VMHOST_INFO, __VA_ARGS__)
#define vmhost_warn(...) vmhost_log(VMHOST_WARN, __VA_ARGS__)
#define vmhost_error(...) vmhost_log(VMHOST_ERROR, __VA_ARGS__)

void vmhost_set_error(const char *format, ...) VMHOST_PRINTF(1, 2);
bool vmhost_has_error(void);
/* Returns zeroed memory for the rest of the call. Traps when there is none left. */
void *vmhost_alloc(size_t size);

/* ---- metadata of all objects ---- */

/* Return an element of metadata.ownerReferences that names `owner`, as controller or as plain
 * owner. */
const char *vmhost_controller_reference(vmhost_value owner);
const char *vmhost_owner_reference(vmhost_value owner);
/* Returns the owner reference of the object's controller. */
vmhost_value vmhost_controller_of(vmhost_value object);
bool vmhost_is_controlled_by(vmhost_value object, const char *uid);
bool vmhost_has_finalizer(vmhost_value object, const char *finalizer);

typedef enum { VMHOST_UNKNOWN, VMHOST_TRUE, VMHOST_FALSE } vmhost_status;

struct vmhost_condition {
    const char *type;
    vmhost_status status;
    const char *reason, *message;
    int64_t observed_generation;      /* 0: unset */
    const char *last_transition_time; /* NULL: now */
};

/* Returns the list as JSON, with this condition in place of the one of its type. The transition
 * time changes only if the status does. `changed` may be NULL. Reads the clock. */
const char *vmhost_set_condition(vmhost_value conditions, struct vmhost_condition condition, bool *changed);
const char *vmhost_remove_condition(vmhost_value conditions, const char *type, bool *changed);
vmhost_value vmhost_find_condition(vmhost_value conditions, const char *type);
bool vmhost_condition_is(vmhost_value conditions, const char *type, vmhost_status status);
/* Formats seconds since 1970 as Kubernetes does. Earlier times become 1970. */
const char *vmhost_rfc3339(int64_t seconds);

#ifdef __cplusplus
}
#endif
#endif
