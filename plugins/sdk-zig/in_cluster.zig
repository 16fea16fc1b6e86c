//! Effects in another cluster than the turn's.

const effects = @import("effects.zig");
const vmhost = @import("vmhost.zig");

/// Adds effects in one cluster to a turn: `turn.inCluster("east").delete(.{ .key = key })`. The
/// plugin needs the same permission as in the turn's own cluster, and a controller in this one.
pub const InCluster = struct {
    turn: *vmhost.Turn,
    /// The name of a member; null for the host's own cluster.
    cluster: ?[]const u8,

    pub fn apply(there: InCluster, fields: anytype, options: effects.Apply.Options) !void {
        try there.add(.{ .apply = .{ .object = try vmhost.json(fields), .options = options } });
    }

    pub fn patchMerge(there: InCluster, key: vmhost.ObjectKey, body: anytype, options: effects.Patch.Options) !void {
        try there.add(.{ .patch = .{ .key = key, .type = .merge, .body = try vmhost.json(body), .options = options } });
    }

    pub fn patchJson(there: InCluster, key: vmhost.ObjectKey, operations: anytype, options: effects.Patch.Options) !void {
        try there.add(.{ .patch = .{ .key = key, .type = .json, .body = try vmhost.json(operations), .options = options } });
    }

    pub fn create(there: InCluster, new: anytype) !void {
        try there.add(.{ .create = .{ .object = try vmhost.json(new) } });
    }

    pub fn delete(there: InCluster, effect: effects.Delete) !void {
        try there.add(.{ .delete = effect });
    }

    /// Adds an effect that writes an object.
    pub fn add(there: InCluster, effect: effects.Effect) !void {
        const body = try vmhost.json(.{ .cluster = there.cluster, .effect = try formOf(effect) });
        try there.turn.add(.{ .other = .{ .name = "in-cluster", .body = body } });
    }
};

/// Returns the form of an effect in the body of another one.
fn formOf(effect: effects.Effect) !vmhost.Raw {
    return .{ .text = switch (effect) {
        .apply => |apply| try vmhost.json(.{ .apply = .{
            .object = vmhost.Raw{ .text = apply.object },
            .subresource = apply.options.subresource,
            .force = apply.options.force,
            .createIfAbsent = apply.options.create_if_absent orelse (apply.options.subresource == null),
            .ifVersion = apply.options.if_version,
        } }),
        .patch => |patch| try vmhost.json(.{ .patch = .{
            .key = try keyOf(patch.key),
            .subresource = patch.options.subresource,
            .type = patch.type,
            .body = vmhost.Raw{ .text = patch.body },
            .ifVersion = patch.options.if_version,
        } }),
        .create => |create| try vmhost.json(.{ .create = .{ .object = vmhost.Raw{ .text = create.object } } }),
        .delete => |delete| try vmhost.json(.{ .delete = .{
            .key = try keyOf(delete.key),
            .uid = delete.uid,
            .ifVersion = delete.if_version,
            .propagation = delete.propagation,
        } }),
        .event, .other => return vmhost.failed("only an apply, patch, create or delete can be in a named cluster", .{}),
    } };
}

const Key = struct { apiVersion: []const u8, kind: []const u8, namespace: ?[]const u8, name: []const u8 };

fn keyOf(key: vmhost.ObjectKey) !Key {
    const kind = key.kind;
    const version = if (kind.group.len == 0) kind.version else try vmhost.print("{s}/{s}", .{ kind.group, kind.version });
    return .{ .apiVersion = version, .kind = kind.kind, .namespace = key.namespace, .name = key.name };
}
