//! The SDK's own tests: zig test -I../sdk-c/bindings -lc tests.zig

const std = @import("std");
const bindings = @import("bindings.zig");
const bridge = @import("bridge.zig");
const effects = @import("effects.zig");
const vmhost = @import("vmhost.zig");
const expect = std.testing.expect;
const expectEqual = std.testing.expectEqual;
const expectEqualStrings = std.testing.expectEqualStrings;

test {
    _ = @import("bindings_test.zig");
    _ = @import("review_test.zig");
}

const config_map: vmhost.Kind = .{ .version = "v1", .kind = "ConfigMap" };
const deployment: vmhost.Kind = .{ .group = "apps", .version = "v1", .kind = "Deployment" };
const key: vmhost.ObjectKey = .{ .kind = config_map, .namespace = "default", .name = "a" };

/// Returns a policy with this body.
fn Policy(comptime body: fn (turn: *vmhost.Turn) anyerror!vmhost.Next) type {
    return struct {
        pub const plugin: vmhost.Description = .{ .name = "test", .controllers = &.{} };
        pub const reconcile = body;
    };
}

fn turnOf(object: ?[]const u8) vmhost.Turn {
    return .{ .controller = "all", .key = key, .object_text = object };
}

test "the description leaves out what was left out" {
    const host: *vmhost.testing.Host = .init();
    defer host.deinit();
    const text = try host.describe(struct {
        pub const plugin: vmhost.Description = .{
            .name = "test",
            .controllers = &.{ .{
                .name = "all",
                .primary = .{
                    .kind = deployment,
                    .label_selector = "a=b",
                    .wanted_fields = &.{},
                    .metadata_only = true,
                    .indexes = &.{.{ .name = "by-node", .path = "spec.nodeName" }},
                    .predicates = .{ .changed = &.{ .generation, .resource_version }, .cel = "a == \"b\"" },
                },
                .watches = &.{ .{ .kind = config_map, .map = .guest }, .{ .kind = config_map, .map = .{ .label = "app" } } },
                .reads = &.{.{ .kind = config_map, .live = true }},
                .event_source = "me",
                .retry = .{ .max_retries = 0, .bucket = .{ .per_second = 1, .burst = 2 } },
            }, .{ .name = "timer", .timer = .{ .every_ms = 5 } } },
            .permissions = &.{.{ .kind = config_map, .verbs = &.{ .create, .delete }, .namespaces = &.{"default"}, .optional = true }},
            .custom_resource_definitions = &.{ "{\"a\":1}", "{\"b\":2}" },
            .settings_schema = "{\"type\":\"object\"}",
        };
    });
    try expectEqualStrings(
        \\{"apiVersion":"vmhost/v1","name":"test","controllers":[{"name":"all","primary":{"group":"apps","version":"v1","kind":"Deployment",
    ++
        \\"labelSelector":"a=b","wantedFields":[],"metadataOnly":true,"indexes":{"by-node":"spec.nodeName"},"predicates":{"changed":["generation","resourceVersion"],
    ++
        \\"cel":"a == \"b\""}},
    ++
        \\"watches":[{"version":"v1","kind":"ConfigMap","map":"guest"},{"version":"v1","kind":"ConfigMap","map":{"label":"app"}}],
    ++
        \\"reads":[{"version":"v1","kind":"ConfigMap","live":true}],"eventSource":"me","retry":{"maxRetries":0,"bucket":{"perSecond":1,"burst":2}}},
    ++
        \\{"name":"timer","timer":{"everyMs":5}}],"permissions":[{"version":"v1","kind":"ConfigMap","verbs":["create","delete"],"namespaces":["default"],"optional":true}],
    ++
        \\"setup":{"customResourceDefinitions":[{"a":1},{"b":2}]},"settingsSchema":{"type":"object"}}
    , text);
}

