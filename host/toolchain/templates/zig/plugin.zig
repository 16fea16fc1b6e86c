//! __name__: greets each __kind__. `spec.who` names whom to greet; the greeting goes into
//! `status.message`.

const std = @import("std");
const vmhost = @import("vmhost");

const kind: vmhost.Kind = .{ .group = "__group__", .version = "__version__", .kind = "__kind__" };

pub const plugin: vmhost.Description = .{
    .name = "__name__",
    .version = "0.1.0",
    .controllers = &.{.{
        .name = "__plural__",
        .primary = .{ .kind = kind, .wanted_fields = &.{ "spec.who", "status.message" } },
    }},
    .permissions = &.{.{ .kind = kind, .verbs = &.{.patch}, .subresources = &.{"status"} }},
};

const Object = struct {
    spec: struct { who: []const u8 = "world" } = .{},
    status: struct { message: []const u8 = "" } = .{},
};

pub fn reconcile(turn: *vmhost.Turn) !vmhost.Next {
    const object = try turn.object(Object) orelse return .await_change; // deleted
    const message = try vmhost.print("hello, {s}", .{object.spec.who});
    if (std.mem.eql(u8, object.status.message, message)) return .await_change; // already greeted
    try turn.patchMerge(turn.key, .{ .status = .{ .message = message } }, .{ .subresource = "status" });
    try turn.event(.{ .reason = "Greeted", .note = message });
    return .await_change;
}
