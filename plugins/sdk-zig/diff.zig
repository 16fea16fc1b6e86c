//! The JSON patch (RFC 6902) between two documents. It must not know what they are.

const std = @import("std");
const vmhost = @import("vmhost.zig");

const Value = std.json.Value;
const Error = error{OutOfMemory};

/// Operations as JSON texts.
pub const Operations = std.ArrayList([]const u8);

/// Adds the operations that make `before` into `after`, in the order of the members' names.
pub fn diff(before: Value, after: Value, to: *Operations) Error!void {
    try compare("", before, after, to);
}

fn compare(path: []const u8, before: Value, after: Value, to: *Operations) Error!void {
    if (isEqual(before, after)) return;
    if (before == .object and after == .object) return compareMembers(path, before.object, after.object, to);
    if (before == .array and after == .array) return compareElements(path, before.array.items, after.array.items, to);
    try put(to, .{ .op = "replace", .path = path, .value = after });
}

fn compareMembers(path: []const u8, before: std.json.ObjectMap, after: std.json.ObjectMap, to: *Operations) Error!void {
    var names: std.ArrayList([]const u8) = .empty;
    for (before.keys()) |name| try names.append(vmhost.arena(), name);
    for (after.keys()) |name| if (!before.contains(name)) try names.append(vmhost.arena(), name);
    std.mem.sort([]const u8, names.items, {}, isBefore);
    for (names.items) |name| {
        const below = try vmhost.print("{s}/{s}", .{ path, try escaped(name) });
        const is = after.get(name) orelse {
            try put(to, .{ .op = "remove", .path = below });
            continue;
        };
        if (before.get(name)) |was| try compare(below, was, is, to) else try put(to, .{ .op = "add", .path = below, .value = is });
    }
}

fn isBefore(_: void, a: []const u8, b: []const u8) bool {
    return std.mem.lessThan(u8, a, b);
}

/// Equal elements at both ends stay; those between are compared one by one, and what is left over
/// is added or removed.
fn compareElements(path: []const u8, before: []const Value, after: []const Value, to: *Operations) Error!void {
    const least = @min(before.len, after.len);
    var start: usize = 0;
    while (start < least and isEqual(before[start], after[start])) start += 1;
    var last: usize = 0;
    while (last < least - start and isEqual(before[before.len - 1 - last], after[after.len - 1 - last])) last += 1;
    const both = least - last;
    for (start..both) |at| try compare(try element(path, at), before[at], after[at], to);
    for (both..after.len - last) |at| try put(to, .{ .op = "add", .path = try element(path, at), .value = after[at] });
    // From the back, so that no removal moves what a later one names.
    var at = before.len - last;
    while (at > both) {
        at -= 1;
        try put(to, .{ .op = "remove", .path = try element(path, at) });
    }
}

fn element(path: []const u8, at: usize) Error![]const u8 {
    return vmhost.print("{s}/{d}", .{ path, at });
}

fn put(to: *Operations, operation: anytype) Error!void {
    try to.append(vmhost.arena(), try vmhost.json(operation));
}

/// Escapes ~ and /.
fn escaped(name: []const u8) Error![]const u8 {
    var text: std.ArrayList(u8) = .empty;
    for (name) |letter| switch (letter) {
        '~' => try text.appendSlice(vmhost.arena(), "~0"),
        '/' => try text.appendSlice(vmhost.arena(), "~1"),
        else => try text.append(vmhost.arena(), letter),
    };
    return text.items;
}

fn isEqual(a: Value, b: Value) bool {
    if (std.meta.activeTag(a) != std.meta.activeTag(b)) return false;
    switch (a) {
        .null => return true,
        .bool => |value| return value == b.bool,
        .integer => |value| return value == b.integer,
        .float => |value| return value == b.float,
        .number_string => |value| return std.mem.eql(u8, value, b.number_string),
        .string => |value| return std.mem.eql(u8, value, b.string),
        .array => |list| {
            if (list.items.len != b.array.items.len) return false;
            for (list.items, b.array.items) |left, right| if (!isEqual(left, right)) return false;
            return true;
        },
        .object => |members| {
            if (members.count() != b.object.count()) return false;
            for (members.keys(), members.values()) |name, left| {
                if (!isEqual(left, b.object.get(name) orelse return false)) return false;
            }
            return true;
        },
    }
}
