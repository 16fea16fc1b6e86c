//! A stand-in for the host in native tests: objects to read, settings, and the logged lines. It
//! carries out no effects: a test checks the effects and the `next` of the outcome.
//!
//!     const host: *vmhost.testing.Host = .init();
//!     defer host.deinit();
//!     const turn: vmhost.Turn = .{ .controller = "foos", .key = key, .object_text = "{}" };
//!     const outcome = host.reconcile(@import("plugin.zig"), turn);

const std = @import("std");
const bindings = @import("bindings.zig");
const bridge = @import("bridge.zig");
const effects = @import("effects.zig");
const vmhost = @import("vmhost.zig");

pub const Outcome = struct { effects: []const vmhost.Effect, next: vmhost.Next };

/// An answer to requests with this method and URL.
pub const Response = struct { method: []const u8 = "GET", url: []const u8, status: u16 = 200, body: []const u8 = "" };

pub const Host = struct {
    /// Objects that cached and live reads find, as JSON.
    objects: []const []const u8 = &.{},
    settings: []const struct { []const u8, []const u8 } = &.{},
    /// Answers to HTTP requests, which are lines too: `http: METHOD URL BODY`. Others are not sent.
    responses: []const Response = &.{},
    /// If set, all reads are refused with this error.
    refuse: ?vmhost.ReadError = null,
    /// The logged lines: `info: text`.
    lines: std.ArrayList([]const u8) = .empty,

    /// Starts a host. Only one at a time, in one thread.
    pub fn init() *Host {
        current = .{};
        return &current.?;
    }

    /// Frees the memory of the turns.
    pub fn deinit(_: *Host) void {
        current = null;
        vmhost.call.end();
    }

    /// Runs one turn. An error of the policy becomes `.retry`, as in the host. The outcome lives
    /// until `deinit`.
    pub fn reconcile(_: *Host, comptime policy: type, turn: vmhost.Turn) Outcome {
        var copy = turn;
        const next: vmhost.Next = bridge.call(policy, &copy) catch |err| return .{ .effects = &.{}, .next = .{ .retry = vmhost.call.textOf(err) } };
        return .{ .effects = copy.effects.items, .next = next };
    }

    /// Answers a review of a webhook: the `request` of an AdmissionReview. Returns the response.
    pub fn admit(host: *Host, comptime policy: type, webhook: []const u8, request: []const u8) ![]const u8 {
        return answer(host.reconcile(policy, .{ .controller = webhook, .key = keyOf("Admission"), .object_text = request }));
    }

    /// Converts a batch: `{"desiredAPIVersion","objects"}`. Returns the answer.
    pub fn convert(host: *Host, comptime policy: type, conversion: []const u8, batch: []const u8) ![]const u8 {
        return answer(host.reconcile(policy, .{ .controller = conversion, .key = keyOf("Conversion"), .object_text = batch }));
    }

    fn keyOf(kind: []const u8) vmhost.ObjectKey {
        return .{ .kind = .{ .group = "vmhost", .version = "v1", .kind = kind }, .name = "u-1" };
    }

    /// Returns the body of the one effect, or the error of a turn without one.
    fn answer(outcome: Outcome) ![]const u8 {
        if (outcome.effects.len == 1) return outcome.effects[0].other.body;
        return vmhost.failed("{s}", .{if (outcome.next == .retry) outcome.next.retry else "there is no answer"});
    }

    /// Returns the document that `describe` returns.
    pub fn describe(_: *Host, comptime policy: type) ![]const u8 {
        return bridge.toJson(vmhost.arena(), policy.plugin);
    }
};

var current: ?Host = null;

const Object = struct { apiVersion: []const u8, kind: []const u8, metadata: std.json.Value };
const Metadata = vmhost.meta.ObjectMeta;

