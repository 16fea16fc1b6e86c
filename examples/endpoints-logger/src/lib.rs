//! Logs every change of Endpoints: what happened, the key, and the object (or the last known one)
//! as one line of JSON.

use vmhost_plugin::{Controller, Description, Error, Kind, Outcome, Policy, Request, Result, info};

const ENDPOINTS: Kind = Kind::core("v1", "Endpoints");

/// The host cuts longer lines, and a part of an object is not valid JSON.
const LINE: usize = 64 * 1024;

struct EndpointsLogger;

impl Policy for EndpointsLogger {
    fn describe() -> Description {
        Description::new("endpoints-logger")
            .version(env!("CARGO_PKG_VERSION"))
            .controller(
                Controller::new("endpoints", ENDPOINTS)
                    .previous()
                    .max_retries(5),
            )
    }

    fn reconcile(request: &Request) -> Result<Outcome> {
        let (change, object) = match (&request.previous, &request.object) {
            (None, Some(object)) => ("Added", object),
            (Some(previous), Some(object)) if previous != object => ("Updated", object),
            (Some(previous), None) => ("Deleted", previous),
            // Unchanged since the last turn (a swap or a resync woke the key), or deleted before it
            // was ever seen.
            _ => return Ok(Outcome::await_change()),
        };
        let namespace = request.key.namespace.as_deref().unwrap_or_default();
        // JSON has line breaks between tokens only, never within a string.
        let object = object.replace(['\n', '\r'], " ");
        let line = format!("{change} {namespace}/{} {object}", request.key.name);
        if line.len() > LINE {
            return Err(Error::new(format!(
                "the object fills a line of {} bytes, and the log takes {LINE}",
                line.len()
            )));
        }
        info!("{line}");
        Ok(Outcome::await_change())
    }
}

vmhost_plugin::export!(EndpointsLogger);

#[cfg(test)]
mod tests {
    use super::*;
    use vmhost_plugin::ObjectKey;
    use vmhost_plugin::testing::TestHost;

    fn turn(previous: Option<&str>, object: Option<&str>) -> (Result<Outcome>, Vec<String>) {
        let key = ObjectKey::of(&ENDPOINTS, Some("default"), "web");
        let mut request = Request::of("endpoints", key, object);
        request.previous = previous.map(Into::into);
        TestHost::new().run(|| EndpointsLogger::reconcile(&request))
    }

    #[test]
    fn each_change_is_one_line() {
        for (previous, object, line) in [
            (
                None,
                Some(r#"{"a":1}"#),
                r#"info: Added default/web {"a":1}"#,
            ),
            (
                Some(r#"{"a":1}"#),
                Some(r#"{"a":2}"#),
                r#"info: Updated default/web {"a":2}"#,
            ),
            (
                Some(r#"{"a":2}"#),
                None,
                r#"info: Deleted default/web {"a":2}"#,
            ),
            (
                None,
                Some("{\n \"a\": 1\n}"),
                r#"info: Added default/web {  "a": 1 }"#,
            ),
        ] {
            let (outcome, lines) = turn(previous, object);
            assert_eq!(outcome.unwrap(), Outcome::await_change());
            assert_eq!(lines, [line]);
        }
    }

    #[test]
    fn what_is_as_it_was_prints_nothing() {
        for (previous, object) in [(Some("{}"), Some("{}")), (None, None)] {
            let (outcome, lines) = turn(previous, object);
            assert_eq!(outcome.unwrap(), Outcome::await_change());
            assert!(lines.is_empty(), "{lines:?}");
        }
    }

    #[test]
    fn an_object_that_fills_more_than_a_line_is_an_error() {
        let large = format!("{{\"a\":{:?}}}", "x".repeat(LINE));
        let (outcome, lines) = turn(None, Some(&large));
        let error = outcome.unwrap_err().to_string();
        assert!(error.contains("65536"), "{error}");
        assert!(lines.is_empty(), "{lines:?}");
    }
}
