// vmhost.hpp: vmhost.h for C++20. A thin layer: typed values, JSON from C++ values, effects as
// methods. No exceptions, no RTTI, no ownership: vmhost.h describes memory (a plugin frees nothing)
// and errors. The description uses the structures of vmhost.h; its lists are braced lists.
#ifndef VMHOST_HPP
#define VMHOST_HPP

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>

#include "vmhost.h"

namespace vmhost {

using Kind = vmhost_kind;
using Key = vmhost_key;
using Description = vmhost_description;
using Query = vmhost_query;
using ReadError = vmhost_read_error;
using Condition = vmhost_condition;

// A member of an object, or an element of a list.
struct Member;

// A JSON value in place; false if it is missing. Pointers are JSON pointers: "/spec/ports/0".
class Value : public vmhost_value {
  public:
    constexpr Value() : vmhost_value{nullptr} {}
    constexpr Value(vmhost_value from) : vmhost_value(from) {}
    explicit operator bool() const { return text != nullptr; }
    Value operator[](const char *pointer) const { return vmhost_at(*this, pointer); }
    vmhost_type type() const { return vmhost_type_of(*this); }
    // Returns nothing if the value is missing or null; any other type is the turn's error.
    std::optional<std::string_view> string(const char *pointer = "") const {
        const char *found = vmhost_string(*this, pointer);
        return found ? std::optional<std::string_view>(found) : std::nullopt;
    }
    std::optional<int64_t> integer(const char *pointer = "") const {
        int64_t found;
        return vmhost_integer(*this, pointer, &found) ? std::optional<int64_t>(found) : std::nullopt;
    }
    bool boolean(const char *pointer = "") const { return vmhost_boolean(*this, pointer); }
    // Returns the value's text, exactly as written.
    const char *raw() const { return vmhost_raw(*this); }
    // Returns the text with the value at `pointer` set to a JSON text, or removed for nullptr.
    const char *with(const char *pointer, const char *json) const { return vmhost_set_at(*this, pointer, json); }

    class Iterator;
    Iterator begin() const;
    Iterator end() const;
};

struct Member {
    const char *name; // nullptr in a list
    Value value;
};

class Value::Iterator {
  public:
    explicit Iterator(vmhost_iterator from) : at(from) {}
    Iterator &operator++() {
        if (!vmhost_next(&at)) at = {};
        return *this;
    }
    Member operator*() const { return {at.name, at.value}; }
    bool operator!=(const Iterator &other) const { return at.value.text != other.at.value.text; }

  private:
    vmhost_iterator at;
};

inline Value::Iterator Value::begin() const { return ++Iterator(vmhost_each(*this)); }
inline Value::Iterator Value::end() const { return Iterator({}); }

// JSON text, built from C++ values: Json{"text"}, Json{1}, Json::object({{"a", 1}, {"b",
// nullptr}}), Json::array({1, "x"}).
class Json {
  public:
    Json(const char *string) : text(vmhost_quote(string)) {}
    Json(std::string_view string) : text(vmhost_quote(vmhost_format("%s", copy(string)))) {}
    Json(std::nullptr_t) : text("null") {}
    Json(std::same_as<bool> auto value) : text(value ? "true" : "false") {}
    Json(std::signed_integral auto value) : text(vmhost_format("%lld", static_cast<long long>(value))) {}
    Json(std::unsigned_integral auto value)
        requires(!std::same_as<decltype(value), bool>)
        : text(vmhost_format("%llu", static_cast<unsigned long long>(value))) {}
    Json(Value value) : text(value.raw()) {}
    // Returns text that is already JSON.
    static Json raw(const char *json) { return Json(json, 0); }

    static Json array(std::initializer_list<Json> values) {
        auto *parts = static_cast<const char **>(vmhost_alloc(values.size() * sizeof(const char *)));
        size_t count = 0;
        for (const Json &value : values) parts[count++] = value.text;
        return raw(vmhost_array_of(parts, count));
    }
    static Json object(std::initializer_list<std::pair<const char *, Json>> members) {
        auto *parts = static_cast<const char **>(vmhost_alloc(members.size() * 2 * sizeof(const char *)));
        size_t count = 0;
        for (const auto &[name, value] : members) {
            parts[count++] = name;
            parts[count++] = value.text;
        }
        return raw(vmhost_object_of(parts, count));
    }
    operator const char *() const { return text; }

  private:
    Json(const char *json, int) : text(json) {}
    static const char *copy(std::string_view string) {
        auto *start = static_cast<char *>(vmhost_alloc(string.size() + 1));
        string.copy(start, string.size());
        return start;
    }
    const char *text;
};

// A JSON patch, operation by operation. If a test fails, nothing changes, and the host retries the
// key.
class Operations {
  public:
    Operations test(const char *path, Json value) const { return with(vmhost_test(path, value)); }
    Operations add(const char *path, Json value) const { return with(vmhost_add(path, value)); }
    Operations replace(const char *path, Json value) const { return with(vmhost_replace(path, value)); }
    Operations remove(const char *path) const { return with(vmhost_remove(path)); }
    operator const char *() const { return vmhost_format("[%s]", list); }

