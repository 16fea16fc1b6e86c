//! __name__: a __kind__ is stored only if its `spec.who` names somebody.

const vmhost = @import("vmhost");

pub const plugin: vmhost.Description = .{
    .name = "__name__",
    .version = "0.1.0",
    .webhooks = &.{.{
        .name = "who",
        .rules = &.{.{
            .api_groups = &.{"__group__"},
            .api_versions = &.{"__version__"},
            .resources = &.{"__plural__"},
            .operations = &.{ "CREATE", "UPDATE" },
        }},
    }},
};

const Object = struct {
    spec: struct { who: []const u8 = "" } = .{},
};

pub fn admit(review: *vmhost.Review) !vmhost.Verdict {
    const object = try review.object(Object) orelse return .allow; // a deletion
    if (object.spec.who.len == 0) return vmhost.deny("spec.who must name somebody", .{});
    return .allow;
}
