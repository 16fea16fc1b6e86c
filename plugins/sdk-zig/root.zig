//! The root of a plugin's build: the functions that the host calls. The policy is the module
//! `plugin`, the SDK the module `vmhost`.

const std = @import("std");
const policy = @import("plugin");
const vmhost = @import("vmhost");
const bridge = vmhost.bridge;

/// `std.log` writes to the host's log.
pub const std_options: std.Options = .{ .log_level = .debug, .logFn = log };

fn log(comptime level: std.log.Level, comptime scope: @Type(.enum_literal), comptime format: []const u8, arguments: anytype) void {
    const prefix = if (scope == .default) "" else "(" ++ @tagName(scope) ++ ") ";
    vmhost.log(switch (level) {
        .err => .err,
        .warn => .warn,
        .info => .info,
        .debug => .debug,
    }, prefix ++ format, arguments);
}

/// A panic traps, and writes its reason to the host's log.
pub const panic = std.debug.FullPanic(onPanic);

fn onPanic(message: []const u8, _: ?usize) noreturn {
    vmhost.log(.err, "panic: {s}", .{message});
    @trap();
}

comptime {
    const name = "vmhost:plugin/controller@1.0.0#";
    @export(&describe, .{ .name = name ++ "describe" });
    @export(&reconcile, .{ .name = name ++ "reconcile" });
    @export(&mapChanges, .{ .name = name ++ "map-changes" });
    for (.{ "describe", "reconcile", "map-changes" }) |function| @export(&end, .{ .name = "cabi_post_" ++ name ++ function });
    @export(&realloc, .{ .name = "cabi_realloc" });
    @export(&reallocAdapter, .{ .name = "cabi_realloc_adapter" });
}

var described: bridge.DescribeResult = undefined;
var decided: bridge.Outcome = undefined;
var mapped: bridge.MapResult = undefined;

fn describe() callconv(.c) *bridge.DescribeResult {
    described = bridge.describe(policy);
    return &described;
}

fn reconcile(request: *const bridge.Request) callconv(.c) *bridge.Outcome {
    decided = bridge.reconcile(policy, request);
    return &decided;
}

fn mapChanges(controller: [*]const u8, length: usize, changes: [*]const bridge.Change, count: usize) callconv(.c) *bridge.MapResult {
    mapped = bridge.mapChanges(policy, .{ .ptr = controller, .len = length }, .{ .ptr = changes, .len = count });
    return &mapped;
}

/// The host has read the result of a call.
fn end(_: usize) callconv(.c) void {
    vmhost.call.end();
}

/// Allocates memory for the host's arguments and answers.
fn realloc(before: ?[*]u8, old_size: usize, alignment: usize, new_size: usize) callconv(.c) ?[*]u8 {
    return allocate(vmhost.arena(), before, old_size, alignment, new_size);
}

/// Allocates what the preview1 adapter (present if stdio is used) keeps between calls.
fn reallocAdapter(before: ?[*]u8, old_size: usize, alignment: usize, new_size: usize) callconv(.c) ?[*]u8 {
    return allocate(std.heap.wasm_allocator, before, old_size, alignment, new_size);
}

fn allocate(allocator: std.mem.Allocator, before: ?[*]u8, old_size: usize, alignment: usize, new_size: usize) ?[*]u8 {
    const start = allocator.rawAlloc(@max(new_size, 1), .fromByteUnits(alignment), @returnAddress()) orelse @panic("out of memory");
    if (before) |old| @memcpy(start[0..@min(old_size, new_size)], old[0..@min(old_size, new_size)]);
    return start;
}
