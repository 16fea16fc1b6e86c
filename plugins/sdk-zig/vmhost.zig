//! Write a vmhost policy in Zig. A plugin is a file with two or three public declarations:
//!
//!     pub const plugin: vmhost.Description = ...;
//!     pub fn reconcile(turn: *vmhost.Turn) !vmhost.Next
//!     pub fn mapChanges(request: vmhost.MapRequest) ![]const vmhost.ObjectName   // for watches with `.map = .guest`
//!
//! Memory: everything of a call, what the host hands in, what `arena()` gives and what is returned, lies in one arena that is emptied when the host has read
//! the outcome. Free nothing, and keep nothing of it in a global variable.
//!
//! An error that `reconcile` returns is a transient failure: `retry` with its text, without effects. `failed` gives it a text of your own.

const std = @import("std");
const bindings = @import("bindings.zig");
const description = @import("description.zig");
const effects = @import("effects.zig");
const read = @import("read.zig");
const Text = @import("text.zig").Text;

pub const Bucket = description.Bucket;
pub const Changed = description.Changed;
pub const Controller = description.Controller;
pub const Description = description.Description;
pub const Index = description.Index;
pub const Kind = description.Kind;
pub const Map = description.Map;
pub const Permission = description.Permission;
pub const Predicates = description.Predicates;
pub const Retry = description.Retry;
pub const Timer = description.Timer;
pub const Verb = description.Verb;
pub const Watch = description.Watch;

pub const Apply = effects.Apply;
pub const Create = effects.Create;
pub const Delete = effects.Delete;
pub const Effect = effects.Effect;
pub const Event = effects.Event;
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
pub const meta = @import("meta.zig");
pub const testing = @import("testing.zig");

/// Names one object. No namespace exactly when the kind is cluster-scoped.
pub const ObjectKey = struct { kind: Kind, namespace: ?[]const u8 = null, name: []const u8 };

/// Names one object of a kind that is known from where it stands.
pub const ObjectName = struct { namespace: ?[]const u8 = null, name: []const u8 };

/// Which effect of this key's last turn was refused, and why.
pub const Refusal = struct { effect: u32, code: u16, reason: []const u8, message: []const u8 };

/// A change of an object, as text. No `old`: it is new. No `new`: it is gone.
pub const Change = struct { old: ?[]const u8 = null, new: ?[]const u8 = null };

pub const MapRequest = struct { controller: []const u8, changes: []const Change };

/// One turn: a key, the newest snapshot of its object, and the effects that the policy adds.
pub const Turn = struct {
    controller: []const u8,
    key: ObjectKey,
    /// As the API server wrote it; null: it is gone.
    object_text: ?[]const u8 = null,
    /// Only if the description says `previous`: as of the last turn that succeeded.
    previous_text: ?[]const u8 = null,
    /// Only if the description names a `finalizer`.
    deleting: bool = false,
    /// Failures since the last success.
    attempt: u32 = 0,
    last: ?Refusal = null,
    /// What is to be done, in this order.
    effects: std.ArrayList(Effect) = .empty,

    /// The object as a type of the policy's own, which names only the fields that it needs. `std.json.Value` takes all, numbers as they are written.
    pub fn object(turn: *const Turn, comptime T: type) !?T {
        return if (turn.object_text) |text| try parse(T, text, "the object") else null;
    }

    pub fn previous(turn: *const Turn, comptime T: type) !?T {
        return if (turn.previous_text) |text| try parse(T, text, "the previous object") else null;
    }

    /// Server-side apply of an object: of any type that `std.json` writes.
    pub fn apply(turn: *Turn, fields: anytype, options: Apply.Options) !void {
        try turn.add(.{ .apply = .{ .object = try json(fields), .options = options } });
    }

    /// A JSON merge patch (RFC 7386): `.{ .status = .{ .message = "hello" } }`. A null removes a field.
    pub fn patchMerge(turn: *Turn, key: ObjectKey, body: anytype, options: Patch.Options) !void {
        try turn.add(.{ .patch = .{ .key = key, .type = .merge, .body = try json(body), .options = options } });
    }

    /// A JSON patch (RFC 6902): `.{ .{ .op = "test", .path = "/a", .value = 1 }, ... }`. A test that fails changes nothing, and the key is tried again.
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

    pub fn add(turn: *Turn, effect: Effect) !void {
        try turn.effects.append(arena(), effect);
    }
};

/// JSON text as it is: a value for whatever is written as JSON.
pub const Raw = struct {
    text: []const u8,

    pub fn jsonStringify(raw: Raw, writer: anytype) !void {
        try writer.print("{s}", .{raw.text});
    }
};

/// The call's memory.
pub fn arena() std.mem.Allocator {
    return call.memory.allocator();
}

/// Text in the call's memory.
pub fn print(comptime format: []const u8, arguments: anytype) error{OutOfMemory}![]const u8 {
    var text: Text = .{ .allocator = arena() };
    text.writer.print(format, arguments) catch return error.OutOfMemory;
    return text.written.items;
}

/// `return vmhost.failed("{s} has no owner", .{name})`: an error with a text.
pub fn failed(comptime format: []const u8, arguments: anytype) error{ Failed, OutOfMemory } {
    call.problem = print(format, arguments) catch return error.OutOfMemory;
    return error.Failed;
}

/// JSON text of a value.
pub fn json(value: anytype) error{OutOfMemory}![]const u8 {
    var text: Text = .{ .allocator = arena() };
    std.json.Stringify.value(value, .{}, &text.writer) catch return error.OutOfMemory;
    return text.written.items;
}

/// Reads JSON text. Unknown fields are passed over; `what` names it in the error.
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

/// Writes a line to the host's log. `std.log` goes there, too.
pub fn log(level: Level, comptime format: []const u8, arguments: anytype) void {
    const line = print(format, arguments) catch return;
    bindings.host.log(@intFromEnum(level), effects.string(line));
}

/// What a call has. There is one at a time.
const Call = struct {
    memory: std.heap.ArenaAllocator = .init(if (@import("builtin").target.cpu.arch.isWasm()) std.heap.wasm_allocator else std.heap.page_allocator),
    problem: ?[]const u8 = null,

    /// The text of an error that the policy returned.
    pub fn textOf(self: *Call, err: anyerror) []const u8 {
        defer self.problem = null;
        // A policy that went on after a failure may end with another error.
        if (err == error.Failed or read.isReadFailure(err)) return self.problem orelse @errorName(err);
        return @errorName(err);
    }

    pub fn end(self: *Call) void {
        self.problem = null;
        _ = self.memory.reset(.{ .retain_with_limit = 1 << 20 });
    }
};

/// For root.zig, read.zig and testing.zig.
pub var call: Call = .{};
