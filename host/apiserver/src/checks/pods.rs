//! The rules of pods, and of templates of pods.

use serde_json::Value;
use vmhost_schema::billionths;

use super::told::{NOT_NEGATIVE, Rule, Told, given, has, int, is_blank, list, text};

const ONE_HANDLER: &str = "may not specify more than 1 handler type";
const HANDLERS: [&str; 5] = ["exec", "httpGet", "tcpSocket", "grpc", "sleep"];
const SOURCES: [&str; 5] = [
    "fieldRef",
    "resourceFieldRef",
    "configMapKeyRef",
    "secretKeyRef",
    "fileKeyRef",
];
/// The types of volumes, in the order in which a real server looks for them.
const VOLUMES: [&str; 29] = [
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "persistentVolumeClaim",
    "rbd",
    "cinder",
    "cephfs",
    "flocker",
    "downwardAPI",
    "fc",
    "azureFile",
    "configMap",
    "vsphereVolume",
    "quobyte",
    "azureDisk",
    "storageos",
    "photonPersistentDisk",
    "portworxVolume",
    "scaleIO",
    "projected",
    "csi",
    "ephemeral",
    "image",
];

#[cfg(test)]
pub(super) const COUNT: usize = 16;

pub(super) fn rule(name: &str) -> Option<Rule> {
    let rule: Rule = match name {
        "core.v1.PodSpec" => spec,
        "core.v1.Container" | "core.v1.EphemeralContainer" => container,
        "core.v1.EnvVar" => variable,
        "core.v1.Probe" | "core.v1.LifecycleHandler" => handlers,
        "core.v1.HTTPGetAction" | "core.v1.TCPSocketAction" => |of, told| told.port(of, "port"),
        "core.v1.Volume" => volume,
        "core.v1.SecretVolumeSource" => |of, told| named(of, told, "secretName"),
        "core.v1.ConfigMapVolumeSource" => |of, told| named(of, told, "name"),
        "core.v1.PodSecurityContext" | "core.v1.SecurityContext" => identity,
        "core.v1.SeccompProfile" => seccomp,
        "core.v1.Toleration" => toleration,
        "core.v1.TopologySpreadConstraint" => spread,
        _ => return None,
    };
    Some(rule)
}

fn spec(of: &Value, told: &mut Told<'_>) {
    if of["containers"].as_array().is_some_and(Vec::is_empty) {
        told.required("containers", "");
    }
    let deadline = int(of, "activeDeadlineSeconds");
    if deadline.is_some_and(|seconds| !(1..=i64::from(i32::MAX)).contains(&seconds)) {
        let why = "must be between 1 and 2147483647, inclusive";
        told.invalid("activeDeadlineSeconds", &of["activeDeadlineSeconds"], why);
    }
    told.subdomain(of, "serviceAccountName");
    told.label(of, "hostname");
    let terms =
        "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
    let none = of.pointer(terms).and_then(Value::as_array);
    if none.is_some_and(Vec::is_empty) {
        let field = terms.trim_start_matches('/').replace('/', ".");
        told.required(&field, "must have at least one node selector term");
    }
}

fn container(of: &Value, told: &mut Told<'_>) {
    for (at, port) in list(of, "ports") {
        if int(port, "containerPort") == Some(0) {
            told.required(&format!("ports[{at}].containerPort"), "");
        }
        if !text(port, "name").is_empty() {
            told.port_name(&format!("ports[{at}].name"), text(port, "name"));
        }
    }
    for (_, from) in list(of, "envFrom") {
        let why = match given(from, &["configMapRef", "secretRef"]).len() {
            0 => "must specify one of: `configMapRef` or `secretRef`",
            1 => continue,
            _ => "may not have more than one field specified at a time",
        };
        told.invalid("envFrom", &"".into(), why);
    }
    for (at, mount) in list(of, "volumeMounts") {
        if is_blank(mount, "mountPath") {
            told.required(&format!("volumeMounts[{at}].mountPath"), "");
        }
        let below = text(mount, "subPath");
        if below.starts_with('/') {
            told.invalid(
                "volumeMounts.subPath",
                &below.into(),
                "must be a relative path",
            );
        }
        if below.split('/').any(|part| part == "..") {
            told.invalid(
                "volumeMounts.subPath",
                &below.into(),
                "must not contain '..'",
            );
        }
    }
    for part in ["limits", "requests"] {
        let amounts = of
            .get("resources")
            .and_then(|all| all.get(part)?.as_object());
        for (name, amount) in amounts.into_iter().flatten() {
            if amount
                .as_str()
                .and_then(billionths)
                .is_some_and(|amount| amount < 0)
            {
                told.invalid(&format!("resources.{part}[{name}]"), amount, NOT_NEGATIVE);
            }
        }
    }
    for probe in ["livenessProbe", "startupProbe"] {
        let times = int(&of[probe], "successThreshold");
        if times.is_some_and(|times| times > 1) {
            let times = &of[probe]["successThreshold"];
            told.invalid(&format!("{probe}.successThreshold"), times, "must be 1");
        }
    }
}

