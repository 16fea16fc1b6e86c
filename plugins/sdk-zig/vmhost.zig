//! Write a vmhost policy in Zig. A plugin is a file with some of these public declarations:
//!
//!     pub const plugin: vmhost.Description = ...;
//!     pub fn reconcile(turn: *vmhost.Turn) !vmhost.Next
//!     // for watches with `.map = .guest`
//!     pub fn mapChanges(request: vmhost.MapRequest) ![]const vmhost.ObjectName
//!     // for webhooks and conversions
//!     pub fn admit(review: *vmhost.Review) !vmhost.Verdict
//!     pub fn convert(batch: vmhost.Batch) ![]const std.json.Value
//!
//! Memory: everything of a call (the host's input, what `arena()` allocates, and the result) is in
//! one arena, which is freed when the host has read the outcome. Free nothing, and keep nothing of
//! it in a global variable.
//!
//! An error from `reconcile` is a transient failure: `retry` with its text, without effects.
//! `failed` sets the text.

const std = @import("std");
const bindings = @import("bindings.zig");
const description = @import("description.zig");
const effects = @import("effects.zig");
const in_cluster = @import("in_cluster.zig");
const read = @import("read.zig");
const review = @import("review.zig");
const Text = @import("text.zig").Text;
const webhook = @import("webhook.zig");

pub const Bucket = description.Bucket;
pub const Changed = description.Changed;
pub const Controller = description.Controller;
pub const Description = description.Description;
pub const HttpGrant = description.HttpGrant;
pub const HttpHeader = description.HttpHeader;
pub const Index = description.Index;
pub const Kind = description.Kind;
pub const Map = description.Map;
pub const Permission = description.Permission;
pub const Predicates = description.Predicates;
pub const Retry = description.Retry;
pub const Timer = description.Timer;
pub const Verb = description.Verb;
pub const Watch = description.Watch;

pub const Conversion = webhook.Conversion;
pub const MatchCondition = webhook.MatchCondition;
pub const Rule = webhook.Rule;
pub const Webhook = webhook.Webhook;

pub const Deny = review.Deny;
pub const Review = review.Review;
pub const Verdict = review.Verdict;
pub const deny = review.deny;
pub const Batch = @import("batch.zig").Batch;

pub const Apply = effects.Apply;
pub const Create = effects.Create;
pub const Delete = effects.Delete;
pub const Effect = effects.Effect;
pub const Event = effects.Event;
pub const InCluster = in_cluster.InCluster;
pub const Next = effects.Next;
pub const Other = effects.Other;
pub const Patch = effects.Patch;
pub const Propagation = effects.Propagation;

pub const Page = read.Page;
pub const Query = read.Query;
pub const ReadError = read.ReadError;
pub const ReadFailure = read.ReadFailure;
pub const get = read.get;
pub const getLive = read.getLive;
pub const getMany = read.getMany;
pub const getText = read.getText;
pub const getLiveText = read.getLiveText;
pub const list = read.list;
pub const listLive = read.listLive;
pub const listAll = read.listAll;
pub const lastReadError = read.lastReadError;
pub const setting = read.setting;

/// For root.zig.
pub const bridge = @import("bridge.zig");
/// HTTP requests: `vmhost.http.send(.{ .url = url })`.
pub const http = @import("http.zig");
pub const meta = @import("meta.zig");
pub const testing = @import("testing.zig");

/// Names one object. The namespace is null if and only if the kind is cluster-scoped.
pub const ObjectKey = struct { kind: Kind, namespace: ?[]const u8 = null, name: []const u8 };

/// Names one object whose kind is known from the context.
pub const ObjectName = struct { namespace: ?[]const u8 = null, name: []const u8 };

/// Which effect of this key's last turn was refused, and why.
pub const Refusal = struct { effect: u32, code: u16, reason: []const u8, message: []const u8 };

/// A change of an object, as text. `old` is null for a new object, `new` for a deleted one.
pub const Change = struct { old: ?[]const u8 = null, new: ?[]const u8 = null };

pub const MapRequest = struct { controller: []const u8, changes: []const Change };

