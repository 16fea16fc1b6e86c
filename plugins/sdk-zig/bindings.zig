//! wit/v1 in memory: the records in the layout of the canonical ABI, and the functions that cross
//! the boundary. Hand-written (wit-bindgen does not support Zig); bindings_test.zig compares them
//! with the output of `wit-bindgen c`.

const builtin = @import("builtin");

pub fn List(comptime T: type) type {
    return extern struct {
        ptr: [*]const T,
        len: usize,

        /// Zig allows any address for an empty slice, but the host requires an aligned one inside
        /// the memory.
        pub fn from(slice: []const T) @This() {
            return .{ .ptr = if (slice.len == 0) @ptrCast(@alignCast(&nothing)) else slice.ptr, .len = slice.len };
        }

        /// The host's address of an empty list is meaningless.
        pub fn to(self: @This()) []const T {
            return if (self.len == 0) &.{} else self.ptr[0..self.len];
        }
    };
}

const nothing: [16]u8 align(16) = @splat(0);

pub fn Option(comptime T: type) type {
    return extern struct { is_some: bool, val: T };
}

pub fn Result(comptime T: type, comptime E: type) type {
    return extern struct { is_err: bool, val: extern union { ok: T, err: E } };
}

pub const String = List(u8);

pub const Gvk = extern struct { group: String, version: String, kind: String };
pub const ObjectKey = extern struct { kind: Gvk, namespace: Option(String), name: String };
pub const ObjectName = extern struct { namespace: Option(String), name: String };
pub const Refusal = extern struct { effect: u32, code: u16, reason: String, message: String };
pub const Request = extern struct {
    controller: String,
    key: ObjectKey,
    object: Option(String),
    previous: Option(String),
    deleting: bool,
    attempt: u32,
    last: Option(Refusal),
};

pub const Apply = extern struct { object: String, subresource: Option(String), force: bool, create_if_absent: bool, if_version: Option(String) };
pub const Patch = extern struct { key: ObjectKey, subresource: Option(String), type: u8, body: String, if_version: Option(String) };
pub const Create = extern struct { object: String };
pub const Delete = extern struct { key: ObjectKey, uid: Option(String), if_version: Option(String), propagation: Option(u8) };
pub const Event = extern struct { type: u8, reason: String, action: String, note: String, related: Option(ObjectKey) };
pub const Other = extern struct { name: String, body: String };
pub const Effect = extern struct {
    tag: u8,
    val: extern union { apply: Apply, patch: Patch, create: Create, delete: Delete, event: Event, other: Other },
};
pub const Next = extern struct { tag: u8, val: extern union { requeue_after_ms: u32, text: String } };
pub const Outcome = extern struct { effects: List(Effect), next: Next };

pub const DescribeResult = Result(String, String);

pub const Change = extern struct { old: Option(String), new: Option(String) };
pub const MapResult = Result(List(ObjectName), String);

pub const ReadError = extern struct { tag: u8, val: extern union { too_large: u32, text: String } };
pub const IndexMatch = extern struct { name: String, value: String };
pub const Query = extern struct {
    kind: Gvk,
    namespace: Option(String),
    label_selector: Option(String),
    index: Option(IndexMatch),
    owner: Option(String),
    metadata_only: bool,
    limit: u32,
    @"continue": Option(String),
};
pub const Page = extern struct { objects: List(String), @"continue": Option(String) };
pub const GetResult = Result(Option(String), ReadError);
pub const GetManyResult = Result(List(Option(String)), ReadError);
pub const ListResult = Result(Page, ReadError);

/// wit/http-v1. What is sent crosses in parts.
pub const HttpHeader = extern struct { name: String, value: String };
pub const HttpRequest = struct { method: String, url: String, headers: List(HttpHeader), body: String, timeout_ms: ?u32 };
pub const HttpResponse = extern struct { status: u16, headers: List(HttpHeader), body: String };
pub const HttpError = extern struct { tag: u8, val: extern union { too_large: u32, text: String } };
pub const HttpResult = Result(HttpResponse, HttpError);

/// The host's functions; in native tests testing.zig provides them.
pub const host = if (builtin.target.cpu.arch.isWasm()) imports else @import("testing.zig").imports;

const imports = struct {
    const raw_log = @extern(*const fn (i32, [*]const u8, usize) callconv(.c) void, .{ .name = "log", .library_name = "vmhost:plugin/log@1.0.0" });
    const RawSetting = *const fn ([*]const u8, usize, *Option(String)) callconv(.c) void;
    const raw_setting = @extern(RawSetting, .{ .name = "get", .library_name = "vmhost:plugin/config@1.0.0" });
    const Text = [*]const u8;
    const RawGet = *const fn (Text, usize, Text, usize, Text, usize, i32, Text, usize, Text, usize, *GetResult) callconv(.c) void;
    const RawGetMany = *const fn ([*]const ObjectKey, usize, *GetManyResult) callconv(.c) void;
    const RawList = *const fn (*const Query, *ListResult) callconv(.c) void;

    fn cluster(comptime Function: type, comptime name: []const u8) Function {
        return @extern(Function, .{ .name = name, .library_name = "vmhost:plugin/cluster@1.0.0" });
    }

    const RawSend = *const fn (Text, usize, Text, usize, [*]const HttpHeader, usize, Text, usize, i32, u32, *HttpResult) callconv(.c) void;

    pub fn send(request: *const HttpRequest, result: *HttpResult) void {
        const function = @extern(RawSend, .{ .name = "send", .library_name = "vmhost:http/http@1.0.0" });
        function(
            request.method.ptr,
            request.method.len,
            request.url.ptr,
            request.url.len,
            request.headers.ptr,
            request.headers.len,
            request.body.ptr,
            request.body.len,
            @intFromBool(request.timeout_ms != null),
            request.timeout_ms orelse 0,
            result,
        );
    }

    pub fn log(level: u8, line: String) void {
        raw_log(level, line.ptr, line.len);
    }

    pub fn setting(name: String, result: *Option(String)) void {
        raw_setting(name.ptr, name.len, result);
    }

    pub fn get(key: *const ObjectKey, live: bool, result: *GetResult) void {
        const function = if (live) cluster(RawGet, "get-live") else cluster(RawGet, "get");
        const kind = &key.kind;
        const namespace = if (key.namespace.is_some) key.namespace.val else String.from("");
        function(
            kind.group.ptr,
            kind.group.len,
            kind.version.ptr,
            kind.version.len,
            kind.kind.ptr,
            kind.kind.len,
            @intFromBool(key.namespace.is_some),
            namespace.ptr,
            namespace.len,
            key.name.ptr,
            key.name.len,
            result,
        );
    }

    pub fn getMany(keys: List(ObjectKey), result: *GetManyResult) void {
        cluster(RawGetMany, "get-many")(keys.ptr, keys.len, result);
    }

    pub fn list(query: *const Query, live: bool, result: *ListResult) void {
        const function = if (live) cluster(RawList, "list-live") else cluster(RawList, "list");
        function(query, result);
    }
};
