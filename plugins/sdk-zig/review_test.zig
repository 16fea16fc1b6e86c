//! Tests of admission and conversion: reviews in, verdicts out, and the patch between two objects.

const std = @import("std");
const differ = @import("diff.zig");
const vmhost = @import("vmhost.zig");
const expect = std.testing.expect;
const expectEqual = std.testing.expectEqual;
const expectEqualStrings = std.testing.expectEqualStrings;

/// A policy with webhooks and no controller. Does what the object's name says.
const guard = struct {
    pub const plugin: vmhost.Description = .{
        .name = "guard",
        .webhooks = &.{
            .{ .name = "guard", .rules = &.{.{ .api_groups = &.{""}, .api_versions = &.{"v1"}, .resources = &.{"pods"} }} },
            .{
                .name = "defaults",
                .type = .mutating,
                .rules = &.{.{ .api_groups = &.{"*"}, .api_versions = &.{"*"}, .resources = &.{"*"}, .operations = &.{"*"}, .scope = "Namespaced" }},
                .object_selector = "{\"matchLabels\":{\"a\":\"b\"}}",
                .match_conditions = &.{.{ .name = "c", .expression = "true" }},
                .failure_policy = "Ignore",
                .timeout_seconds = 3,
                .reads = &.{.{ .kind = .{ .version = "v1", .kind = "ConfigMap" } }},
            },
        },
        .conversions = &.{.{ .name = "vm", .group = "g.io", .kind = "Vm", .resource = "vms", .versions = &.{ "v1", "v2" } }},
    };

    pub fn admit(review: *vmhost.Review) !vmhost.Verdict {
        if (std.mem.eql(u8, review.name, "deny")) return vmhost.deny("{s} refuses {s}", .{ review.webhook, review.name });
        if (std.mem.eql(u8, review.name, "odd")) return .{ .deny = .{ .message = "odd", .code = 422 } };
        if (std.mem.eql(u8, review.name, "error")) return vmhost.failed("broken on purpose", .{});
        if (std.mem.eql(u8, review.name, "warn")) {
            try review.warn("careful, {s}", .{review.user_info.username});
            try review.audit("k", "v");
        }
        if (std.mem.eql(u8, review.name, "patch")) {
            try review.patch(.{ .op = "add", .path = "/a", .value = 1 });
            try review.patch(.{ .op = "remove", .path = "/b" });
        }
        if (std.mem.eql(u8, review.name, "change")) {
            var object = (try review.object(std.json.Value)).?;
            try object.object.put("n", .{ .integer = 3 });
            try object.object.put("added", .null);
            try review.changeTo(object);
        }
        return .allow;
    }

    pub fn convert(batch: vmhost.Batch) ![]const std.json.Value {
        return batch.each(one);
    }

    fn one(object: *std.json.ObjectMap, from: []const u8) !void {
        if (object.contains("bad")) return vmhost.failed("too old", .{});
        try object.put("from", .{ .string = from });
    }
};

test "a plugin may have no controller" {
    const host: *vmhost.testing.Host = .init();
    defer host.deinit();
    try expectEqualStrings(
        \\{"apiVersion":"vmhost/v1","name":"guard","webhooks":[{"name":"guard","type":"validating","rules":[{"apiGroups":[""],"apiVersions":["v1"],
    ++
        \\"resources":["pods"],"operations":["CREATE","UPDATE"]}]},{"name":"defaults","type":"mutating","rules":[{"apiGroups":["*"],"apiVersions":["*"],
    ++
        \\"resources":["*"],"operations":["*"],"scope":"Namespaced"}],"objectSelector":{"matchLabels":{"a":"b"}},"matchConditions":[{"name":"c","expression":"true"}],
    ++
        \\"failurePolicy":"Ignore","timeoutSeconds":3,"reads":[{"version":"v1","kind":"ConfigMap"}]}],
    ++
        \\"conversions":[{"name":"vm","group":"g.io","kind":"Vm","resource":"vms","versions":["v1","v2"]}]}
    , try host.describe(guard));
}

test "all fields of a review are read" {
    const host: *vmhost.testing.Host = .init();
    defer host.deinit();
    const review = try vmhost.Review.of("guard",
        \\{"uid":"u-1","kind":{"group":"apps","version":"v1","kind":"Deployment"},"resource":{"group":"apps","version":"v1","resource":"deployments"},
        \\"subResource":"scale","name":"a","namespace":"default","operation":"DELETE","userInfo":{"username":"jane","groups":["g"]},
        \\"object":null,"oldObject":{"a":9007199254740993},"options":{"kind":"DeleteOptions"},"dryRun":true}
    );
    try expectEqual(.DELETE, review.operation);
    try expectEqualStrings("Deployment", review.kind.kind);
    try expectEqualStrings("deployments", review.resource.resource);
    try expectEqualStrings("scale", review.sub_resource);
    try expectEqualStrings("default", review.namespace.?);
    try expectEqualStrings("jane", review.user_info.username);
    try expect(review.dry_run and review.object_text == null);
    try expectEqual(9007199254740993, (try review.oldObject(struct { a: i64 })).?.a);
    try expectEqualStrings("{\"kind\":\"DeleteOptions\"}", review.options_text.?);
}

