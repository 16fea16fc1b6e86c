//! The description of a plugin, and its JSON (wit/v1/description.schema.json). An absent field has
//! the default of the contract.

const std = @import("std");
const Text = @import("text.zig").Text;
const webhook = @import("webhook.zig");

/// A group, version and kind. The core group is empty.
pub const Kind = struct { group: []const u8 = "", version: []const u8, kind: []const u8 };

/// The plugin. `name` owns fields: do not change it.
pub const Description = struct {
    name: []const u8,
    version: []const u8 = "",
    controllers: []const Controller = &.{},
    webhooks: []const webhook.Webhook = &.{},
    conversions: []const webhook.Conversion = &.{},
    permissions: []const Permission = &.{},
    /// The HTTP requests that the plugin may send.
    http: []const HttpGrant = &.{},
    /// JSON texts, installed before the controllers start if the operator allows it.
    custom_resource_definitions: []const []const u8 = &.{},
    /// JSON: the structural schema (as `openAPIV3Schema` of a CustomResourceDefinition) that the
    /// settings of a Plugin object have to fit. A setting that is not a string is read as JSON.
    settings_schema: ?[]const u8 = null,
};

/// One controller: its keys are the objects of `primary`, or it has a `timer`.
pub const Controller = struct {
    name: []const u8,
    primary: ?Watch = null,
    timer: ?Timer = null,
    owns: []const Watch = &.{},
    watches: []const Watch = &.{},
    reads: []const Watch = &.{},
    /// Added to each object before the policy first sees it. For a deletion the policy is called
    /// with `deleting`, and returns `.finalized`.
    finalizer: ?[]const u8 = null,
    /// `turn.previous` holds the object as of the last turn that succeeded.
    previous: bool = false,
    event_source: ?[]const u8 = null,
    concurrency: ?u32 = null,
    retry: ?Retry = null,
    /// In which clusters the keys are: `home` (the default), `members`, or a label selector of
    /// them.
    clusters: ?[]const u8 = null,
};

pub const Timer = union(enum) { every_ms: u32, once: bool };

/// The back-off of a failing key.
pub const Retry = struct { base_ms: ?u32 = null, cap_ms: ?u32 = null, max_retries: ?u32 = null, bucket: ?Bucket = null };

pub const Bucket = struct { per_second: u32, burst: u32 };

/// A kind that a controller watches or reads.
pub const Watch = struct {
    kind: Kind,
    label_selector: ?[]const u8 = null,
    field_selector: ?[]const u8 = null,
    /// Cache only these dotted paths and the metadata.
    wanted_fields: ?[]const []const u8 = null,
    metadata_only: bool = false,
    indexes: []const Index = &.{},
    predicates: ?Predicates = null,
    /// Which keys a change wakes; only in `watches`.
    map: ?Map = null,
    /// Only in `reads`: nothing is cached, and only live reads work.
    live: bool = false,
};

pub const Index = struct { name: []const u8, path: []const u8 };

/// Which changes wake keys; all conditions must hold. A deletion always wakes keys.
pub const Predicates = struct {
    changed: []const Changed = &.{},
    label_selector: ?[]const u8 = null,
    field_selector: ?[]const u8 = null,
    cel: ?[]const u8 = null,
};

pub const Changed = enum { generation, labels, annotations, resource_version };

/// The primary of the same name, in its owner references, or in its controller reference; the keys
/// that `mapChanges` returns; or those by the value of a label, a field, or an index.
pub const Map = union(enum) { name, owner, controller, guest, label: []const u8, field: []const u8, index: []const u8 };

/// What effects may write. `.patch` covers apply and patch.
pub const Permission = struct {
    kind: Kind,
    verbs: []const Verb,
    subresources: []const []const u8 = &.{},
    namespaces: []const []const u8 = &.{},
    /// The plugin also works without it: if it is not granted, it is left out.
    optional: bool = false,
};

/// Requests to a service outside of the cluster.
pub const HttpGrant = struct {
    /// A name, `*.domain`, or an address.
    host: []const u8,
    port: ?u16 = null,
    scheme: ?enum { https, http } = null,
    /// If empty, GET only.
    methods: []const []const u8 = &.{},
    path_prefix: ?[]const u8 = null,
    headers: []const HttpHeader = &.{},
    /// The operator's setting with the URL of the service, which replaces scheme, host and port.
    url_setting: ?[]const u8 = null,
    /// It may have a private address; the operator has to name it, too.
    allow_private: bool = false,
};

