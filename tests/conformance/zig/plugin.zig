//! The conformance guest in Zig. ../README.md describes each case.

const std = @import("std");
const vmhost = @import("vmhost");
const Turn = vmhost.Turn;
const Next = vmhost.Next;
const reviews = @import("reviews.zig");

pub const admit = reviews.admit;
pub const convert = reviews.convert;

const case: vmhost.Kind = .{ .group = "conformance.vmhost.dev", .version = "v1", .kind = "Case" };
const config_map = core("ConfigMap");
const pod = core("Pod");

fn core(kind: []const u8) vmhost.Kind {
    return .{ .version = "v1", .kind = kind };
}

fn apps(kind: []const u8) vmhost.Kind {
    return .{ .group = "apps", .version = "v1", .kind = kind };
}

fn named(name: []const u8) vmhost.ObjectKey {
    return .{ .kind = config_map, .namespace = "default", .name = name };
}

pub const plugin: vmhost.Description = .{
    .name = "conformance",
    .version = "1.2.3",
    .controllers = &.{
        .{
            .name = "cases",
            .primary = .{
                .kind = case,
                .label_selector = "app=case",
                .field_selector = "metadata.name!=ignored",
                .wanted_fields = &.{ "spec", "status.phase" },
                .indexes = &.{.{ .name = "by-node", .path = "spec.nodeName" }},
                .predicates = .{
                    .changed = &.{ .generation, .labels },
                    .label_selector = "tier in (a,b)",
                    .field_selector = "spec.paused!=true",
                    .cel = "object.spec.case != ''",
                },
            },
            .owns = &.{.{ .kind = config_map }},
            .watches = &.{
                .{ .kind = core("Secret"), .metadata_only = true, .map = .guest },
                .{ .kind = core("Node"), .map = .{ .index = "by-node" } },
                .{ .kind = apps("Deployment"), .map = .{ .label = "case" } },
                .{ .kind = apps("StatefulSet"), .map = .{ .field = "spec.serviceName" } },
                .{ .kind = core("Service"), .map = .name },
                .{ .kind = core("Endpoints"), .map = .owner },
            },
            .reads = &.{ .{ .kind = core("Namespace") }, .{ .kind = pod, .live = true } },
            .finalizer = "conformance.vmhost.dev/clean-up",
            .previous = true,
            .event_source = "conformance-controller",
            .concurrency = 2,
            .retry = .{ .base_ms = 10, .cap_ms = 20000, .max_retries = 7, .bucket = .{ .per_second = 10, .burst = 100 } },
        },
        .{ .name = "ticker", .timer = .{ .every_ms = 60000 } },
        .{ .name = "starter", .timer = .{ .once = true } },
    },
    .webhooks = &.{
        .{
            .name = "guard",
            .rules = &.{.{
                .api_groups = &.{"conformance.vmhost.dev"},
                .api_versions = &.{"v1"},
                .resources = &.{ "cases", "cases/status" },
                .operations = &.{ "CREATE", "UPDATE", "DELETE" },
                .scope = "Namespaced",
            }},
            .match_conditions = &.{.{ .name = "not-me", .expression = "request.userInfo.username != 'me'" }},
            .timeout_seconds = 3,
            .reads = &.{.{ .kind = config_map }},
        },
        .{
            .name = "defaults",
            .type = .mutating,
            .rules = &.{.{ .api_groups = &.{"*"}, .api_versions = &.{"*"}, .resources = &.{"*/*"}, .operations = &.{"*"} }},
            .namespace_selector = "{\"matchLabels\":{\"a\":\"b\"}}",
            .object_selector = "{\"matchExpressions\":[{\"key\":\"c\",\"operator\":\"In\",\"values\":[\"d\"]}]}",
            .failure_policy = "Ignore",
            .side_effects = "NoneOnDryRun",
            .reinvocation_policy = "IfNeeded",
            .match_policy = "Exact",
        },
    },
    .conversions = &.{.{
        .name = "convert",
        .group = "conformance.vmhost.dev",
        .kind = "Case",
        .resource = "cases",
        .versions = &.{ "v1", "v2" },
        .reads = &.{.{ .kind = config_map }},
    }},
    .permissions = &.{
        .{ .kind = case, .verbs = &.{.patch} },
        .{ .kind = case, .verbs = &.{.patch}, .subresources = &.{"status"}, .namespaces = &.{"default"}, .optional = true },
        .{ .kind = config_map, .verbs = &.{ .create, .patch, .delete } },
    },
    .http = &.{
        .{
            .host = "api.example.com",
            .port = 8080,
            .scheme = .http,
            .methods = &.{ "GET", "POST" },
            .path_prefix = "/v1",
            .headers = &.{
                .{ .name = "Authorization", .prefix = "Bearer ", .secret = .{ .namespace = "default", .name = "api", .key = "token" } },
                .{ .name = "X-Tenant", .setting = "tenant" },
            },
            .url_setting = "url",
            .allow_private = true,
        },
        .{ .host = "*.example.com" },
    },
    .custom_resource_definitions = &.{
        \\{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"cases.conformance.vmhost.dev"},"spec":{"group":"conformance.vmhost.dev","names":{"plural":"cases"}}}
    },
    .settings_schema =
    \\{"type":"object","required":["given"],"properties":{"given":{"type":"string","minLength":1},"limit":{"type":"integer","minimum":1,"default":10}}}
    ,
};