fn variable(of: &Value, told: &mut Told<'_>) {
    let name = text(of, "name");
    if is_blank(of, "name") {
        told.required("name", "");
    }
    if name.chars().any(|c| !(' '..='~').contains(&c) || c == '=') {
        let why = "a valid environment variable name must consist only of printable ASCII characters other than '='";
        told.invalid("name", &of["name"], why);
    }
    if !has(of, "valueFrom") {
        return;
    }
    let why = match given(&of["valueFrom"], &SOURCES).len() {
        0 => {
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        }
        _ if !text(of, "value").is_empty() => "may not be specified when `value` is not empty",
        1 => return,
        _ => "may not have more than one field specified at a time",
    };
    told.invalid("valueFrom", &"".into(), why);
}

/// Checks what a probe, or a hook of a container's life, does.
fn handlers(of: &Value, told: &mut Told<'_>) {
    let all = given(of, &HANDLERS);
    if all.is_empty() {
        told.required("", "must specify a handler type");
    }
    for more in all.iter().skip(1) {
        told.forbidden(more, ONE_HANDLER);
    }
    told.not_negative(
        of,
        &[
            "initialDelaySeconds",
            "timeoutSeconds",
            "periodSeconds",
            "successThreshold",
            "failureThreshold",
        ],
    );
}

fn volume(of: &Value, told: &mut Told<'_>) {
    for more in given(of, &VOLUMES).iter().skip(1) {
        told.forbidden(more, "may not specify more than 1 volume type");
    }
}

/// Checks a volume that is made of an object.
fn named(of: &Value, told: &mut Told<'_>, name: &str) {
    if text(of, name).is_empty() {
        told.required(name, "");
    }
    let mode = int(of, "defaultMode");
    if mode.is_some_and(|mode| !(0..=0o777).contains(&mode)) {
        let why = "must be a number between 0 and 0777 (octal), both inclusive";
        told.invalid("defaultMode", &of["defaultMode"], why);
    }
}

fn identity(of: &Value, told: &mut Told<'_>) {
    for name in ["runAsUser", "runAsGroup", "fsGroup"] {
        let number = int(of, name);
        if number.is_some_and(|number| !(0..=i64::from(i32::MAX)).contains(&number)) {
            told.invalid(
                name,
                &of[name],
                "must be between 0 and 2147483647, inclusive",
            );
        }
    }
}

fn seccomp(of: &Value, told: &mut Told<'_>) {
    if text(of, "type") == "Localhost" && text(of, "localhostProfile").is_empty() {
        told.required(
            "localhostProfile",
            "must be set when seccomp type is Localhost",
        );
    }
}

fn toleration(of: &Value, told: &mut Told<'_>) {
    if text(of, "operator") == "Exists" && !text(of, "value").is_empty() {
        let why = "value must be empty when `operator` is 'Exists'";
        told.invalid("operator", &of["value"], why);
    }
}

fn spread(of: &Value, told: &mut Told<'_>) {
    if int(of, "maxSkew").is_some_and(|skew| skew <= 0) {
        told.invalid("maxSkew", &of["maxSkew"], "must be greater than zero");
    }
}
