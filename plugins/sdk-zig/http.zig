//! HTTP requests to services outside of the cluster (wit/http-v1). The description must name them.
//! A policy that does not call `send` imports nothing of it.

const std = @import("std");
const bindings = @import("bindings.zig");
const effects = @import("effects.zig");
const vmhost = @import("vmhost.zig");

pub const Header = struct { name: []const u8, value: []const u8 };

pub const Request = struct {
    method: []const u8 = "GET",
    url: []const u8,
    headers: []const Header = &.{},
    body: []const u8 = "",
    /// How long the answer may take. If null, what is left of the call's time.
    timeout_ms: ?u32 = null,
};

/// What came back, whatever its status.
pub const Response = struct {
    status: u16,
    /// The names are in lower case.
    headers: []const Header,
    body: []const u8,

    /// Returns whether the status is 2xx.
    pub fn isSuccess(response: Response) bool {
        return response.status >= 200 and response.status < 300;
    }

    /// Returns the first value of a header, whose name is in lower case.
    pub fn header(response: Response, name: []const u8) ?[]const u8 {
        for (response.headers) |each| if (std.mem.eql(u8, each.name, name)) return each.value;
        return null;
    }

    /// Returns the body, as a type with the needed fields.
    pub fn json(response: Response, comptime T: type) !T {
        return vmhost.parse(T, response.body, "the response");
    }
};

/// Why there is no response. After HttpNoAnswer the request may have been carried out.
pub const Failure = error{ HttpDenied, HttpInvalid, HttpNotSent, HttpNoAnswer, HttpTooLarge };

pub fn isFailure(err: anyerror) bool {
    return switch (err) {
        error.HttpDenied, error.HttpInvalid, error.HttpNotSent, error.HttpNoAnswer, error.HttpTooLarge => true,
        else => false,
    };
}

/// Sends a request and waits for the whole response.
pub fn send(request: Request) (Failure || std.mem.Allocator.Error)!Response {
    const headers = try vmhost.arena().alloc(bindings.HttpHeader, request.headers.len);
    for (request.headers, headers) |from, *to| to.* = .{ .name = effects.string(from.name), .value = effects.string(from.value) };
    const asked: bindings.HttpRequest = .{
        .method = effects.string(request.method),
        .url = effects.string(request.url),
        .headers = .from(headers),
        .body = .from(request.body),
        .timeout_ms = request.timeout_ms,
    };
    var answer: bindings.HttpResult = undefined;
    bindings.host.send(&asked, &answer);
    if (answer.is_err) return failed(answer.val.err, request);
    const ok = answer.val.ok;
    const found = try vmhost.arena().alloc(Header, ok.headers.len);
    for (ok.headers.to(), found) |from, *to| to.* = .{ .name = from.name.to(), .value = from.value.to() };
    return .{ .status = ok.status, .headers = found, .body = ok.body.to() };
}

/// Records the text of the turn's `retry` in case the policy returns the error.
fn failed(from: bindings.HttpError, request: Request) Failure {
    // The query may hold a token.
    const place = request.url[0 .. std.mem.indexOfAny(u8, request.url, "?#") orelse request.url.len];
    const what = vmhost.print("{s} {s} has no response", .{ request.method, place }) catch place;
    vmhost.call.problem = switch (from.tag) {
        4 => vmhost.print("{s}: larger than {d} bytes", .{ what, from.val.too_large }),
        else => vmhost.print("{s}: {s}", .{ what, from.val.text.to() }),
    } catch what;
    return switch (from.tag) {
        0 => error.HttpDenied,
        1 => error.HttpInvalid,
        2 => error.HttpNotSent,
        4 => error.HttpTooLarge,
        else => error.HttpNoAnswer,
    };
}
