/* meta.c: the common fields of objects: owner references, finalizers and status conditions, with
 * the semantics of k8s.io/apimachinery. */
#include "internal.h"

#include <string.h>
#include <time.h>

static bool is(vmhost_value from, const char *pointer, const char *wanted) {
    const char *have = vmhost_string(from, pointer);
    return have && wanted && !strcmp(have, wanted);
}

/* ---- owners and finalizers ---- */

static const char *reference(vmhost_value owner, bool controls) {
    const char *parts[] = {
        "apiVersion",
        vmhost_raw(vmhost_at(owner, "/apiVersion")),
        "kind",
        vmhost_raw(vmhost_at(owner, "/kind")),
        "name",
        vmhost_raw(vmhost_at(owner, "/metadata/name")),
        "uid",
        vmhost_raw(vmhost_at(owner, "/metadata/uid")),
        "controller",
        "true",
        "blockOwnerDeletion",
        "true",
    };
    return vmhost_object_of(parts, controls ? 12 : 8);
}

const char *vmhost_controller_reference(vmhost_value owner) { return reference(owner, true); }

const char *vmhost_owner_reference(vmhost_value owner) { return reference(owner, false); }

vmhost_value vmhost_controller_of(vmhost_value object) {
    for (vmhost_iterator i = vmhost_each(vmhost_at(object, "/metadata/ownerReferences")); vmhost_next(&i);)
        if (vmhost_boolean(i.value, "/controller")) return i.value;
    return (vmhost_value){NULL};
}

bool vmhost_is_controlled_by(vmhost_value object, const char *uid) { return is(vmhost_controller_of(object), "/uid", uid); }

bool vmhost_has_finalizer(vmhost_value object, const char *finalizer) {
    for (vmhost_iterator i = vmhost_each(vmhost_at(object, "/metadata/finalizers")); vmhost_next(&i);)
        if (is(i.value, "", finalizer)) return true;
    return false;
}

/* ---- conditions ---- */

static const char *const statuses[] = {"Unknown", "True", "False"};

vmhost_value vmhost_find_condition(vmhost_value conditions, const char *type) {
    for (vmhost_iterator i = vmhost_each(conditions); vmhost_next(&i);)
        if (is(i.value, "/type", type)) return i.value;
    return (vmhost_value){NULL};
}

bool vmhost_condition_is(vmhost_value conditions, const char *type, vmhost_status status) {
    return is(vmhost_find_condition(conditions, type), "/status", statuses[status]);
}

/* Returns the list with `with` in place of the condition of this type, or at its end; NULL removes
 * the condition. */
static const char *replace(vmhost_value conditions, const char *type, const char *with) {
    text result = {0};
    const char *comma = "[";
    for (vmhost_iterator i = vmhost_each(conditions); vmhost_next(&i);) {
        const char *element = is(i.value, "/type", type) ? with : vmhost_raw(i.value);
        if (!element) continue;
        text_puts(&result, comma);
        text_puts(&result, element);
        comma = ",";
        if (element == with) with = NULL;
    }
    if (with) {
        text_puts(&result, comma);
        text_puts(&result, with);
    }
    text_puts(&result, result.length ? "]" : "[]");
    return text_end(&result);
}

const char *vmhost_remove_condition(vmhost_value conditions, const char *type, bool *changed) {
    if (changed) *changed = vmhost_find_condition(conditions, type).text != NULL;
    return replace(conditions, type, NULL);
}

const char *vmhost_set_condition(vmhost_value conditions, struct vmhost_condition condition, bool *changed) {
    const char *status = statuses[condition.status], *since = NULL;
    vmhost_value old = vmhost_find_condition(conditions, condition.type);
    if (is(old, "/status", status)) since = vmhost_string(old, "/lastTransitionTime");
    if (!since) since = condition.last_transition_time;
    if (!since) since = vmhost_rfc3339((int64_t)time(NULL));
    const char *reason = condition.reason ? condition.reason : "", *message = condition.message ? condition.message : "";
    int64_t generation = 0;
    vmhost_integer(old, "/observedGeneration", &generation);
    if (changed)
        *changed = !is(old, "/status", status) || !is(old, "/reason", reason) || !is(old, "/message", message) || generation != condition.observed_generation ||
                   !is(old, "/lastTransitionTime", since);
    const char *parts[12] = {"type", vmhost_quote(condition.type), "status", vmhost_quote(status)};
    size_t count = 4;
    if (condition.observed_generation) {
        parts[count++] = "observedGeneration";
        parts[count++] = vmhost_format("%lld", (long long)condition.observed_generation);
    }
    const char *rest[] = {"lastTransitionTime", vmhost_quote(since), "reason", vmhost_quote(reason), "message", vmhost_quote(message)};
    memcpy(parts + count, rest, sizeof rest);
    return replace(conditions, condition.type, vmhost_object_of(parts, count + 6));
}

/* ---- time ---- */

static const char *digits(int64_t number, unsigned width) {
    char *start = vmhost_alloc(width + 1);
    for (; width--; number /= 10) start[width] = (char)('0' + number % 10);
    return start;
}

/* Years begin in March here, so that the leap day is the last day (Howard Hinnant,
 * "chrono-compatible low-level date algorithms"). */
const char *vmhost_rfc3339(int64_t seconds) {
    if (seconds < 0) seconds = 0;
    int64_t days = seconds / 86400 + 719468, era = days / 146097, of_era = days % 146097;
    int64_t year_of_era = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t from_march = (5 * of_year + 2) / 153, day = of_year - (153 * from_march + 2) / 5 + 1;
    int64_t month = from_march < 10 ? from_march + 3 : from_march - 9, year = year_of_era + era * 400 + (month <= 2);
    seconds %= 86400;
    return vmhost_format("%s-%s-%sT%s:%s:%sZ", digits(year, 4), digits(month, 2), digits(day, 2), digits(seconds / 3600, 2), digits(seconds / 60 % 60, 2),
                         digits(seconds % 60, 2));
}