test "verdicts are AdmissionResponses" {
    const host: *vmhost.testing.Host = .init();
    defer host.deinit();
    for ([_][2][]const u8{
        .{ "{}", "{\"allowed\":true}" },
        .{ "{\"name\":\"deny\"}", "{\"allowed\":false,\"status\":{\"message\":\"hook refuses deny\",\"reason\":\"Forbidden\",\"code\":403}}" },
        .{ "{\"name\":\"odd\"}", "{\"allowed\":false,\"status\":{\"message\":\"odd\",\"code\":422}}" },
        .{ "{\"name\":\"warn\",\"userInfo\":{\"username\":\"jane\"}}", "{\"allowed\":true,\"warnings\":[\"careful, jane\"],\"auditAnnotations\":{\"k\":\"v\"}}" },
        .{ "{\"name\":\"patch\"}", "{\"allowed\":true,\"patch\":[{\"op\":\"add\",\"path\":\"/a\",\"value\":1},{\"op\":\"remove\",\"path\":\"/b\"}]}" },
        .{ "{\"name\":\"change\",\"object\":{\"n\":3}}", "{\"allowed\":true,\"patch\":[{\"op\":\"add\",\"path\":\"/added\",\"value\":null}]}" },
    }) |case| try expectEqualStrings(case[1], try host.admit(guard, "hook", case[0]));
}

test "a failure is no verdict" {
    const host: *vmhost.testing.Host = .init();
    defer host.deinit();
    try std.testing.expectError(error.Failed, host.admit(guard, "hook", "{\"name\":\"error\"}"));
    try expectEqualStrings("broken on purpose", vmhost.call.problem.?);
    try std.testing.expectError(error.Failed, host.admit(guard, "hook", "[]"));
    const nothing = struct {
        pub const plugin: vmhost.Description = .{ .name = "nothing" };
    };
    try std.testing.expectError(error.Failed, host.admit(nothing, "hook", "{}"));
    const turn: vmhost.Turn = .{ .controller = "all", .key = .{ .kind = .{ .version = "v1", .kind = "Pod" }, .name = "a" } };
    try expectEqualStrings("the plugin has no reconcile", host.reconcile(guard, turn).next.retry);
}

test "only what differs is in the patch" {
    const host: *vmhost.testing.Host = .init();
    defer host.deinit();
    for ([_][3][]const u8{
        .{ "{\"a\":1}", " { \"a\" : 1 } ", "" },
        .{
            "{\"a\":{\"b\":1,\"c\":[1,{\"d\":2}]},\"z\":0}",
            "{\"a\":{\"b\":2,\"c\":[1,{\"d\":3}]},\"n\":null}",
            "{\"op\":\"replace\",\"path\":\"/a/b\",\"value\":2} {\"op\":\"replace\",\"path\":\"/a/c/1/d\",\"value\":3} " ++
                "{\"op\":\"add\",\"path\":\"/n\",\"value\":null} {\"op\":\"remove\",\"path\":\"/z\"}",
        },
        .{ "{\"a\":[]}", "{\"a\":{}}", "{\"op\":\"replace\",\"path\":\"/a\",\"value\":{}}" },
        .{
            "{\"a/b\":1,\"c~d\":1,\"\":1}",
            "{\"a/b\":2,\"\":2}",
            "{\"op\":\"replace\",\"path\":\"/\",\"value\":2} {\"op\":\"replace\",\"path\":\"/a~1b\",\"value\":2} {\"op\":\"remove\",\"path\":\"/c~0d\"}",
        },
        .{ "[1,4]", "[1,2,3,4]", "{\"op\":\"add\",\"path\":\"/1\",\"value\":2} {\"op\":\"add\",\"path\":\"/2\",\"value\":3}" },
        .{ "[1,2,3,4]", "[1,4]", "{\"op\":\"remove\",\"path\":\"/2\"} {\"op\":\"remove\",\"path\":\"/1\"}" },
        .{ "[1,1]", "[1]", "{\"op\":\"remove\",\"path\":\"/1\"}" },
        .{ "[1,2,3]", "[1,9,8,3]", "{\"op\":\"replace\",\"path\":\"/1\",\"value\":9} {\"op\":\"add\",\"path\":\"/2\",\"value\":8}" },
        .{ "9007199254740993", "9007199254740992", "{\"op\":\"replace\",\"path\":\"\",\"value\":9007199254740992}" },
    }) |case| {
        var operations: differ.Operations = .empty;
        try differ.diff(try vmhost.parse(std.json.Value, case[0], "before"), try vmhost.parse(std.json.Value, case[1], "after"), &operations);
        try expectEqualStrings(case[2], try std.mem.join(vmhost.arena(), " ", operations.items));
    }
}

test "a batch is converted in order, and a failure is its answer" {
    const host: *vmhost.testing.Host = .init();
    defer host.deinit();
    try expectEqualStrings(
        \\{"convertedObjects":[{"apiVersion":"g.io/v2","size":9007199254740993,"from":"v1"},{"apiVersion":"g.io/v2"}]}
    , try host.convert(guard, "vm",
        \\{"desiredAPIVersion":"g.io/v2","objects":[{"apiVersion":"g.io/v1","size":9007199254740993},{"apiVersion":"g.io/v2"}]}
    ));
    try expectEqualStrings(
        \\{"failed":"K a/b cannot be converted from g.io/v1 to g.io/v2: too old"}
    , try host.convert(guard, "vm",
        \\{"desiredAPIVersion":"g.io/v2","objects":[{"apiVersion":"g.io/v1","kind":"K","bad":1,"metadata":{"name":"b","namespace":"a"}}]}
    ));
}
