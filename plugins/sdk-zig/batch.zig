//! Conversion of custom resources between their versions.

const std = @import("std");
const vmhost = @import("vmhost.zig");

const Value = std.json.Value;

/// Objects of one kind that are to be of another version.
pub const Batch = struct {
    /// The name of the conversion in the description that this call is for.
    conversion: []const u8,
    /// The apiVersion that all objects are to have: `cloud.waibizi.com/v2`.
    desired: []const u8,
    /// The objects, with numbers as they are written.
    objects: []Value,

    /// Reads the contract's JSON of a batch.
    pub fn of(conversion_name: []const u8, request: []const u8) !Batch {
        const from = try vmhost.parse(struct { desiredAPIVersion: []const u8, objects: []Value }, request, "the batch");
        return .{ .conversion = conversion_name, .desired = from.desiredAPIVersion, .objects = from.objects };
    }

    /// Returns the version that all objects are to have: `v2`.
    pub fn version(batch: Batch) []const u8 {
        return versionOf(batch.desired);
    }

    /// Converts each object in place: `one` gets the members of the object and the version that it
    /// has, and `apiVersion` is set afterwards. Objects that have the desired version stay as they
    /// are. An error names the object.
    pub fn each(batch: Batch, comptime one: fn (object: *std.json.ObjectMap, from: []const u8) anyerror!void) ![]const Value {
        for (batch.objects) |*object| {
            if (object.* != .object) return vmhost.failed("what is to be converted is no object", .{});
            const from = text(object.object, "apiVersion");
            if (std.mem.eql(u8, from, batch.desired)) continue;
            one(&object.object, versionOf(from)) catch |err| return vmhost.failed("{s} cannot be converted from {s} to {s}: {s}", .{
                try nameOf(object.object), from, batch.desired, vmhost.call.textOf(err),
            });
            try object.object.put("apiVersion", .{ .string = batch.desired });
        }
        return batch.objects;
    }
};

fn versionOf(api_version: []const u8) []const u8 {
    return if (std.mem.lastIndexOfScalar(u8, api_version, '/')) |slash| api_version[slash + 1 ..] else api_version;
}

fn text(object: std.json.ObjectMap, name: []const u8) []const u8 {
    const found = object.get(name) orelse return "";
    return if (found == .string) found.string else "";
}

fn nameOf(object: std.json.ObjectMap) ![]const u8 {
    const found = object.get("metadata") orelse return text(object, "kind");
    if (found != .object) return text(object, "kind");
    const namespace = text(found.object, "namespace");
    return vmhost.print("{s} {s}{s}{s}", .{ text(object, "kind"), namespace, if (namespace.len > 0) "/" else "", text(found.object, "name") });
}

/// Answers a batch by the policy's `convert`. An error is an answer, whose text the API server
/// hands to the client.
pub fn conversion(comptime policy: type, turn: *vmhost.Turn) !vmhost.Next {
    const body = converted(policy, turn) catch |err| try vmhost.json(.{ .failed = vmhost.call.textOf(err) });
    try turn.add(.{ .other = .{ .name = "conversion", .body = body } });
    return .await_change;
}

fn converted(comptime policy: type, turn: *vmhost.Turn) anyerror![]const u8 {
    if (!@hasDecl(policy, "convert")) return vmhost.failed("the plugin has no convert", .{});
    const batch: Batch = try .of(turn.controller, turn.object_text orelse "");
    const objects: []const Value = try policy.convert(batch);
    return vmhost.json(.{ .convertedObjects = objects });
}
