//! The paths of one plugin's reports and orders. The host serves them, and commands ask for them.
//! This module must not know the answers.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

/// Returns the path `/plugins/{plugin}/{what}`. `what` may end in a query.
pub fn of_plugin(plugin: &str, what: &str) -> String {
    // The user may have typed any text as the name.
    format!("/plugins/{}/{what}", encoded(plugin))
}

/// Encodes a text as one part of a path or a query.
pub fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

/// Returns the path of a plugin's history.
pub fn history(plugin: &str) -> String {
    of_plugin(plugin, "history")
}

/// Returns the path of the component with this digest, which may have `sha256:` in front.
pub fn component(plugin: &str, digest: &str) -> String {
    of_plugin(plugin, &format!("component?digest={}", encoded(digest)))
}

/// Returns the path that orders a rollback, to the version whose digest begins with `to`.
pub fn rollback(plugin: &str, to: Option<&str>) -> String {
    match to {
        None => of_plugin(plugin, "rollback"),
        Some(to) => of_plugin(plugin, &format!("rollback?to={}", encoded(to))),
    }
}

/// Returns the path of a plugin's canary.
pub fn canary(plugin: &str) -> String {
    of_plugin(plugin, "canary")
}

/// Returns the path of the page of a canary's report that begins at this place.
pub fn canary_from(plugin: &str, from: usize) -> String {
    of_plugin(plugin, &format!("canary?from={from}"))
}

/// Returns the path of an order about a plugin's canary. `order` may end in a query.
pub fn canary_order(plugin: &str, order: &str) -> String {
    of_plugin(plugin, &format!("canary/{order}"))
}

/// Returns the path that orders a canary, with the flags of `vmhost canary start`: the first share,
/// the shares of the steps, and the milliseconds of a step.
pub fn start_canary(
    plugin: &str,
    weight: Option<&str>,
    step: Option<&str>,
    every: Option<u64>,
) -> String {
    let every = every.map(|every| every.to_string());
    let given = [
        ("weight", weight),
        ("step", step),
        ("every", every.as_deref()),
    ];
    let pairs: Vec<String> = given
        .into_iter()
        .filter_map(|(name, value)| Some(format!("{name}={}", encoded(value?))))
        .collect();
    canary_order(plugin, &format!("start?{}", pairs.join("&")))
}

/// Returns the path of the report on a plugin's shadow.
pub fn shadow(plugin: &str) -> String {
    of_plugin(plugin, "shadow")
}

/// Returns the path that starts the shadow of a plugin, for this many milliseconds.
pub fn shadow_start(plugin: &str, lasts: Option<u64>) -> String {
    match lasts {
        None => of_plugin(plugin, "shadow/start"),
        Some(ms) => of_plugin(plugin, &format!("shadow/start?for={ms}")),
    }
}

/// Returns the path that ends the shadow of a plugin.
pub fn shadow_stop(plugin: &str) -> String {
    of_plugin(plugin, "shadow/stop")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_user_typed_stays_one_part_of_the_path() {
        assert_eq!(history("vm"), "/plugins/vm/history");
        assert_eq!(rollback("vm", None), "/plugins/vm/rollback");
        assert_eq!(
            component("v/m", "sha256:ab&x"),
            "/plugins/v%2Fm/component?digest=sha256%3Aab%26x"
        );
        assert_eq!(canary("a b"), "/plugins/a%20b/canary");
        assert_eq!(canary_from("a b", 9), "/plugins/a%20b/canary?from=9");
        assert_eq!(canary_order("vm", "abort"), "/plugins/vm/canary/abort");
        assert_eq!(
            start_canary("vm", None, Some("5,100"), Some(1000)),
            "/plugins/vm/canary/start?step=5%2C100&every=1000"
        );
        assert_eq!(shadow("vm"), "/plugins/vm/shadow");
        assert_eq!(shadow_start("vm", None), "/plugins/vm/shadow/start");
        let for_a_second = shadow_start("v m", Some(1000));
        assert_eq!(for_a_second, "/plugins/v%20m/shadow/start?for=1000");
        assert_eq!(shadow_stop("vm"), "/plugins/vm/shadow/stop");
        assert_eq!(
            rollback("a/../b?c", Some("sha256:ab&x")),
            "/plugins/a%2F%2E%2E%2Fb%3Fc/rollback?to=sha256%3Aab%26x"
        );
    }
}