  private:
    Operations with(const char *operation) const {
        Operations longer;
        longer.list = vmhost_format("%s%s%s", list, *list ? "," : "", operation);
        return longer;
    }
    const char *list = "";
};

struct Request {
    const char *controller;
    Key key;
    Value object, previous;
    bool deleting;
    uint32_t attempt;
    const vmhost_refusal *last; // nullptr if no effect was refused
};

// The result of a turn: outcome.patch({.key = request.key, .merge = Json::object(...)}).
class Outcome {
  public:
    explicit Outcome(vmhost_outcome *to) : to(to) {}
    void apply(struct vmhost_apply effect) { vmhost_add_apply(to, effect); }
    void patch(struct vmhost_patch effect) { vmhost_add_patch(to, effect); }
    void create(struct vmhost_create effect) { vmhost_add_create(to, effect); }
    void remove(struct vmhost_delete effect) { vmhost_add_delete(to, effect); }
    void event(struct vmhost_event effect) { vmhost_add_event(to, effect); }
    void other(struct vmhost_other effect) { vmhost_add_other(to, effect); }

    void await_change() { vmhost_await_change(to); }
    void requeue_after_ms(uint32_t ms) { vmhost_requeue_after_ms(to, ms); }
    void requeue() { vmhost_requeue(to); }
    void retry(const char *message) { vmhost_retry(to, "%s", message); }
    void fail(const char *message) { vmhost_fail(to, "%s", message); }
    void finalized() { vmhost_finalized(to); }

  private:
    vmhost_outcome *to;
};

// For the description: `.reconcile = vmhost::turn<reconcile>` of a
// `void reconcile(const Request &, Outcome &)`.
template <void (*policy)(const Request &, Outcome &)> void turn(const vmhost_request *from, vmhost_outcome *to) {
    Outcome outcome(to);
    policy({from->controller, from->key, from->object, from->previous, from->deleting, from->attempt, from->last}, outcome);
}

// A change that somebody asked for: see vmhost_review.
struct Review {
    const char *webhook, *uid, *operation;
    Kind kind;
    const char *resource, *sub_resource, *name;
    const char *ns; // nullptr for a cluster-scoped object
    const char *user;
    bool dry_run;
    Value object, old_object, request;
};

// The answer to a review: verdict.deny("no"). A policy must give one.
class Verdict {
  public:
    explicit Verdict(vmhost_verdict *to) : to(to) {}
    void allow() { vmhost_allow(to); }
    void deny(const char *message) { vmhost_deny(to, "%s", message); }
    void deny_as(uint16_t code, const char *reason, const char *message) { vmhost_deny_as(to, code, reason, "%s", message); }
    void warning(const char *message) { vmhost_warning(to, "%s", message); }
    void audit(const char *key, const char *value) { vmhost_audit(to, key, value); }
    // Allow the request with a changed object: by one operation, or to this whole JSON text.
    void add(const char *path, Json value) { vmhost_operation(to, vmhost_add(path, value)); }
    void replace(const char *path, Json value) { vmhost_operation(to, vmhost_replace(path, value)); }
    void remove(const char *path) { vmhost_operation(to, vmhost_remove(path)); }
    void change_to(const char *object) { vmhost_change_to(to, object); }

  private:
    vmhost_verdict *to;
};

// For the description: `.admit = vmhost::admit<admit>` of a `void admit(const Review &, Verdict &)`.
template <void (*policy)(const Review &, Verdict &)> void admit(const vmhost_review *from, vmhost_verdict *to) {
    Verdict verdict(to);
    policy({from->webhook, from->uid, from->operation, from->kind, from->resource, from->sub_resource, from->name, from->ns, from->user, from->dry_run,
            from->object, from->old_object, from->request},
           verdict);
}

using Batch = vmhost_batch;

// For the description: `.convert = vmhost::convert<convert>` of a
// `const char *convert(Value object, const Batch &)`, which returns the JSON text of one object.
// Objects that have the desired version stay as they are, and `apiVersion` is set afterwards.
template <const char *(*policy)(Value, const Batch &)> void convert(const vmhost_batch *batch, vmhost_converted *to) {
    for (size_t i = 0; i < batch->count; i++) {
        Value object = batch->objects[i];
        if (object.string("/apiVersion") == batch->desired) {
            vmhost_convert_to(to, object.raw());
            continue;
        }
        const char *converted = policy(object, *batch);
        vmhost_convert_to(to, vmhost_set_at({converted}, "/apiVersion", vmhost_quote(batch->desired)));
    }
}

struct Page {
    const vmhost_value *objects;
    size_t count;
    const char *next; // nullptr after the last page
    const vmhost_value *begin() const { return objects; }
    const vmhost_value *end() const { return objects + count; }
};

// Reads: a refusal is the turn's error, unless the caller passes `error`.
inline Value get(Key key, ReadError *error = nullptr) { return vmhost_get(key, error); }
inline Value get_live(Key key, ReadError *error = nullptr) { return vmhost_get_live(key, error); }
inline Page page(vmhost_page from) { return {from.objects, from.count, from.next}; }
inline Page list(Query query, ReadError *error = nullptr) { return page(vmhost_list(query, error)); }
inline Page list_live(Query query, ReadError *error = nullptr) { return page(vmhost_list_live(query, error)); }
inline Page list_all(Query query, ReadError *error = nullptr) { return page(vmhost_list_all(query, error)); }
// Sends an HTTP request. No response is the turn's error, unless the caller passes `error`.
inline vmhost_http_response http(vmhost_http_request request, vmhost_http_error *error = nullptr) { return vmhost_http(request, error); }
inline std::optional<std::string_view> setting(const char *name) {
    const char *found = vmhost_setting(name);
    return found ? std::optional<std::string_view>(found) : std::nullopt;
}

} // namespace vmhost
#endif
