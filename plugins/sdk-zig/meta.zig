//! The common fields of objects: metadata, owner references and status conditions, like in
//! k8s.io/apimachinery. They are plain data with a JSON form.

const std = @import("std");
const vmhost = @import("vmhost.zig");

/// The part of an object's `metadata` that policies use. As a field of a policy's own type:
/// `metadata: vmhost.meta.ObjectMeta`.
pub const ObjectMeta = struct {
    name: []const u8 = "",
    namespace: ?[]const u8 = null,
    uid: []const u8 = "",
    resourceVersion: []const u8 = "",
    generation: i64 = 0,
    labels: std.json.ArrayHashMap([]const u8) = .{},
    annotations: std.json.ArrayHashMap([]const u8) = .{},
    deletionTimestamp: ?[]const u8 = null,
    finalizers: []const []const u8 = &.{},
    ownerReferences: []const OwnerReference = &.{},

    /// Returns the owner reference of the object's controller.
    pub fn controller(self: ObjectMeta) ?OwnerReference {
        for (self.ownerReferences) |owner| if (owner.controller == true) return owner;
        return null;
    }

    pub fn isControlledBy(self: ObjectMeta, uid: []const u8) bool {
        return if (self.controller()) |owner| std.mem.eql(u8, owner.uid, uid) else false;
    }

    pub fn hasFinalizer(self: ObjectMeta, finalizer: []const u8) bool {
        for (self.finalizers) |each| if (std.mem.eql(u8, each, finalizer)) return true;
        return false;
    }
};

/// An element of metadata.ownerReferences, with JSON's names.
pub const OwnerReference = struct {
    apiVersion: []const u8 = "",
    kind: []const u8 = "",
    name: []const u8 = "",
    uid: []const u8 = "",
    controller: ?bool = null,
    blockOwnerDeletion: ?bool = null,

    /// Returns a reference to the owner as the object's controller
    /// (controllerutil.SetControllerReference).
    pub fn controllerOf(owner: ObjectMeta, kind: vmhost.Kind) !OwnerReference {
        var reference = try plain(owner, kind);
        reference.controller = true;
        reference.blockOwnerDeletion = true;
        return reference;
    }

    /// Returns a reference to a plain owner.
    pub fn plain(owner: ObjectMeta, kind: vmhost.Kind) !OwnerReference {
        return .{ .apiVersion = try apiVersion(kind), .kind = kind.kind, .name = owner.name, .uid = owner.uid };
    }

    pub fn jsonStringify(self: OwnerReference, writer: anytype) !void {
        try writer.beginObject();
        inline for (@typeInfo(OwnerReference).@"struct".fields) |field| {
            const value = @field(self, field.name);
            if (@typeInfo(field.type) != .optional or value != null) {
                try writer.objectField(field.name);
                try writer.write(value);
            }
        }
        try writer.endObject();
    }
};

/// Returns apps/v1, and v1 for the core group.
pub fn apiVersion(kind: vmhost.Kind) ![]const u8 {
    return if (kind.group.len == 0) kind.version else vmhost.print("{s}/{s}", .{ kind.group, kind.version });
}

/// One aspect of an object's state, with JSON's names.
pub const Condition = struct {
    type: []const u8 = "",
    status: Status = .Unknown,
    observedGeneration: i64 = 0,
    /// If empty, now.
    lastTransitionTime: []const u8 = "",
    reason: []const u8 = "",
    message: []const u8 = "",

    pub const Status = enum { True, False, Unknown };

    /// Omits an observedGeneration of 0.
    pub fn jsonStringify(self: Condition, writer: anytype) !void {
        try writer.beginObject();
        inline for (@typeInfo(Condition).@"struct".fields) |field| {
            const value = @field(self, field.name);
            if (field.type != i64 or value != 0) {
                try writer.objectField(field.name);
                try writer.write(value);
            }
        }
        try writer.endObject();
    }
};

/// Returns the list with `new` in place of the condition of its type. The transition time changes
/// only if the status does. Null if nothing changed.
pub fn setCondition(conditions: []const Condition, new: Condition) !?[]const Condition {
    var next = new;
    if (next.lastTransitionTime.len == 0) next.lastTransitionTime = try rfc3339(std.time.timestamp());
    const at = for (conditions, 0..) |old, i| {
        if (std.mem.eql(u8, old.type, new.type)) break i;
    } else conditions.len;
    if (at < conditions.len) {
        const old = conditions[at];
        if (old.status == next.status and old.lastTransitionTime.len > 0) next.lastTransitionTime = old.lastTransitionTime;
        if (equal(old, next)) return null;
    }
    const all = try vmhost.arena().alloc(Condition, @max(conditions.len, at + 1));
    @memcpy(all[0..conditions.len], conditions);
    all[at] = next;
    return all;
}

fn equal(a: Condition, b: Condition) bool {
    return a.status == b.status and a.observedGeneration == b.observedGeneration and std.mem.eql(u8, a.lastTransitionTime, b.lastTransitionTime) and
        std.mem.eql(u8, a.reason, b.reason) and std.mem.eql(u8, a.message, b.message);
}

/// Returns the list without the condition of this type.
pub fn removeCondition(conditions: []const Condition, name: []const u8) ![]const Condition {
    var all: std.ArrayList(Condition) = .empty;
    for (conditions) |each| if (!std.mem.eql(u8, each.type, name)) try all.append(vmhost.arena(), each);
    return all.items;
}

pub fn findCondition(conditions: []const Condition, name: []const u8) ?Condition {
    for (conditions) |each| if (std.mem.eql(u8, each.type, name)) return each;
    return null;
}

pub fn isCondition(conditions: []const Condition, name: []const u8, status: Condition.Status) bool {
    return if (findCondition(conditions, name)) |found| found.status == status else false;
}

/// Formats seconds since 1970 as Kubernetes does. Earlier times become 1970.
pub fn rfc3339(seconds: i64) ![]const u8 {
    const since: std.time.epoch.EpochSeconds = .{ .secs = @intCast(@max(seconds, 0)) };
    const year = since.getEpochDay().calculateYearDay();
    const month = year.calculateMonthDay();
    const day = since.getDaySeconds();
    return vmhost.print("{d:0>4}-{d:0>2}-{d:0>2}T{d:0>2}:{d:0>2}:{d:0>2}Z", .{
        year.year,             month.month.numeric(),    month.day_index + 1,
        day.getHoursIntoDay(), day.getMinutesIntoHour(), day.getSecondsIntoMinute(),
    });
}
