//! The first policy, in Zig: completes a VirtualMachine that is creating, or fails it if its size
//! is impossible.

const std = @import("std");
const vmhost = @import("vmhost");

const virtual_machine: vmhost.Kind = .{ .group = "cloud.waibizi.com", .version = "v1", .kind = "VirtualMachine" };

pub const plugin: vmhost.Description = .{
    .name = "vm",
    .version = "0.1.0",
    .controllers = &.{.{
        .name = "virtualmachines",
        .primary = .{ .kind = virtual_machine, .wanted_fields = &.{ "spec.status", "spec.memory", "spec.disk" } },
        .event_source = "vm-dynamic-controller",
    }},
    .permissions = &.{.{ .kind = virtual_machine, .verbs = &.{.patch} }},
};

const VirtualMachine = struct {
    spec: struct { status: []const u8 = "", memory: ?i64 = null, disk: ?i64 = null } = .{},
};

pub fn reconcile(turn: *vmhost.Turn) !vmhost.Next {
    const vm = try turn.object(VirtualMachine) orelse {
        std.log.info("the virtual machine {s} is gone", .{turn.key.name});
        return .await_change;
    };
    if (!std.mem.eql(u8, vm.spec.status, "creating")) return .await_change;
    // Tests what was seen: if a user has changed the status or the size in the meantime, the patch
    // changes nothing and the host retries the key.
    const seen = .{ .op = "test", .path = "/spec/status", .value = "creating" };
    inline for (.{ "memory", "disk" }) |field| {
        // An absent size is the maker's choice.
        const size = @field(vm.spec, field) orelse 1;
        if (size <= 0) {
            const same = .{ .op = "test", .path = "/spec/" ++ field, .value = size };
            try turn.patchJson(turn.key, .{ seen, same, .{ .op = "replace", .path = "/spec/status", .value = "fail" } }, .{});
            const note = try vmhost.print("spec.{s} is {d}, and must be more than 0", .{ field, size });
            try turn.event(.{ .type = .warning, .reason = "Impossible", .note = note });
            return .await_change;
        }
    }
    try turn.patchJson(turn.key, .{ seen, .{ .op = "replace", .path = "/spec/status", .value = "complete" } }, .{});
    try turn.event(.{ .reason = "Completed", .note = "The virtual machine is complete" });
    return .await_change;
}
