//! The reviews: admission and conversion.

const std = @import("std");
const vmhost = @import("vmhost");
const Review = vmhost.Review;
const Verdict = vmhost.Verdict;

const Case = struct { spec: struct { case: []const u8 = "" } = .{} };

pub fn admit(review: *Review) !Verdict {
    const object = try review.object(Case) orelse try review.oldObject(Case) orelse Case{};
    const name = object.spec.case;
    inline for (@typeInfo(reviews).@"struct".decls) |decl| {
        if (std.mem.eql(u8, decl.name, name)) return @field(reviews, decl.name)(review);
    }
    return vmhost.deny("unknown case {s}", .{name});
}

const reviews = struct {
    pub fn allow(of: *Review) !Verdict {
        try of.warn("careful: ☃", .{});
        try of.audit("user", of.user_info.username);
        return .allow;
    }

    pub fn deny(_: *Review) !Verdict {
        return vmhost.deny("no: ☃", .{});
    }

    pub fn @"deny-as"(_: *Review) !Verdict {
        return .{ .deny = .{ .message = "taken", .code = 409, .reason = "Conflict" } };
    }

    pub fn delete(of: *Review) !Verdict {
        try of.warn("deleted", .{});
        return .allow;
    }

    pub fn review(of: *Review) !Verdict {
        const dry_run = if (of.dry_run) "dry run" else "";
        const texts = [_][]const u8{
            of.uid,          @tagName(of.operation), of.kind.kind,           of.resource.resource,
            of.sub_resource, of.name,                of.namespace orelse "", dry_run,
        };
        for (texts) |text| try of.warn("{s}", .{text});
        return .allow;
    }

    pub fn mutate(of: *Review) !Verdict {
        var object = (try of.object(std.json.Value)).?;
        const spec = object.object.getPtr("spec").?;
        var inner: std.json.ObjectMap = .init(vmhost.arena());
        try inner.put("x", .null);
        try spec.object.put("a/b~c", .{ .object = inner });
        try spec.object.put("text", .{ .string = "b" });
        _ = spec.object.orderedRemove("old");
        try spec.object.getPtr("list").?.array.insert(1, .{ .integer = 9 });
        try of.changeTo(object);
        return .allow;
    }

    pub fn operations(of: *Review) !Verdict {
        try of.patch(.{ .op = "add", .path = "/spec/a", .value = 1 });
        try of.patch(.{ .op = "remove", .path = "/spec/b" });
        return .allow;
    }

    pub fn same(of: *Review) !Verdict {
        try of.changeTo((try of.object(std.json.Value)).?);
        return .allow;
    }

    pub fn @"error"(_: *Review) !Verdict {
        return vmhost.failed("broken on purpose", .{});
    }
};

pub fn convert(batch: vmhost.Batch) ![]const std.json.Value {
    return if (std.mem.eql(u8, batch.version(), "v2")) batch.each(toNew) else batch.each(toOld);
}

fn toNew(object: *std.json.ObjectMap, _: []const u8) !void {
    try rename(object, "case", "name");
}

fn toOld(object: *std.json.ObjectMap, _: []const u8) !void {
    try rename(object, "name", "case");
}

fn rename(object: *std.json.ObjectMap, from: []const u8, to: []const u8) !void {
    const spec = object.getPtr("spec") orelse return;
    const value = spec.object.get(from) orelse return;
    if (value == .string and std.mem.eql(u8, value.string, "bad")) return vmhost.failed("bad on purpose", .{});
    _ = spec.object.orderedRemove(from);
    try spec.object.put(to, value);
}
