//! Native tests of the policy:
//!   zig test --dep vmhost -Mroot=plugin_test.zig -Mvmhost=__sdk__/vmhost.zig

const std = @import("std");
const vmhost = @import("vmhost");
const policy = @import("plugin.zig");
const expectEqualStrings = std.testing.expectEqualStrings;

fn reconcile(host: *vmhost.testing.Host, object: ?[]const u8) vmhost.testing.Outcome {
    const kind: vmhost.Kind = .{ .group = "__group__", .version = "__version__", .kind = "__kind__" };
    const key: vmhost.ObjectKey = .{ .kind = kind, .namespace = "default", .name = "example" };
    return host.reconcile(policy, .{ .controller = "__plural__", .key = key, .object_text = object });
}

test "a named person is greeted" {
    const host: *vmhost.testing.Host = .init();
    defer host.deinit();
    const outcome = reconcile(host, "{\"spec\":{\"who\":\"Ada\"}}");
    try expectEqualStrings("status", outcome.effects[0].patch.options.subresource.?);
    try expectEqualStrings("{\"status\":{\"message\":\"hello, Ada\"}}", outcome.effects[0].patch.body);
    try expectEqualStrings("Greeted", outcome.effects[1].event.reason);
    try expectEqualStrings("hello, Ada", outcome.effects[1].event.note);
    const unnamed = reconcile(host, "{\"spec\":{}}");
    try expectEqualStrings("hello, world", unnamed.effects[1].event.note);
}

test "a greeted or deleted object is left alone" {
    const host: *vmhost.testing.Host = .init();
    defer host.deinit();
    for ([_]?[]const u8{ null, "{\"spec\":{\"who\":\"Ada\"},\"status\":{\"message\":\"hello, Ada\"}}" }) |object| {
        const outcome = reconcile(host, object);
        try std.testing.expectEqual(0, outcome.effects.len);
        try std.testing.expectEqual(vmhost.Next.await_change, outcome.next);
    }
}

test "an object that cannot be read is retried" {
    const host: *vmhost.testing.Host = .init();
    defer host.deinit();
    const outcome = reconcile(host, "{\"spec\":{\"who\":1}}");
    try std.testing.expect(std.mem.startsWith(u8, outcome.next.retry, "the object cannot be read: "));
}
