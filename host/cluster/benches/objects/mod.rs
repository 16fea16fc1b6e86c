//! Objects as an API server sends them, of any size.

#![allow(dead_code, reason = "each benchmark uses a part")]

use std::fmt::Write;

use vmhost_cluster::{Wanted, WatchSpec};
use vmhost_core::Gvk;

/// The wanted fields of the VM plugin.
pub const WANTED: [&str; 3] = ["spec.status", "spec.memory", "spec.disk"];

/// Number of digits of the resource version, the same in every line, object and item.
const VERSION_DIGITS: usize = 12;

/// The watch of the kind.
pub fn spec(wanted: bool) -> WatchSpec {
    let mut spec = WatchSpec::of(Gvk::new("cloud.waibizi.com", "v1", "VirtualMachine"));
    if wanted {
        spec.wanted = Wanted::fields(Some(WANTED));
    }
    spec
}

/// Builds an object of about this many bytes, without its managedFields.
pub fn object(number: usize, size: usize) -> String {
    let mut spec = String::from(r#""status":"running","memory":"4Gi","disk":"20Gi""#);
    let mut volume = 0;
    while spec.len() + 430 < size {
        let comma = if volume == 0 { r#","volumes":["# } else { "," };
        let _ = write!(
            spec,
            r#"{comma}{{"name":"data-{volume}","size":1{volume},"readOnly":false,"labels":{{"tier":"gold","zone":"eu-1"}},"image":"registry.example.com/images/base@sha256:4f53cda18c2baa0c0354bb5f9a3ecbe5"}}"#
        );
        volume += 1;
    }
    if volume > 0 {
        spec.push(']');
    }
    format!(
        r#"{{"apiVersion":"cloud.waibizi.com/v1","kind":"VirtualMachine","metadata":{{"creationTimestamp":"2026-11-21T12:00:00Z","generation":1,"labels":{{"app":"web","team":"cloud"}},"managedFields":[{{"apiVersion":"cloud.waibizi.com/v1","fieldsType":"FieldsV1","fieldsV1":{{"f:metadata":{{"f:labels":{{".":{{}},"f:app":{{}},"f:team":{{}}}}}},"f:spec":{{".":{{}},"f:disk":{{}},"f:memory":{{}},"f:volumes":{{}}}}}},"manager":"kubectl-client-side-apply","operation":"Update","time":"2026-11-21T12:00:00Z"}}],"name":"vm-{number:06}","namespace":"default","resourceVersion":"{version:0digits$}","uid":"{uid:08x}-1111-4222-8333-abcdefabcdef"}},"spec":{{{spec}}}}}"#,
        version = number + 1,
        digits = VERSION_DIGITS,
        uid = number,
    )
}

/// Builds a watch line with this object.
pub fn line(kind: &str, object: &str) -> Vec<u8> {
    format!(r#"{{"type":"{kind}","object":{object}}}"#).into_bytes()
}

/// Writes another version into a line or an object, in place.
pub fn set_version(text: &mut [u8], version: u64) {
    let key = b"\"resourceVersion\":\"";
    let at = text.windows(key.len()).position(|window| window == key);
    let at = at.expect("it has a version") + key.len();
    let digits = format!("{version:0VERSION_DIGITS$}");
    text[at..at + VERSION_DIGITS].copy_from_slice(digits.as_bytes());
}

/// Builds a page of a list.
pub fn page(numbers: std::ops::Range<usize>, size: usize) -> Vec<u8> {
    let items: Vec<String> = numbers.map(|number| object(number, size)).collect();
    format!(
        r#"{{"apiVersion":"cloud.waibizi.com/v1","items":[{}],"kind":"VirtualMachineList","metadata":{{"continue":"","resourceVersion":"7"}}}}"#,
        items.join(",")
    )
    .into_bytes()
}