/// The host's functions for bindings.zig in native builds.
pub const imports = struct {
    pub fn log(level: u8, line: bindings.String) void {
        const host = if (current) |*host| host else return;
        const levels = [_][]const u8{ "trace", "debug", "info", "warn", "error" };
        const text = vmhost.print("{s}: {s}", .{ levels[level], line.to() }) catch @panic("out of memory");
        host.lines.append(vmhost.arena(), text) catch @panic("out of memory");
    }

    pub fn send(request: *const bindings.HttpRequest, result: *bindings.HttpResult) void {
        const host = if (current) |*host| host else return unsent(result, "there is no host in a native test: call testing.Host.init first");
        const method, const url, const body = .{ request.method.to(), request.url.to(), request.body.to() };
        const line = vmhost.print("http: {s} {s} {s}", .{ method, url, body }) catch @panic("out of memory");
        host.lines.append(vmhost.arena(), std.mem.trimEnd(u8, line, " ")) catch @panic("out of memory");
        for (host.responses) |response| {
            if (!std.mem.eql(u8, response.method, method) or !std.mem.eql(u8, response.url, url)) continue;
            result.* = .{ .is_err = false, .val = .{ .ok = .{ .status = response.status, .headers = .from(&.{}), .body = .from(response.body) } } };
            return;
        }
        unsent(result, "the test gives no answer to it");
    }

    pub fn setting(name: bindings.String, result: *bindings.Option(bindings.String)) void {
        result.* = effects.option(null);
        const host = current orelse return;
        for (host.settings) |each| if (std.mem.eql(u8, each[0], name.to())) {
            result.* = effects.option(each[1]);
        };
    }

    pub fn get(key: *const bindings.ObjectKey, _: bool, result: *bindings.GetResult) void {
        const host = current orelse return refuse(result, .{ .unavailable = "there is no host in a native test: call testing.Host.init first" });
        if (host.refuse) |err| return refuse(result, err);
        result.* = .{ .is_err = false, .val = .{ .ok = find(host, key) } };
    }

    pub fn getMany(keys: bindings.List(bindings.ObjectKey), result: *bindings.GetManyResult) void {
        const host = current orelse return refuse(result, .{ .unavailable = "there is no host in a native test: call testing.Host.init first" });
        if (host.refuse) |err| return refuse(result, err);
        const found = vmhost.arena().alloc(bindings.Option(bindings.String), keys.len) catch @panic("out of memory");
        for (keys.to(), found) |*key, *to| to.* = find(host, key);
        result.* = .{ .is_err = false, .val = .{ .ok = .from(found) } };
    }

    pub fn list(query: *const bindings.Query, _: bool, result: *bindings.ListResult) void {
        const host = current orelse return refuse(result, .{ .unavailable = "there is no host in a native test: call testing.Host.init first" });
        if (host.refuse) |err| return refuse(result, err);
        const selector = if (query.label_selector.is_some) query.label_selector.val.to() else "";
        if (query.index.is_some or std.mem.indexOfAny(u8, selector, "!(") != null)
            return refuse(result, .{ .invalid = "the test host has no indexes, and knows the label selectors a=b and a only" });
        const first: usize = if (query.@"continue".is_some) std.fmt.parseInt(usize, query.@"continue".val.to(), 10) catch 0 else 0;
        const limit: usize = if (query.limit == 0) 500 else query.limit;
        var found: std.ArrayList(bindings.String) = .empty;
        var seen: usize = 0;
        var next: ?[]const u8 = null;
        for (host.objects) |text| {
            if (!isListed(text, query, selector)) continue;
            seen += 1;
            if (seen <= first) continue;
            if (found.items.len == limit) {
                next = vmhost.print("{d}", .{first + limit}) catch @panic("out of memory");
                break;
            }
            const short = if (query.metadata_only) vmhost.json(read(Object, text)) catch @panic("out of memory") else text;
            found.append(vmhost.arena(), .from(short)) catch @panic("out of memory");
        }
        result.* = .{ .is_err = false, .val = .{ .ok = .{ .objects = .from(found.items), .@"continue" = effects.option(next) } } };
    }
};

fn unsent(result: *bindings.HttpResult, why: []const u8) void {
    result.* = .{ .is_err = true, .val = .{ .err = .{ .tag = 2, .val = .{ .text = .from(why) } } } };
}

fn refuse(result: anytype, err: vmhost.ReadError) void {
    result.* = .{ .is_err = true, .val = .{ .err = .{ .tag = @intFromEnum(err), .val = switch (err) {
        .too_large => |limit| .{ .too_large = limit },
        .not_watched, .invalid, .unavailable => |text| .{ .text = .from(text) },
    } } } };
}

fn read(comptime T: type, text: []const u8) T {
    return vmhost.parse(T, text, "an object of the test host") catch @panic("an object of the test host is no object");
}

fn isOf(text: []const u8, kind: bindings.Gvk) bool {
    const object = read(Object, text);
    const version = vmhost.meta.apiVersion(.{ .group = kind.group.to(), .version = kind.version.to(), .kind = "" }) catch @panic("out of memory");
    return std.mem.eql(u8, object.apiVersion, version) and std.mem.eql(u8, object.kind, kind.kind.to());
}

fn metadataOf(text: []const u8) Metadata {
    return read(struct { metadata: Metadata }, text).metadata;
}

fn isIn(metadata: Metadata, namespace: bindings.Option(bindings.String)) bool {
    const have = metadata.namespace orelse return !namespace.is_some;
    return namespace.is_some and std.mem.eql(u8, have, namespace.val.to());
}

fn find(host: Host, key: *const bindings.ObjectKey) bindings.Option(bindings.String) {
    for (host.objects) |text| {
        const metadata = metadataOf(text);
        if (isOf(text, key.kind) and isIn(metadata, key.namespace) and std.mem.eql(u8, metadata.name, key.name.to())) return effects.option(text);
    }
    return effects.option(null);
}

fn isListed(text: []const u8, query: *const bindings.Query, selector: []const u8) bool {
    const metadata = metadataOf(text);
    if (!isOf(text, query.kind) or query.namespace.is_some and !isIn(metadata, query.namespace)) return false;
    var terms = std.mem.tokenizeScalar(u8, selector, ',');
    while (terms.next()) |term| {
        var parts = std.mem.splitScalar(u8, term, '=');
        const have = metadata.labels.map.get(parts.first()) orelse return false;
        if (parts.next()) |want| if (!std.mem.eql(u8, have, want)) return false;
    }
    if (!query.owner.is_some) return true;
    for (metadata.ownerReferences) |owner| if (std.mem.eql(u8, owner.uid, query.owner.val.to())) return true;
    return false;
}