test "effects fill the records of the contract" {
    const host: *vmhost.testing.Host = .init();
    defer host.deinit();
    const outcome = host.reconcile(Policy(struct {
        fn body(turn: *vmhost.Turn) !vmhost.Next {
            try turn.apply(.{ .a = 1 }, .{ .subresource = "status", .force = false, .if_version = "7" });
            try turn.apply(vmhost.Raw{ .text = "{\"n\":9007199254740993}" }, .{});
            try turn.patchMerge(turn.key, .{ .data = .{ .k = null } }, .{});
            try turn.patchJson(turn.key, .{.{ .op = "remove", .path = "/e" }}, .{});
            try turn.create(.{ .x = "\xff" });
            try turn.delete(.{ .key = turn.key, .uid = "u-1", .propagation = .orphan });
            try turn.event(.{ .type = .warning, .reason = "Broken", .related = turn.key });
            try turn.add(.{ .other = .{ .name = "future", .body = "{}" } });
            return .{ .fail = "never" };
        }
    }.body), turnOf(null));
    const records = try effects.outcome(outcome.effects, outcome.next);
    const all = records.effects.to();
    try expectEqual(8, all.len);
    for (all, 0..) |effect, i| try expectEqual(([_]u8{ 0, 0, 1, 1, 2, 3, 4, 5 })[i], effect.tag);
    try expect(!all[0].val.apply.force and !all[0].val.apply.create_if_absent);
    try expectEqualStrings("7", all[0].val.apply.if_version.val.to());
    try expect(all[1].val.apply.force and all[1].val.apply.create_if_absent and !all[1].val.apply.subresource.is_some);
    try expectEqualStrings("{\"n\":9007199254740993}", all[1].val.apply.object.to());
    try expectEqualStrings("{\"data\":{\"k\":null}}", all[2].val.patch.body.to());
    try expectEqual(1, all[3].val.patch.type);
    try expectEqualStrings("[{\"op\":\"remove\",\"path\":\"/e\"}]", all[3].val.patch.body.to());
    try expectEqual(2, all[5].val.delete.propagation.val);
    try expectEqualStrings("default", all[6].val.event.related.val.namespace.val.to());
    try expectEqual(4, records.next.tag);
    try expectEqualStrings("never", records.next.val.text.to());
}

test "an effect is written with its cluster" {
    const host: *vmhost.testing.Host = .init();
    defer host.deinit();
    const outcome = host.reconcile(Policy(struct {
        fn body(turn: *vmhost.Turn) !vmhost.Next {
            const east = turn.inCluster("east");
            try east.apply(vmhost.Raw{ .text = "{\"n\":1.0}" }, .{ .subresource = "status" });
            try turn.inCluster(null).patchMerge(turn.key, .{ .data = null }, .{ .if_version = "8" });
            try east.create(.{ .kind = "X" });
            try east.delete(.{ .key = .{ .kind = deployment, .name = "x" }, .propagation = .orphan });
            try std.testing.expectError(error.Failed, east.add(.{ .event = .{ .reason = "Fine" } }));
            return .await_change;
        }
    }.body), turnOf(null));
    const bodies = [_][]const u8{
        \\{"cluster":"east","effect":{"apply":{"object":{"n":1.0},"subresource":"status","force":true,"createIfAbsent":false,"ifVersion":null}}}
        ,
        \\{"cluster":null,"effect":{"patch":{"key":{"apiVersion":"v1","kind":"ConfigMap","namespace":"default","name":"a"},"subresource":null,"type":"merge","body":{"data":null},"ifVersion":"8"}}}
        ,
        \\{"cluster":"east","effect":{"create":{"object":{"kind":"X"}}}}
        ,
        \\{"cluster":"east","effect":{"delete":{"key":{"apiVersion":"apps/v1","kind":"Deployment","namespace":null,"name":"x"},"uid":null,"ifVersion":null,"propagation":"orphan"}}}
        ,
    };
    try expectEqual(bodies.len, outcome.effects.len);
    for (bodies, outcome.effects) |body, effect| {
        try expectEqualStrings("in-cluster", effect.other.name);
        try expectEqualStrings(body, effect.other.body);
    }
}

test "an empty list has an address that the host takes" {
    const empty: []const bindings.Effect = try std.testing.allocator.alloc(bindings.Effect, 0);
    try expectEqual(0, @intFromPtr(bindings.List(bindings.Effect).from(empty).ptr) % 16);
    try expect(bindings.List(bindings.Effect).from(empty).ptr != empty.ptr);
}

test "bytes that are no UTF-8 are replaced" {
    const host: *vmhost.testing.Host = .init();
    defer host.deinit();
    try expectEqualStrings("a\u{fffd}b", effects.string("a\xffb").to());
    vmhost.log(.trace, "{s}", .{"one\ntwo \xff"});
    try expectEqualStrings("trace: one\ntwo \u{fffd}", host.lines.items[0]);
}

