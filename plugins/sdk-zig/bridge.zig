//! Converts between the records of the contract and the SDK's own types. For root.zig and
//! testing.zig.

const std = @import("std");
const bindings = @import("bindings.zig");
const effects = @import("effects.zig");
const read = @import("read.zig");
const vmhost = @import("vmhost.zig");

pub const Change = bindings.Change;
pub const DescribeResult = bindings.DescribeResult;
pub const MapResult = bindings.MapResult;
pub const Outcome = bindings.Outcome;
pub const Request = bindings.Request;
pub const String = bindings.String;
pub const toJson = @import("description.zig").toJson;
const admission = @import("review.zig").admission;
const conversion = @import("batch.zig").conversion;

pub fn turnOf(request: *const Request) vmhost.Turn {
    const key = &request.key;
    return .{
        .controller = request.controller.to(),
        .key = .{
            .kind = .{ .group = key.kind.group.to(), .version = key.kind.version.to(), .kind = key.kind.kind.to() },
            .namespace = read.some(key.namespace),
            .name = key.name.to(),
        },
        .object_text = read.some(request.object),
        .previous_text = read.some(request.previous),
        .deleting = request.deleting,
        .attempt = request.attempt,
        .last = if (request.last.is_some) refusal(&request.last.val) else null,
    };
}

fn refusal(from: *const bindings.Refusal) vmhost.Refusal {
    return .{ .effect = from.effect, .code = from.code, .reason = from.reason.to(), .message = from.message.to() };
}

pub fn describe(comptime policy: type) DescribeResult {
    const text = toJson(vmhost.arena(), policy.plugin) catch |err| return .{ .is_err = true, .val = .{ .err = effects.string(vmhost.call.textOf(err)) } };
    return .{ .is_err = false, .val = .{ .ok = .from(text) } };
}

pub fn reconcile(comptime policy: type, request: *const Request) Outcome {
    var turn = turnOf(request);
    const next: vmhost.Next = call(policy, &turn) catch |err| failure: {
        turn.effects.clearRetainingCapacity();
        break :failure .{ .retry = vmhost.call.textOf(err) };
    };
    return effects.outcome(turn.effects.items, next) catch @panic("out of memory");
}

/// Calls the policy as the host does: a review goes to `admit`, a batch of objects to `convert`,
/// all else to `reconcile`.
pub fn call(comptime policy: type, turn: *vmhost.Turn) anyerror!vmhost.Next {
    const kind = turn.key.kind;
    if (std.mem.eql(u8, kind.group, "vmhost")) {
        if (std.mem.eql(u8, kind.kind, "Admission")) return admission(policy, turn);
        if (std.mem.eql(u8, kind.kind, "Conversion")) return conversion(policy, turn);
    }
    if (!@hasDecl(policy, "reconcile")) return vmhost.failed("the plugin has no reconcile", .{});
    return policy.reconcile(turn);
}

pub fn mapChanges(comptime policy: type, controller: String, changes: bindings.List(Change)) MapResult {
    if (!@hasDecl(policy, "mapChanges")) return .{ .is_err = false, .val = .{ .ok = .from(&.{}) } };
    const names = namesOf(policy, controller.to(), changes.to()) catch |err| {
        return .{ .is_err = true, .val = .{ .err = effects.string(vmhost.call.textOf(err)) } };
    };
    return .{ .is_err = false, .val = .{ .ok = .from(names) } };
}

fn namesOf(comptime policy: type, controller: []const u8, from: []const Change) ![]const bindings.ObjectName {
    const changes = try vmhost.arena().alloc(vmhost.Change, from.len);
    for (from, changes) |change, *to| to.* = .{ .old = read.some(change.old), .new = read.some(change.new) };
    const found: []const vmhost.ObjectName = try policy.mapChanges(.{ .controller = controller, .changes = changes });
    const names = try vmhost.arena().alloc(bindings.ObjectName, found.len);
    for (found, names) |name, *to| to.* = .{ .namespace = effects.option(name.namespace), .name = effects.string(name.name) };
    return names;
}
