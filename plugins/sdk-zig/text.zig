//! A writer of text in the call's memory. `std.Io.Writer.Allocating` can also send files, so every
//! policy would import those functions of WASI.

const std = @import("std");

pub const Text = struct {
    allocator: std.mem.Allocator,
    written: std.ArrayList(u8) = .empty,
    writer: std.Io.Writer = .{ .vtable = &.{ .drain = drain }, .buffer = &.{} },

    fn drain(writer: *std.Io.Writer, data: []const []const u8, splat: usize) std.Io.Writer.Error!usize {
        const self: *Text = @fieldParentPtr("writer", writer);
        const before = self.written.items.len;
        for (data, 1..) |part, i| {
            for (0..if (i == data.len) splat else 1) |_| self.written.appendSlice(self.allocator, part) catch return error.WriteFailed;
        }
        return self.written.items.len - before;
    }
};