test "numbers are exact, and null is not missing" {
    const host: *vmhost.testing.Host = .init();
    defer host.deinit();
    const outcome = host.reconcile(Policy(struct {
        fn body(turn: *vmhost.Turn) !vmhost.Next {
            const object = (try turn.object(std.json.Value)).?.object;
            try expectEqualStrings("12345678901234567890123", object.get("huge").?.number_string);
            try expect(object.get("null").? == .null and object.get("missing") == null);
            const typed = (try turn.object(struct { big: i64 })).?;
            try expectEqual(9007199254740993, typed.big);
            return .{ .retry = try vmhost.json(std.json.Value{ .object = object }) };
        }
    }.body), turnOf("{\"big\":9007199254740993,\"huge\":12345678901234567890123,\"null\":null}"));
    try expectEqualStrings("{\"big\":9007199254740993,\"huge\":12345678901234567890123,\"null\":null}", outcome.next.retry);
}

test "an error is a retry with its text and without effects" {
    const host: *vmhost.testing.Host = .init();
    defer host.deinit();
    const cases = .{
        .{ struct {
            fn body(turn: *vmhost.Turn) !vmhost.Next {
                try turn.event(.{ .reason = "Dropped" });
                return vmhost.failed("{s} is {d}", .{ "a", 1 });
            }
        }.body, "a is 1" },
        .{ struct {
            fn body(_: *vmhost.Turn) !vmhost.Next {
                return error.OutOfCheese;
            }
        }.body, "OutOfCheese" },
        .{ struct {
            fn body(turn: *vmhost.Turn) !vmhost.Next {
                _ = try turn.object(struct { a: u8 });
                return .await_change;
            }
        }.body, "the object cannot be read: UnexpectedToken at byte 6" },
        .{ struct {
            fn body(turn: *vmhost.Turn) !vmhost.Next {
                _ = vmhost.failed("forgotten", .{}) catch {};
                _ = try vmhost.getText(turn.key);
                return .await_change;
            }
        }.body, "ConfigMap default/a cannot be read live: gone" },
    };
    host.refuse = .{ .unavailable = "gone" };
    inline for (cases) |case| {
        const outcome = host.reconcile(Policy(case[0]), turnOf("{\"a\":{}}"));
        try expectEqual(0, outcome.effects.len);
        try expectEqualStrings(case[1], outcome.next.retry);
    }
}

test "the cluster and the settings are read" {
    const host: *vmhost.testing.Host = .init();
    defer host.deinit();
    host.objects = &.{
        \\{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"default","labels":{"app":"web"}},"data":{}}
        ,
        \\{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b","namespace":"default","ownerReferences":[{"uid":"u-1"}]}}
        ,
        \\{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"x"}}
        ,
        \\{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a","namespace":"default"}}
        ,
    };
    host.settings = &.{.{ "colour", "red" }};
    const Object = struct { metadata: vmhost.meta.ObjectMeta };
    try expectEqualStrings("web", (try vmhost.get(Object, key)).?.metadata.labels.map.get("app").?);
    try expectEqual(null, try vmhost.getLiveText(.{ .kind = config_map, .name = "a" }));
    const many = try vmhost.getMany(&.{ key, .{ .kind = config_map, .namespace = "default", .name = "none" } });
    try expect(many[0] != null and many[1] == null);
    const page = try vmhost.list(.{ .kind = config_map, .limit = 2, .metadata_only = true });
    try expectEqual(2, page.objects.len);
    try expect(page.@"continue" != null and std.mem.indexOf(u8, page.objects[0], "\"data\"") == null);
    try expectEqual(3, (try vmhost.listAll(Object, .{ .kind = config_map, .limit = 2 })).len);
    try expectEqual(1, (try vmhost.listLive(.{ .kind = config_map, .label_selector = "app=web" })).objects.len);
    try expectEqual(1, (try vmhost.list(.{ .kind = config_map, .owner = "u-1" })).objects.len);
    try std.testing.expectError(error.Invalid, vmhost.list(.{ .kind = config_map, .index = .{ .name = "i", .value = "v" } }));
    host.refuse = .{ .too_large = 42 };
    try std.testing.expectError(error.TooLarge, vmhost.getText(key));
    try expectEqual(42, vmhost.lastReadError().too_large);
    try expectEqualStrings("red", vmhost.setting("colour").?);
    try expectEqual(null, vmhost.setting("none"));
}