pub fn reconcile(turn: *Turn) !Next {
    const Object = struct { spec: struct { case: ?[]const u8 = null } = .{} };
    const object: Object = try turn.object(Object) orelse .{};
    const name = object.spec.case orelse "echo";
    inline for (@typeInfo(cases).@"struct".decls) |decl| {
        if (std.mem.eql(u8, decl.name, name)) return @field(cases, decl.name)(turn);
    }
    return .{ .fail = try vmhost.print("unknown case {s}", .{name}) };
}

fn answer(turn: *Turn, value: anytype) !Next {
    try turn.patchMerge(turn.key, .{ .answer = value }, .{});
    return .await_change;
}

/// Returns the member `name` of `spec`, as it is written.
fn spec(turn: *Turn, name: []const u8) !?std.json.Value {
    const object = (try turn.object(struct { spec: std.json.Value })).?;
    return object.spec.object.get(name);
}

const cases = struct {
    pub fn echo(turn: *Turn) !Next {
        const kind = turn.key.kind;
        return answer(turn, .{
            .controller = turn.controller,
            .key = .{ .group = kind.group, .version = kind.version, .kind = kind.kind, .namespace = turn.key.namespace, .name = turn.key.name },
            .object = turn.object_text,
            .previous = turn.previous_text,
            .deleting = turn.deleting,
            .attempt = turn.attempt,
            .last = turn.last,
        });
    }

    pub fn effects(turn: *Turn) !Next {
        const object = .{ .apiVersion = "v1", .kind = "ConfigMap", .metadata = .{ .name = "a", .namespace = "default" }, .data = .{ .k = "v" } };
        try turn.apply(object, .{ .subresource = "status", .force = false, .create_if_absent = false, .if_version = "7" });
        try turn.apply(object, .{});
        try turn.patchMerge(named("a"), .{ .data = .{ .k = null } }, .{ .subresource = "status", .if_version = "8" });
        try turn.patchJson(.{ .kind = core("Namespace"), .name = "n" }, .{
            .{ .op = "test", .path = "/a", .value = 1 },
            .{ .op = "add", .path = "/b/-", .value = "x" },
            .{ .op = "replace", .path = "/c~1d", .value = null },
            .{ .op = "remove", .path = "/e" },
        }, .{});
        try turn.create(.{ .apiVersion = "v1", .kind = "ConfigMap", .metadata = .{ .generateName = "a-", .namespace = "default" } });
        try turn.delete(.{ .key = named("a"), .uid = "u-1", .if_version = "9", .propagation = .foreground });
        try turn.delete(.{ .key = named("b") });
        try turn.event(.{ .type = .warning, .reason = "Broken", .action = "Mending", .note = "it broke: ☃", .related = named("a") });
        try turn.event(.{ .reason = "Fine" });
        try turn.add(.{ .other = .{ .name = "future", .body = "{\"x\":1}" } });
        return .await_change;
    }

    pub fn @"in-cluster"(turn: *Turn) !Next {
        const meta = .{ .name = "a", .namespace = "default" };
        const east = turn.inCluster("east");
        try east.apply(.{ .apiVersion = "v1", .kind = "ConfigMap", .metadata = meta, .data = .{ .k = "v" } }, .{});
        try turn.inCluster(null).patchMerge(named("a"), .{ .data = .{ .k = "v" } }, .{ .subresource = "status", .if_version = "8" });
        try east.create(.{ .apiVersion = "v1", .kind = "ConfigMap", .metadata = .{ .name = "c", .namespace = "default" } });
        try east.delete(.{ .key = .{ .kind = apps("Deployment"), .namespace = "default", .name = "d" }, .uid = "u-1", .propagation = .orphan });
        return .await_change;
    }

    pub fn @"next-await-change"(_: *Turn) !Next {
        return .await_change;
    }

    pub fn @"next-requeue-after"(_: *Turn) !Next {
        return .{ .requeue_after_ms = 4294967295 };
    }

    pub fn @"next-requeue"(_: *Turn) !Next {
        return .requeue;
    }

    pub fn @"next-retry"(_: *Turn) !Next {
        return .{ .retry = "later, \"please\"" };
    }

    pub fn @"next-fail"(_: *Turn) !Next {
        return .{ .fail = "never: ☃" };
    }

    pub fn @"next-finalized"(_: *Turn) !Next {
        return .finalized;
    }

    pub fn get(turn: *Turn) !Next {
        return answer(turn, .{ .a = try vmhost.getText(named("a")), .b = try vmhost.getText(named("b")) });
    }

    pub fn @"get-many"(turn: *Turn) !Next {
        const keys = try vmhost.arena().alloc(vmhost.ObjectKey, 1000);
        for (keys, 0..) |*key, i| key.* = named(try vmhost.print("k{d}", .{i}));
        const values = try vmhost.getMany(keys);
        var found: u32 = 0;
        for (values) |value| found += @intFromBool(value != null);
        return answer(turn, .{ .found = found, .first = values[0], .last = values[999] });
    }

    pub fn list(turn: *Turn) !Next {
        return answer(turn, try vmhost.list(.{
            .kind = config_map,
            .namespace = "default",
            .label_selector = "app=web,!legacy",
            .index = .{ .name = "by-node", .value = "n1" },
            .owner = "u-1",
            .metadata_only = true,
            .limit = 2,
            .@"continue" = "c-1",
        }));
    }

    pub fn live(turn: *Turn) !Next {
        const a = try vmhost.getLiveText(.{ .kind = pod, .namespace = "default", .name = "a" });
        const page = try vmhost.listLive(.{ .kind = pod });
        return answer(turn, .{ .a = a, .objects = page.objects, .@"continue" = page.@"continue" });
    }

    pub fn @"read-errors"(turn: *Turn) !Next {
        try expectRefused("not-watched", error.NotWatched);
        const not_watched = vmhost.lastReadError().not_watched;
        try expectRefused("too-large", error.TooLarge);
        const too_large = vmhost.lastReadError().too_large;
        try expectRefused("invalid", error.Invalid);
        const invalid = vmhost.lastReadError().invalid;
        try expectRefused("unavailable", error.Unavailable);
        const unavailable = vmhost.lastReadError().unavailable;
        return answer(turn, .{ .@"not-watched" = not_watched, .@"too-large" = too_large, .invalid = invalid, .unavailable = unavailable });
    }

    pub fn settings(turn: *Turn) !Next {
        return answer(turn, .{ .given = vmhost.setting("given"), .empty = vmhost.setting("empty"), .missing = vmhost.setting("missing") });
    }

    pub fn http(turn: *Turn) !Next {
        const made = try vmhost.http.send(.{
            .method = "POST",
            .url = "http://api.example.com:8080/v1/machines",
            .headers = &.{ .{ .name = "content-type", .value = "application/json" }, .{ .name = "x-case", .value = "http" } },
            .body = "{\"n\":\"☃\"}",
        });
        const word = if (vmhost.http.send(.{ .url = "https://denied.example.com/" })) |_| "" else |err| switch (err) {
            error.HttpDenied => "denied",
            error.HttpInvalid => "invalid",
            error.HttpNotSent => "not-sent",
            error.HttpNoAnswer => "no-answer",
            error.HttpTooLarge => "too-large",
            else => return err,
        };
        return answer(turn, .{ .status = made.status, .type = made.header("content-type"), .body = made.body, .@"error" = word });
    }

    pub fn log(turn: *Turn) !Next {
        const line = "one\ntwo ☃";
        vmhost.log(.trace, line, .{});
        std.log.debug(line, .{});
        std.log.info(line, .{});
        std.log.warn(line, .{});
        std.log.err(line, .{});
        try std.fs.File.stdout().writeAll("printed\n");
        return answer(turn, null);
    }

    pub fn number(turn: *Turn) !Next {
        return answer(turn, .{ try spec(turn, "number"), try spec(turn, "huge") });
    }

    pub fn @"null"(turn: *Turn) !Next {
        var found: [3][]const u8 = undefined;
        for (&found, [_][]const u8{ "a", "b", "c" }) |*to, name| {
            to.* = if (try spec(turn, name)) |value| (if (value == .null) "null" else "value") else "missing";
        }
        return answer(turn, found);
    }

    pub fn text(turn: *Turn) !Next {
        const object = (try turn.object(struct { spec: struct { text: []const u8, empty: []const u8 } })).?;
        return answer(turn, .{ object.spec.text, object.spec.empty });
    }

    pub fn deep(turn: *Turn) !Next {
        var value = try spec(turn, "deep");
        var depth: u32 = 0;
        while (value != null and value.? == .array) : (depth += 1) value = if (value.?.array.items.len > 0) value.?.array.items[0] else null;
        return answer(turn, depth);
    }

    pub fn size(turn: *Turn) !Next {
        return answer(turn, turn.object_text.?.len);
    }

    pub fn senses(turn: *Turn) !Next {
        return answer(turn, .{ .wall = std.time.milliTimestamp(), .chance = std.crypto.random.int(u32) });
    }

    pub fn @"error"(_: *Turn) !Next {
        return vmhost.failed("broken on purpose", .{});
    }

    pub fn crash(turn: *Turn) !Next {
        // Reading past the end is a panic, because bounds are checked.
        const bytes = turn.object_text.?;
        return answer(turn, bytes[bytes.len + turn.attempt]);
    }

    pub fn memory(_: *Turn) !Next {
        while (true) _ = try vmhost.arena().alloc(u8, 1 << 20);
    }

    pub fn loop(_: *Turn) !Next {
        var going = true;
        while (@as(*volatile bool, &going).*) {}
        return .await_change;
    }

    var calls: u32 = 0;

    pub fn state(turn: *Turn) !Next {
        defer calls += 1;
        return answer(turn, calls);
    }
};

fn expectRefused(name: []const u8, wanted: vmhost.ReadFailure) !void {
    if (vmhost.getText(named(name))) |_| {
        return vmhost.failed("{s} is not refused", .{name});
    } else |err| if (err != wanted) return err;
}

pub fn mapChanges(request: vmhost.MapRequest) ![]const vmhost.ObjectName {
    if (!std.mem.eql(u8, request.controller, "cases")) return vmhost.failed("cannot map {s}", .{request.controller});
    const names = try vmhost.arena().alloc(vmhost.ObjectName, request.changes.len);
    for (request.changes, names) |change, *to| {
        const object = try vmhost.parse(struct { metadata: vmhost.meta.ObjectMeta }, change.new orelse change.old.?, "a change");
        to.* = .{ .namespace = object.metadata.namespace, .name = object.metadata.name };
    }
    return names;
}
