//! Bindings of `wit/http-v1`. Components that do not import it know nothing of it.

#[allow(
    dead_code,
    reason = "the world of one import has no function that the host calls"
)]
mod generated {
    wasmtime::component::bindgen!({
        path: "../../wit/http-v1",
        world: "client",
        imports: {
            "vmhost:http/http.send": async | trappable,
            default: trappable,
        },
    });
}

pub(crate) use generated::vmhost::http::http;

/// The interface, without its version.
pub(crate) const HTTP: &str = "vmhost:http/http";
