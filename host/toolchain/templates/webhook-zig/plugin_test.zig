//! Native tests of the policy:
//!   zig test --dep vmhost -Mroot=plugin_test.zig -Mvmhost=__sdk__/vmhost.zig

const std = @import("std");
const vmhost = @import("vmhost");
const policy = @import("plugin.zig");

test "somebody has to be named" {
    const host: *vmhost.testing.Host = .init();
    defer host.deinit();
    const refused = "spec.who must name somebody";
    const cases = [_]struct { request: []const u8, allowed: bool }{
        .{ .request = "{\"object\":{\"spec\":{\"who\":\"Ada\"}}}", .allowed = true },
        .{ .request = "{\"object\":{\"spec\":{\"who\":\"\"}}}", .allowed = false },
        .{ .request = "{\"object\":{\"spec\":{}}}", .allowed = false },
        .{ .request = "{\"operation\":\"DELETE\",\"object\":null}", .allowed = true },
    };
    for (cases) |case| {
        const response = try host.admit(policy, "who", case.request);
        const told = std.mem.indexOf(u8, response, refused) != null;
        const allowed = std.mem.indexOf(u8, response, "\"allowed\":true") != null;
        try std.testing.expectEqual(case.allowed, allowed);
        try std.testing.expectEqual(!case.allowed, told);
    }
}

test "an object that cannot be read is no verdict" {
    const host: *vmhost.testing.Host = .init();
    defer host.deinit();
    try std.testing.expectError(error.Failed, host.admit(policy, "who", "{\"object\":{\"spec\":{\"who\":1}}}"));
}
