//! Reads of the cluster and of the operator's settings.

const std = @import("std");
const bindings = @import("bindings.zig");
const effects = @import("effects.zig");
const vmhost = @import("vmhost.zig");

/// Why a read was refused. A missing object is not an error. `lastReadError` returns the details.
pub const ReadFailure = error{ NotWatched, TooLarge, Invalid, Unavailable };

pub const ReadError = union(enum) {
    /// The description does not name this kind.
    not_watched: []const u8,
    /// The answer is larger than this many bytes.
    too_large: u32,
    /// The query is invalid.
    invalid: []const u8,
    /// A live read was not answered, or was refused.
    unavailable: []const u8,
};

/// Selects the objects to list; all conditions must hold.
pub const Query = struct {
    kind: vmhost.Kind,
    namespace: ?[]const u8 = null,
    label_selector: ?[]const u8 = null,
    index: ?struct { name: []const u8, value: []const u8 } = null,
    owner: ?[]const u8 = null,
    metadata_only: bool = false,
    /// The maximum number of objects in one page; 0: 500.
    limit: u32 = 0,
    @"continue": ?[]const u8 = null,
};

/// Objects as text, in order. `continue` is null after the last page.
pub const Page = struct { objects: []const []const u8, @"continue": ?[]const u8 };

var last: ReadError = .{ .invalid = "" };

/// Returns the details of the last ReadFailure.
pub fn lastReadError() ReadError {
    return last;
}

pub fn isReadFailure(err: anyerror) bool {
    return switch (err) {
        error.NotWatched, error.TooLarge, error.Invalid, error.Unavailable => true,
        else => false,
    };
}

/// Returns one object of the cache, as a type with the needed fields; null if it does not exist.
pub fn get(comptime T: type, key: vmhost.ObjectKey) !?T {
    return if (try getText(key)) |text| try vmhost.parse(T, text, key.kind.kind) else null;
}

/// Like `get`, but asks the API server.
pub fn getLive(comptime T: type, key: vmhost.ObjectKey) !?T {
    return if (try getLiveText(key)) |text| try vmhost.parse(T, text, key.kind.kind) else null;
}

pub fn getText(key: vmhost.ObjectKey) ReadFailure!?[]const u8 {
    return one(key, false);
}

pub fn getLiveText(key: vmhost.ObjectKey) ReadFailure!?[]const u8 {
    return one(key, true);
}

/// Returns many objects of the cache with one call of the host, as text, in the order of `keys`.
pub fn getMany(keys: []const vmhost.ObjectKey) (ReadFailure || std.mem.Allocator.Error)![]const ?[]const u8 {
    const asked = try vmhost.arena().alloc(bindings.ObjectKey, keys.len);
    for (keys, asked) |key, *to| to.* = effects.objectKey(key);
    var answer: bindings.GetManyResult = undefined;
    bindings.host.getMany(.from(asked), &answer);
    if (answer.is_err) return refused(answer.val.err, "a list of keys", "", null);
    const found = try vmhost.arena().alloc(?[]const u8, answer.val.ok.len);
    for (answer.val.ok.to(), found) |from, *to| to.* = some(from);
    return found;
}

/// Returns one page of the cache.
pub fn list(query: Query) (ReadFailure || std.mem.Allocator.Error)!Page {
    return page(query, false);
}

/// Like `list`, but asks the API server.
pub fn listLive(query: Query) (ReadFailure || std.mem.Allocator.Error)!Page {
    return page(query, true);
}

/// Returns all matching objects of the cache, page by page.
pub fn listAll(comptime T: type, query: Query) ![]const T {
    var all: std.ArrayList(T) = .empty;
    var next = query;
    while (true) {
        const found = try list(next);
        for (found.objects) |text| try all.append(vmhost.arena(), try vmhost.parse(T, text, query.kind.kind));
        next.@"continue" = found.@"continue" orelse return all.items;
    }
}

/// Returns a setting of the operator (`--setting PLUGIN.NAME=VALUE`).
pub fn setting(name: []const u8) ?[]const u8 {
    var answer: bindings.Option(bindings.String) = undefined;
    bindings.host.setting(effects.string(name), &answer);
    return some(answer);
}

pub fn some(text: bindings.Option(bindings.String)) ?[]const u8 {
    return if (text.is_some) text.val.to() else null;
}

fn one(key: vmhost.ObjectKey, live: bool) ReadFailure!?[]const u8 {
    const asked = effects.objectKey(key);
    var answer: bindings.GetResult = undefined;
    bindings.host.get(&asked, live, &answer);
    if (answer.is_err) return refused(answer.val.err, key.kind.kind, key.name, key.namespace);
    return some(answer.val.ok);
}

fn page(query: Query, live: bool) (ReadFailure || std.mem.Allocator.Error)!Page {
    const asked: bindings.Query = .{
        .kind = effects.gvk(query.kind),
        .namespace = effects.option(query.namespace),
        .label_selector = effects.option(query.label_selector),
        .index = if (query.index) |index|
            .{ .is_some = true, .val = .{ .name = effects.string(index.name), .value = effects.string(index.value) } }
        else
            .{ .is_some = false, .val = undefined },
        .owner = effects.option(query.owner),
        .metadata_only = query.metadata_only,
        .limit = query.limit,
        .@"continue" = effects.option(query.@"continue"),
    };
    var answer: bindings.ListResult = undefined;
    bindings.host.list(&asked, live, &answer);
    if (answer.is_err) return refused(answer.val.err, "the list of", query.kind.kind, null);
    const objects = try vmhost.arena().alloc([]const u8, answer.val.ok.objects.len);
    for (answer.val.ok.objects.to(), objects) |from, *to| to.* = from.to();
    return .{ .objects = objects, .@"continue" = some(answer.val.ok.@"continue") };
}

/// Records the text of the turn's `retry` in case the policy returns the error.
fn refused(from: bindings.ReadError, what: []const u8, name: []const u8, namespace: ?[]const u8) ReadFailure {
    last = switch (from.tag) {
        0 => .{ .not_watched = from.val.text.to() },
        1 => .{ .too_large = from.val.too_large },
        2 => .{ .invalid = from.val.text.to() },
        else => .{ .unavailable = from.val.text.to() },
    };
    const space = if (name.len > 0) " " else "";
    const named = vmhost.print("{s}{s}{s}{s}{s}", .{ what, space, namespace orelse "", if (namespace != null) "/" else "", name }) catch what;
    vmhost.call.problem = switch (last) {
        .not_watched => |kind| vmhost.print("{s} cannot be read: the description does not let this controller read {s}", .{ named, kind }),
        .too_large => |limit| vmhost.print("{s} cannot be read: the answer is larger than {d} bytes", .{ named, limit }),
        .invalid => |reason| vmhost.print("{s} cannot be read: {s}", .{ named, reason }),
        .unavailable => |reason| vmhost.print("{s} cannot be read live: {s}", .{ named, reason }),
    } catch named;
    return switch (last) {
        .not_watched => error.NotWatched,
        .too_large => error.TooLarge,
        .invalid => error.Invalid,
        .unavailable => error.Unavailable,
    };
}
