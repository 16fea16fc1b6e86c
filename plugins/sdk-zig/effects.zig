//! The result of a turn, and its conversion to the records of the contract.

const std = @import("std");
const bindings = @import("bindings.zig");
const vmhost = @import("vmhost.zig");

/// Server-side apply of a JSON object with apiVersion, kind and metadata.name. It takes over fields
/// of other managers, and creates the object if it is absent (never with a subresource).
pub const Apply = struct {
    object: []const u8,
    options: Options = .{},

    pub const Options = struct {
        subresource: ?[]const u8 = null,
        /// If false, fail if another manager owns a field with another value.
        force: bool = true,
        /// If null, create the object, unless a subresource is applied.
        create_if_absent: ?bool = null,
        if_version: ?[]const u8 = null,
    };
};

pub const Patch = struct {
    key: vmhost.ObjectKey,
    type: enum(u8) { merge, json },
    body: []const u8,
    options: Options = .{},

    pub const Options = struct { subresource: ?[]const u8 = null, if_version: ?[]const u8 = null };
};

pub const Create = struct { object: []const u8 };

pub const Propagation = enum(u8) { background, foreground, orphan };

pub const Delete = struct { key: vmhost.ObjectKey, uid: ?[]const u8 = null, if_version: ?[]const u8 = null, propagation: ?Propagation = null };

pub const Event = struct {
    type: enum(u8) { normal, warning } = .normal,
    /// The machine-readable reason, in CamelCase.
    reason: []const u8,
    /// What was done, in CamelCase. If empty, the reason.
    action: []const u8 = "",
    /// The human-readable text.
    note: []const u8 = "",
    related: ?vmhost.ObjectKey = null,
};

/// An effect that this version of the contract has no case for.
pub const Other = struct { name: []const u8, body: []const u8 };

pub const Effect = union(enum) { apply: Apply, patch: Patch, create: Create, delete: Delete, event: Event, other: Other };

/// The step after the effects.
pub const Next = union(enum) {
    /// Complete: the next turn is after the object changes.
    await_change,
    requeue_after_ms: u32,
    /// Another turn soon, rate limited, without an error.
    requeue,
    /// A temporary failure. Like an error from `reconcile`, but with effects.
    retry: []const u8,
    /// A permanent failure, which a retry cannot fix.
    fail: []const u8,
    /// The clean-up of an object that is being deleted is complete.
    finalized,
};

/// Replaces bytes that are not UTF-8, because they would trap at the boundary.
pub fn string(text: []const u8) bindings.String {
    if (std.unicode.utf8ValidateSlice(text)) return .from(text);
    return .from(vmhost.print("{f}", .{std.unicode.fmtUtf8(text)}) catch "(out of memory)");
}

pub fn option(text: ?[]const u8) bindings.Option(bindings.String) {
    return if (text) |given| .{ .is_some = true, .val = string(given) } else .{ .is_some = false, .val = .from("") };
}

pub fn gvk(kind: vmhost.Kind) bindings.Gvk {
    return .{ .group = string(kind.group), .version = string(kind.version), .kind = string(kind.kind) };
}

pub fn objectKey(key: vmhost.ObjectKey) bindings.ObjectKey {
    return .{ .kind = gvk(key.kind), .namespace = option(key.namespace), .name = string(key.name) };
}

fn record(effect: Effect) bindings.Effect {
    return .{ .tag = @intFromEnum(effect), .val = switch (effect) {
        .apply => |apply| .{ .apply = .{
            .object = string(apply.object),
            .subresource = option(apply.options.subresource),
            .force = apply.options.force,
            .create_if_absent = apply.options.create_if_absent orelse (apply.options.subresource == null),
            .if_version = option(apply.options.if_version),
        } },
        .patch => |patch| .{ .patch = .{
            .key = objectKey(patch.key),
            .subresource = option(patch.options.subresource),
            .type = @intFromEnum(patch.type),
            .body = string(patch.body),
            .if_version = option(patch.options.if_version),
        } },
        .create => |create| .{ .create = .{ .object = string(create.object) } },
        .delete => |delete| .{ .delete = .{
            .key = objectKey(delete.key),
            .uid = option(delete.uid),
            .if_version = option(delete.if_version),
            .propagation = .{ .is_some = delete.propagation != null, .val = @intFromEnum(delete.propagation orelse .background) },
        } },
        .event => |event| .{ .event = .{
            .type = @intFromEnum(event.type),
            .reason = string(event.reason),
            .action = string(event.action),
            .note = string(event.note),
            .related = if (event.related) |key| .{ .is_some = true, .val = objectKey(key) } else .{ .is_some = false, .val = undefined },
        } },
        .other => |other| .{ .other = .{ .name = string(other.name), .body = string(other.body) } },
    } };
}

pub fn outcome(all: []const Effect, next: Next) !bindings.Outcome {
    const records = try vmhost.arena().alloc(bindings.Effect, all.len);
    for (all, records) |effect, *to| to.* = record(effect);
    return .{ .effects = .from(records), .next = .{ .tag = @intFromEnum(next), .val = switch (next) {
        .requeue_after_ms => |ms| .{ .requeue_after_ms = ms },
        .retry, .fail => |text| .{ .text = string(text) },
        else => .{ .requeue_after_ms = 0 },
    } } };
}
