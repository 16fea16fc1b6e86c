/* read.c: reads of the cluster, with typed errors. */
#include "internal.h"

#include <string.h>

/* Returns the refusal to the caller. If `error` is NULL, the refusal becomes the turn's error and
 * names what was read. */
static void refused(vmhost_plugin_cluster_read_error_t from, const char *what, vmhost_read_error *error) {
    vmhost_read_error result = {.code = (vmhost_read_code)(from.tag + VMHOST_NOT_WATCHED)};
    if (result.code == VMHOST_TOO_LARGE) result.limit = from.val.too_large;
    else result.text = in(from.val.invalid);
    if (error) {
        *error = result;
    } else if (result.code == VMHOST_NOT_WATCHED) {
        vmhost_set_error("%s cannot be read: the description does not let this controller read %s", what, result.text);
    } else if (result.code == VMHOST_TOO_LARGE) {
        vmhost_set_error("%s cannot be read: the answer is larger than %u bytes", what, (unsigned)result.limit);
    } else {
        vmhost_set_error("%s cannot be read%s: %s", what, result.code == VMHOST_UNAVAILABLE ? " live" : "", result.text);
    }
}

static const char *named(vmhost_key key) {
    const char *kind = key.kind.kind ? key.kind.kind : "", *name = key.name ? key.name : "";
    return key.ns ? vmhost_format("%s %s/%s", kind, key.ns, name) : vmhost_format("%s %s", kind, name);
}

typedef bool get_function(vmhost_plugin_cluster_object_key_t *, vmhost_plugin_cluster_option_json_t *, vmhost_plugin_cluster_read_error_t *);
typedef bool list_function(vmhost_plugin_cluster_query_t *, vmhost_plugin_cluster_page_t *, vmhost_plugin_cluster_read_error_t *);

static vmhost_value get(get_function *read, vmhost_key key, vmhost_read_error *error) {
    vmhost_plugin_cluster_object_key_t asked = out_key(key);
    vmhost_plugin_cluster_option_json_t answer;
    vmhost_plugin_cluster_read_error_t refusal;
    if (error) *error = (vmhost_read_error){0};
    if (!read(&asked, &answer, &refusal)) {
        refused(refusal, named(key), error);
        return (vmhost_value){NULL};
    }
    return (vmhost_value){answer.is_some ? in(answer.val) : NULL};
}

vmhost_value vmhost_get(vmhost_key key, vmhost_read_error *error) { return get(vmhost_plugin_cluster_get, key, error); }

vmhost_value vmhost_get_live(vmhost_key key, vmhost_read_error *error) { return get(vmhost_plugin_cluster_get_live, key, error); }

const vmhost_value *vmhost_get_many(const vmhost_key *keys, size_t count, vmhost_read_error *error) {
    vmhost_plugin_cluster_list_object_key_t asked = {NULL, 0};
    vmhost_plugin_cluster_list_option_json_t answer;
    vmhost_plugin_cluster_read_error_t refusal;
    if (error) *error = (vmhost_read_error){0};
    for (; asked.len < count; asked.len++) {
        asked.ptr = list_room(asked.ptr, asked.len, sizeof *asked.ptr);
        asked.ptr[asked.len] = out_key(keys[asked.len]);
    }
    if (!vmhost_plugin_cluster_get_many(&asked, &answer, &refusal)) {
        refused(refusal, "a list of keys", error);
        return NULL;
    }
    vmhost_value *values = vmhost_alloc(count * sizeof *values);
    for (size_t i = 0; i < answer.len && i < count; i++) values[i].text = answer.ptr[i].is_some ? in(answer.ptr[i].val) : NULL;
    return values;
}

static vmhost_page list(list_function *read, vmhost_query query, vmhost_read_error *error) {
    vmhost_plugin_cluster_query_t asked = {
        .kind = out_kind(query.kind),
        .namespace_ = out_option(query.ns),
        .label_selector = out_option(query.label_selector),
        .owner = out_option(query.owner),
        .metadata_only = query.metadata_only,
        .limit = query.limit,
        .continue_ = out_option(query.next),
    };
    if (query.index) {
        asked.index.is_some = true;
        asked.index.val = (vmhost_plugin_cluster_index_match_t){out(query.index), out(query.index_value)};
    }
    vmhost_plugin_cluster_page_t answer;
    vmhost_plugin_cluster_read_error_t refusal;
    if (error) *error = (vmhost_read_error){0};
    if (!read(&asked, &answer, &refusal)) {
        refused(refusal, vmhost_format("the list of %s", query.kind.kind), error);
        return (vmhost_page){0};
    }
    vmhost_value *objects = vmhost_alloc(answer.objects.len * sizeof *objects);
    for (size_t i = 0; i < answer.objects.len; i++) objects[i].text = in(answer.objects.ptr[i]);
    return (vmhost_page){objects, answer.objects.len, in_option(answer.continue_)};
}

vmhost_page vmhost_list(vmhost_query query, vmhost_read_error *error) { return list(vmhost_plugin_cluster_list, query, error); }

vmhost_page vmhost_list_live(vmhost_query query, vmhost_read_error *error) { return list(vmhost_plugin_cluster_list_live, query, error); }

vmhost_page vmhost_list_all(vmhost_query query, vmhost_read_error *error) {
    vmhost_page all = vmhost_list(query, error);
    while (all.next) {
        query.next = all.next;
        vmhost_page page = vmhost_list(query, error);
        if (!page.objects) return page;
        vmhost_value *objects = vmhost_alloc((all.count + page.count) * sizeof *objects);
        memcpy(objects, all.objects, all.count * sizeof *objects);
        memcpy(objects + all.count, page.objects, page.count * sizeof *objects);
        all = (vmhost_page){objects, all.count + page.count, page.next};
    }
    return all;
}