/// One turn: a key, the newest snapshot of its object, and the effects that the policy adds.
pub const Turn = struct {
    controller: []const u8,
    key: ObjectKey,
    /// The text that the API server wrote; null if the object is gone.
    object_text: ?[]const u8 = null,
    /// The text as of the last turn that succeeded; only if the description sets `previous`.
    previous_text: ?[]const u8 = null,
    /// Only if the description has a `finalizer`.
    deleting: bool = false,
    /// The number of failures since the last success.
    attempt: u32 = 0,
    last: ?Refusal = null,
    /// The effects to carry out, in order.
    effects: std.ArrayList(Effect) = .empty,

    /// Returns the object as a type of the policy's own, with only the fields that it needs.
    /// `std.json.Value` has all, with numbers as they are written.
    pub fn object(turn: *const Turn, comptime T: type) !?T {
        return if (turn.object_text) |text| try parse(T, text, "the object") else null;
    }

    pub fn previous(turn: *const Turn, comptime T: type) !?T {
        return if (turn.previous_text) |text| try parse(T, text, "the previous object") else null;
    }

    /// Server-side apply of an object, of any type that `std.json` writes.
    pub fn apply(turn: *Turn, fields: anytype, options: Apply.Options) !void {
        try turn.add(.{ .apply = .{ .object = try json(fields), .options = options } });
    }

    /// A JSON merge patch (RFC 7386): `.{ .status = .{ .message = "hello" } }`. A null removes a
    /// field.
    pub fn patchMerge(turn: *Turn, key: ObjectKey, body: anytype, options: Patch.Options) !void {
        try turn.add(.{ .patch = .{ .key = key, .type = .merge, .body = try json(body), .options = options } });
    }

    /// A JSON patch (RFC 6902): `.{ .{ .op = "test", .path = "/a", .value = 1 }, ... }`. If a test
    /// fails, nothing changes, and the host retries the key.
    pub fn patchJson(turn: *Turn, key: ObjectKey, operations: anytype, options: Patch.Options) !void {
        try turn.add(.{ .patch = .{ .key = key, .type = .json, .body = try json(operations), .options = options } });
    }

    pub fn create(turn: *Turn, new: anytype) !void {
        try turn.add(.{ .create = .{ .object = try json(new) } });
    }

    pub fn delete(turn: *Turn, effect: Delete) !void {
        try turn.add(.{ .delete = effect });
    }

    /// An Event about the turn's object.
    pub fn event(turn: *Turn, effect: Event) !void {
        try turn.add(.{ .event = effect });
    }

    /// Returns what adds effects in the member cluster of this name, or in the host's own for null,
    /// instead of the turn's.
    pub fn inCluster(turn: *Turn, cluster: ?[]const u8) InCluster {
        return .{ .turn = turn, .cluster = cluster };
    }

    pub fn add(turn: *Turn, effect: Effect) !void {
        try turn.effects.append(arena(), effect);
    }
};

/// JSON text that is written unchanged inside another JSON value.
pub const Raw = struct {
    text: []const u8,

    pub fn jsonStringify(raw: Raw, writer: anytype) !void {
        try writer.print("{s}", .{raw.text});
    }
};

/// Returns the allocator of the call's memory.
pub fn arena() std.mem.Allocator {
    return call.memory.allocator();
}

/// Formats a text in the call's memory.
pub fn print(comptime format: []const u8, arguments: anytype) error{OutOfMemory}![]const u8 {
    var text: Text = .{ .allocator = arena() };
    text.writer.print(format, arguments) catch return error.OutOfMemory;
    return text.written.items;
}

/// Returns an error with a text: `return vmhost.failed("{s} has no owner", .{name})`.
pub fn failed(comptime format: []const u8, arguments: anytype) error{ Failed, OutOfMemory } {
    call.problem = print(format, arguments) catch return error.OutOfMemory;
    return error.Failed;
}

/// Returns the JSON text of a value.
pub fn json(value: anytype) error{OutOfMemory}![]const u8 {
    var text: Text = .{ .allocator = arena() };
    std.json.Stringify.value(value, .{}, &text.writer) catch return error.OutOfMemory;
    return text.written.items;
}

/// Parses JSON text, ignoring unknown fields; `what` names the text in the error.
pub fn parse(comptime T: type, text: []const u8, what: []const u8) !T {
    var scanner: std.json.Scanner = .initCompleteInput(arena(), text);
    var place: std.json.Diagnostics = .{};
    scanner.enableDiagnostics(&place);
    return std.json.parseFromTokenSourceLeaky(T, arena(), &scanner, .{
        .ignore_unknown_fields = true,
        .duplicate_field_behavior = .use_last,
        .parse_numbers = false,
        .allocate = .alloc_if_needed,
    }) catch |err| switch (err) {
        error.OutOfMemory => err,
        else => failed("{s} cannot be read: {s} at byte {d}", .{ what, @errorName(err), place.getByteOffset() }),
    };
}

pub const Level = enum(u8) { trace, debug, info, warn, err };

/// Writes a line to the host's log. `std.log` writes there too.
pub fn log(level: Level, comptime format: []const u8, arguments: anytype) void {
    const line = print(format, arguments) catch return;
    bindings.host.log(@intFromEnum(level), effects.string(line));
}

/// The state of a call. There is one call at a time.
const Call = struct {
    memory: std.heap.ArenaAllocator = .init(if (@import("builtin").target.cpu.arch.isWasm()) std.heap.wasm_allocator else std.heap.page_allocator),
    problem: ?[]const u8 = null,

    /// Returns the text of an error from the policy.
    pub fn textOf(self: *Call, err: anyerror) []const u8 {
        defer self.problem = null;
        // A policy that continued after a failure may return another error.
        if (err == error.Failed or read.isReadFailure(err) or http.isFailure(err)) return self.problem orelse @errorName(err);
        return @errorName(err);
    }

    pub fn end(self: *Call) void {
        self.problem = null;
        _ = self.memory.reset(.{ .retain_with_limit = 1 << 20 });
    }
};

/// For root.zig, read.zig and testing.zig.
pub var call: Call = .{};
