//! Native tests of the policy:
//!   zig test --dep vmhost -Mroot=plugin_test.zig -Mvmhost=../sdk-zig/vmhost.zig

const std = @import("std");
const vmhost = @import("vmhost");
const policy = @import("plugin.zig");
const expectEqualStrings = std.testing.expectEqualStrings;

fn reconcile(host: *vmhost.testing.Host, object: ?[]const u8) vmhost.testing.Outcome {
    const kind: vmhost.Kind = .{ .group = "cloud.waibizi.com", .version = "v1", .kind = "VirtualMachine" };
    const key: vmhost.ObjectKey = .{ .kind = kind, .namespace = "default", .name = "public-wx" };
    return host.reconcile(policy, .{ .controller = "virtualmachines", .key = key, .object_text = object });
}

test "a vm that is creating becomes complete" {
    const host: *vmhost.testing.Host = .init();
    defer host.deinit();
    for ([_][]const u8{ "{\"spec\":{\"status\":\"creating\"}}", "{\"spec\":{\"status\":\"creating\",\"memory\":4096,\"disk\":500}}" }) |object| {
        const outcome = reconcile(host, object);
        try std.testing.expectEqual(2, outcome.effects.len);
        try expectEqualStrings("public-wx", outcome.effects[0].patch.key.name);
        try expectEqualStrings(
            \\[{"op":"test","path":"/spec/status","value":"creating"},{"op":"replace","path":"/spec/status","value":"complete"}]
        , outcome.effects[0].patch.body);
        try std.testing.expectEqual(.normal, outcome.effects[1].event.type);
        try expectEqualStrings("Completed", outcome.effects[1].event.reason);
        try std.testing.expectEqual(vmhost.Next.await_change, outcome.next);
    }
}

test "a vm that cannot be fails with the reason" {
    const host: *vmhost.testing.Host = .init();
    defer host.deinit();
    const outcome = reconcile(host, "{\"spec\":{\"status\":\"creating\",\"memory\":4096,\"disk\":-5}}");
    try expectEqualStrings(
        \\[{"op":"test","path":"/spec/status","value":"creating"},{"op":"test","path":"/spec/disk","value":-5},{"op":"replace","path":"/spec/status","value":"fail"}]
    , outcome.effects[0].patch.body);
    try std.testing.expectEqual(.warning, outcome.effects[1].event.type);
    try expectEqualStrings("Impossible", outcome.effects[1].event.reason);
    try expectEqualStrings("spec.disk is -5, and must be more than 0", outcome.effects[1].event.note);
    const small = reconcile(host, "{\"spec\":{\"status\":\"creating\",\"memory\":0}}");
    try expectEqualStrings("spec.memory is 0, and must be more than 0", small.effects[1].event.note);
}

test "every other vm is left alone" {
    const host: *vmhost.testing.Host = .init();
    defer host.deinit();
    const objects = [_]?[]const u8{ null, "{\"spec\":{\"status\":\"complete\"}}", "{\"spec\":{\"status\":\"fail\",\"memory\":0}}", "{\"spec\":{}}", "{}" };
    for (objects) |object| {
        const outcome = reconcile(host, object);
        try std.testing.expectEqual(0, outcome.effects.len);
        try std.testing.expectEqual(vmhost.Next.await_change, outcome.next);
    }
}

test "a vm that cannot be read is an error" {
    const host: *vmhost.testing.Host = .init();
    defer host.deinit();
    const outcome = reconcile(host, "{\"spec\":{\"status\":1}}");
    try expectEqualStrings("the object cannot be read: UnexpectedToken at byte 18", outcome.next.retry);
}