/// A header that the host adds, with the value of a Secret's key or of an operator's setting. The
/// policy never sees it.
pub const HttpHeader = struct {
    name: []const u8,
    /// What stands before the value: `Bearer `.
    prefix: []const u8 = "",
    secret: ?struct { namespace: []const u8, name: []const u8, key: []const u8 } = null,
    setting: ?[]const u8 = null,
};

pub const Verb = enum { create, patch, delete };

/// Returns the document that `describe` returns.
pub fn toJson(arena: std.mem.Allocator, description: Description) ![]const u8 {
    var out: Text = .{ .allocator = arena };
    var json: std.json.Stringify = .{ .writer = &out.writer };
    try json.beginObject();
    try member(&json, "apiVersion", @as([]const u8, "vmhost/v1"));
    inline for (.{ "name", "version", "controllers", "webhooks", "conversions", "permissions", "http" }) |name| try member(&json, name, @field(description, name));
    if (description.custom_resource_definitions.len > 0) {
        try json.objectField("setup");
        try json.beginObject();
        try json.objectField("customResourceDefinitions");
        try json.beginArray();
        for (description.custom_resource_definitions) |definition| try json.print("{s}", .{definition});
        try json.endArray();
        try json.endObject();
    }
    try member(&json, "settings_schema", description.settings_schema);
    try json.endObject();
    return out.written.items;
}

/// Writes a member, unless it is absent.
fn member(json: *std.json.Stringify, comptime name: []const u8, field: anytype) !void {
    switch (@typeInfo(@TypeOf(field))) {
        .optional => return if (field) |given| member(json, name, given),
        .bool => if (!field) return,
        .pointer => if (field.len == 0 and comptime !std.mem.eql(u8, name, "wanted_fields")) return,
        else => {},
    }
    // A kind is among the fields of its watch.
    if (@TypeOf(field) == Kind) return members(json, field);
    try json.objectField(comptime &camel(name));
    // Schemas and label selectors are JSON text; the selectors of watches are in kubectl's form.
    const is_json = comptime for ([_][]const u8{ "settings_schema", "namespace_selector", "object_selector" }) |text| {
        if (std.mem.eql(u8, name, text)) break true;
    } else false;
    if (is_json) try json.print("{s}", .{field}) else try value(json, field);
}

fn members(json: *std.json.Stringify, from: anytype) !void {
    inline for (@typeInfo(@TypeOf(from)).@"struct".fields) |field| try member(json, field.name, @field(from, field.name));
}

fn value(json: *std.json.Stringify, from: anytype) std.Io.Writer.Error!void {
    const T = @TypeOf(from);
    if (T == []const u8) return json.write(from);
    if (T == []const Index) {
        try json.beginObject();
        for (from) |index| {
            try json.objectField(index.name);
            try json.write(index.path);
        }
        return json.endObject();
    }
    switch (@typeInfo(T)) {
        .pointer => {
            try json.beginArray();
            for (from) |element| try value(json, element);
            try json.endArray();
        },
        .@"struct" => {
            try json.beginObject();
            try members(json, from);
            try json.endObject();
        },
        .@"union" => switch (from) {
            inline else => |payload, tag| if (@TypeOf(payload) == void) {
                try json.write(@tagName(tag));
            } else {
                try json.beginObject();
                try json.objectField(comptime &camel(@tagName(tag)));
                try json.write(payload);
                try json.endObject();
            },
        },
        .@"enum" => switch (from) {
            inline else => |tag| try json.write(comptime @as([]const u8, &camel(@tagName(tag)))),
        },
        else => try json.write(from),
    }
}

/// Returns the camelCase form: every_ms becomes everyMs.
fn camel(comptime snake: []const u8) [snake.len - std.mem.count(u8, snake, "_")]u8 {
    var name: [snake.len - std.mem.count(u8, snake, "_")]u8 = undefined;
    var at: usize = 0;
    for (snake, 0..) |letter, i| {
        if (letter == '_') continue;
        name[at] = if (i > 0 and snake[i - 1] == '_') std.ascii.toUpper(letter) else letter;
        at += 1;
    }
    return name;
}