test "changes are mapped to names" {
    const policy = struct {
        pub fn mapChanges(request: vmhost.MapRequest) ![]const vmhost.ObjectName {
            if (!std.mem.eql(u8, request.controller, "all")) return vmhost.failed("cannot map {s}", .{request.controller});
            const names = try vmhost.arena().alloc(vmhost.ObjectName, request.changes.len);
            for (request.changes, names) |change, *name| name.* = .{ .name = change.new orelse change.old.? };
            return names;
        }
    };
    const host: *vmhost.testing.Host = .init();
    defer host.deinit();
    const changes = [_]bindings.Change{.{ .old = effects.option("old"), .new = effects.option(null) }};
    const good = bridge.mapChanges(policy, .from("all"), .from(&changes));
    try expectEqualStrings("old", good.val.ok.to()[0].name.to());
    const bad = bridge.mapChanges(policy, .from("other"), .from(&changes));
    try expectEqualStrings("cannot map other", bad.val.err.to());
    try expect(!bridge.mapChanges(struct {}, .from("all"), .from(&changes)).is_err);
}

test "metadata is treated as apimachinery does" {
    const host: *vmhost.testing.Host = .init();
    defer host.deinit();
    const meta = vmhost.meta;
    const owner: meta.ObjectMeta = .{ .name = "web", .uid = "u-1", .finalizers = &.{"a/b"} };
    const reference = try meta.OwnerReference.controllerOf(owner, deployment);
    try expectEqualStrings(
        \\{"apiVersion":"apps/v1","kind":"Deployment","name":"web","uid":"u-1","controller":true,"blockOwnerDeletion":true}
    , try vmhost.json(reference));
    const plain = try meta.OwnerReference.plain(owner, config_map);
    try expectEqualStrings("{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"name\":\"web\",\"uid\":\"u-1\"}", try vmhost.json(plain));
    const child: meta.ObjectMeta = .{ .ownerReferences = &.{ .{ .uid = "u-0" }, reference } };
    try expect(child.isControlledBy("u-1") and !child.isControlledBy("u-0") and !owner.isControlledBy("u-1"));
    try expect(owner.hasFinalizer("a/b") and !owner.hasFinalizer("a"));

    var ready: meta.Condition = .{ .type = "Ready", .status = .False, .reason = "Up", .lastTransitionTime = "t1" };
    var all = (try meta.setCondition(&.{.{ .type = "Other" }}, ready)).?;
    ready.lastTransitionTime = "t2";
    try expectEqual(null, try meta.setCondition(all, ready));
    ready.reason = "Down";
    all = (try meta.setCondition(all, ready)).?;
    try expectEqualStrings("t1", all[1].lastTransitionTime);
    ready.status = .True;
    all = (try meta.setCondition(all, ready)).?;
    try expectEqualStrings(
        \\{"type":"Ready","status":"True","lastTransitionTime":"t2","reason":"Down","message":""}
    , try vmhost.json(all[1]));
    try expect(meta.isCondition(all, "Ready", .True) and !meta.isCondition(all, "Gone", .True));
    try expectEqual(1, (try meta.removeCondition(all, "Ready")).len);
    ready.lastTransitionTime = "";
    try expectEqual(20, (try meta.setCondition(&.{}, ready)).?[0].lastTransitionTime.len);
    try expectEqualStrings("2000-02-29T00:00:00Z", try meta.rfc3339(951782400));
    try expectEqualStrings("2001-09-09T01:46:40Z", try meta.rfc3339(1000000000));
    try expectEqualStrings("1970-01-01T00:00:00Z", try meta.rfc3339(-1));
}

fn callsAService(turn: *vmhost.Turn) anyerror!vmhost.Next {
    const made = try vmhost.http.send(.{ .method = "POST", .url = "https://a.com/x", .headers = &.{.{ .name = "x", .value = "y" }}, .body = "{}" });
    try expect(made.isSuccess() and made.header("x") == null);
    try expectEqual(7, (try made.json(struct { id: u32 })).id);
    if (vmhost.http.send(.{ .url = "https://a.com/y" })) |_| unreachable else |err| try expectEqual(error.HttpNotSent, err);
    _ = turn;
    _ = try vmhost.http.send(.{ .url = "https://a.com/z?token" });
    return .await_change;
}

test "a service answers, or the turn is tried again" {
    const host: *vmhost.testing.Host = .init();
    defer host.deinit();
    host.responses = &.{.{ .method = "POST", .url = "https://a.com/x", .status = 201, .body = "{\"id\":7}" }};
    const outcome = host.reconcile(Policy(callsAService), turnOf("{}"));
    try expectEqualStrings("GET https://a.com/z has no response: the test gives no answer to it", outcome.next.retry);
    try expectEqualStrings("http: POST https://a.com/x {}", host.lines.items[0]);
    try expectEqual(3, host.lines.items.len);
}
