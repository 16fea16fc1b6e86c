//! Admission: what an API server asks before it stores a change, and the policy's verdict.

const std = @import("std");
const differ = @import("diff.zig");
const vmhost = @import("vmhost.zig");

/// A change that somebody asked for: the `request` of an AdmissionReview. Absent strings are empty.
pub const Review = struct {
    /// The name of the webhook in the description that this review is for.
    webhook: []const u8,
    uid: []const u8,
    operation: Operation,
    /// The kind of the object, in the version that the webhook's rules name.
    kind: vmhost.Kind,
    resource: Resource,
    /// `status`, `exec` and so on; empty for the object itself.
    sub_resource: []const u8,
    /// Empty for a new object with a generateName.
    name: []const u8,
    /// Null for a cluster-scoped object.
    namespace: ?[]const u8,
    user_info: UserInfo,
    /// Nothing will be stored. The verdict must be the same.
    dry_run: bool,
    /// The object as it would be stored; null for a deletion.
    object_text: ?[]const u8,
    /// The object as it is stored; null for a new object.
    old_object_text: ?[]const u8,
    /// The options of the request: `CreateOptions` and so on.
    options_text: ?[]const u8,
    /// What the verdict carries; see the functions that add to them.
    operations: differ.Operations = .empty,
    warnings: std.ArrayList([]const u8) = .empty,
    annotations: std.ArrayList(Annotation) = .empty,

    /// Reads the request of an AdmissionReview.
    pub fn of(webhook: []const u8, request: []const u8) !Review {
        const from = try vmhost.parse(Request, request, "the review");
        return .{
            .webhook = webhook,
            .uid = from.uid,
            .operation = std.meta.stringToEnum(Operation, from.operation) orelse .CREATE,
            .kind = from.kind,
            .resource = from.resource,
            .sub_resource = from.subResource,
            .name = from.name,
            .namespace = from.namespace,
            .user_info = from.userInfo,
            .dry_run = from.dryRun,
            .object_text = try textOf(from.object),
            .old_object_text = try textOf(from.oldObject),
            .options_text = try textOf(from.options),
        };
    }

    /// Returns the object as a type of the policy's own, with only the fields that it needs.
    /// `std.json.Value` has all, with numbers as they are written.
    pub fn object(review: *const Review, comptime T: type) !?T {
        return if (review.object_text) |text| try vmhost.parse(T, text, "the object") else null;
    }

    pub fn oldObject(review: *const Review, comptime T: type) !?T {
        return if (review.old_object_text) |text| try vmhost.parse(T, text, "the old object") else null;
    }

    /// Changes the object by one operation: `.{ .op = "add", .path = "/a", .value = 1 }`. Only of a
    /// mutating webhook, and only if the verdict is `.allow`.
    pub fn patch(review: *Review, operation: anytype) !void {
        try review.operations.append(vmhost.arena(), try vmhost.json(operation));
    }

    /// Changes the object to this one, of any type that `std.json` writes. It must be whole: what
    /// it lacks is removed. The patch is the smallest one that is found.
    pub fn changeTo(review: *Review, new: anytype) !void {
        const before = try review.object(std.json.Value) orelse return vmhost.failed("a request without an object cannot be changed", .{});
        const after = try vmhost.parse(std.json.Value, try vmhost.json(new), "the changed object");
        try differ.diff(before, after, &review.operations);
    }

    /// Adds a warning for the user, whatever the verdict is. At most 120 characters are shown by
    /// all clients.
    pub fn warn(review: *Review, comptime format: []const u8, arguments: anytype) !void {
        try review.warnings.append(vmhost.arena(), try vmhost.print(format, arguments));
    }

    /// Adds an annotation to the request's audit event.
    pub fn audit(review: *Review, key: []const u8, value: []const u8) !void {
        try review.annotations.append(vmhost.arena(), .{ .key = key, .value = value });
    }

    /// Returns the contract's AdmissionResponse without uid, with the patch as a list.
    pub fn response(review: *const Review, verdict: Verdict) ![]const u8 {
        const patched = verdict == .allow and review.operations.items.len > 0;
        const operations = try std.mem.join(vmhost.arena(), ",", review.operations.items);
        const status: ?Status = switch (verdict) {
            .allow => null,
            .deny => |deny_| .{ .message = deny_.message, .reason = deny_.reason orelse if (deny_.code == 403) "Forbidden" else null, .code = deny_.code },
        };
        var text: @import("text.zig").Text = .{ .allocator = vmhost.arena() };
        std.json.Stringify.value(.{
            .allowed = verdict == .allow,
            .status = status,
            .patch = if (patched) vmhost.Raw{ .text = try vmhost.print("[{s}]", .{operations}) } else null,
            .warnings = if (review.warnings.items.len > 0) review.warnings.items else null,
            .auditAnnotations = if (review.annotations.items.len > 0) Annotations{ .all = review.annotations.items } else null,
        }, .{ .emit_null_optional_fields = false }, &text.writer) catch return error.OutOfMemory;
        return text.written.items;
    }
};

/// What somebody wants to do with an object.
pub const Operation = enum { CREATE, UPDATE, DELETE, CONNECT };

pub const Resource = struct { group: []const u8 = "", version: []const u8 = "", resource: []const u8 = "" };

/// The user who asks.
pub const UserInfo = struct { username: []const u8 = "", uid: []const u8 = "", groups: []const []const u8 = &.{} };

/// Whether a request may go on.
pub const Verdict = union(enum) { allow, deny: Deny };

/// Why not: an HTTP status (400 to 599) with a text that the user sees.
pub const Deny = struct { message: []const u8, code: u16 = 403, reason: ?[]const u8 = null };

/// Refuses a request: 403 Forbidden with this text.
pub fn deny(comptime format: []const u8, arguments: anytype) !Verdict {
    return .{ .deny = .{ .message = try vmhost.print(format, arguments) } };
}

const Status = struct { message: []const u8, reason: ?[]const u8, code: u16 };

const Annotation = struct { key: []const u8, value: []const u8 };

const Annotations = struct {
    all: []const Annotation,

    pub fn jsonStringify(self: Annotations, writer: anytype) !void {
        try writer.beginObject();
        for (self.all) |each| {
            try writer.objectField(each.key);
            try writer.write(each.value);
        }
        try writer.endObject();
    }
};

/// The request as the API server writes it.
const Request = struct {
    uid: []const u8 = "",
    operation: []const u8 = "",
    kind: vmhost.Kind = .{ .version = "", .kind = "" },
    resource: Resource = .{},
    subResource: []const u8 = "",
    name: []const u8 = "",
    namespace: ?[]const u8 = null,
    userInfo: UserInfo = .{},
    dryRun: bool = false,
    object: ?std.json.Value = null,
    oldObject: ?std.json.Value = null,
    options: ?std.json.Value = null,
};

fn textOf(value: ?std.json.Value) !?[]const u8 {
    return if (value) |given| try vmhost.json(given) else null;
}

/// Answers a review by the policy's `admit`. An error is no verdict: the webhook's failure policy
/// decides about the request.
pub fn admission(comptime policy: type, turn: *vmhost.Turn) !vmhost.Next {
    if (!@hasDecl(policy, "admit")) return vmhost.failed("the plugin has no admit", .{});
    var review: Review = try .of(turn.controller, turn.object_text orelse "");
    const verdict: Verdict = try policy.admit(&review);
    try turn.add(.{ .other = .{ .name = "admission", .body = try review.response(verdict) } });
    return .await_change;
}
