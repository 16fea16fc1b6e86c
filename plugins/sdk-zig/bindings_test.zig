//! Compares the records of bindings.zig with those of `wit-bindgen c`, whose layout must be the
//! same on every machine.

const std = @import("std");
const bindings = @import("bindings.zig");
const c = @cImport(@cInclude("plugin.h"));

fn same(comptime Ours: type, comptime Theirs: type) !void {
    try std.testing.expectEqual(@sizeOf(Theirs), @sizeOf(Ours));
    const ours = @typeInfo(Ours);
    const theirs = @typeInfo(Theirs);
    if (ours == .@"struct" and theirs == .@"struct") {
        try std.testing.expectEqual(theirs.@"struct".fields.len, ours.@"struct".fields.len);
        inline for (ours.@"struct".fields, theirs.@"struct".fields) |a, b| {
            try std.testing.expectEqual(@offsetOf(Theirs, b.name), @offsetOf(Ours, a.name));
            try same(a.type, b.type);
        }
    }
}

test "the records lie in memory as those of the C bindings" {
    try same(bindings.Request, c.vmhost_plugin_types_request_t);
    try same(bindings.Outcome, c.vmhost_plugin_types_outcome_t);
    inline for (.{ "apply", "patch", "create", "delete", "event", "other" }, .{ "Apply", "Patch", "Create", "Delete", "Event", "Other" }) |theirs, ours|
        try same(@field(bindings, ours), @field(c, "vmhost_plugin_types_" ++ theirs ++ "_t"));
    try same(bindings.Effect, c.vmhost_plugin_types_effect_t);
    try same(bindings.Next, c.vmhost_plugin_types_next_t);
    try same(bindings.Change, c.vmhost_plugin_types_change_t);
    try same(bindings.DescribeResult, c.exports_vmhost_plugin_controller_result_json_string_t);
    try same(bindings.MapResult, c.exports_vmhost_plugin_controller_result_list_object_name_string_t);
    try same(bindings.ObjectName, c.vmhost_plugin_types_object_name_t);
    try same(bindings.Query, c.vmhost_plugin_cluster_query_t);
    try same(bindings.Page, c.vmhost_plugin_cluster_page_t);
    try same(bindings.ReadError, c.vmhost_plugin_cluster_read_error_t);
    try same(bindings.GetResult, c.vmhost_plugin_cluster_result_option_json_read_error_t);
    try same(bindings.GetManyResult, c.vmhost_plugin_cluster_result_list_option_json_read_error_t);
    try same(bindings.ListResult, c.vmhost_plugin_cluster_result_page_read_error_t);
}
