//! Questions about access.
//!
//! Owns the order in which a question is put together. Must not know how it is decided.

use std::rc::Rc;

use crate::access::{AUTHORIZER, Asking, Check, Decision, GROUP, PATH, RESOURCE};
use crate::names;
use crate::value::{Failure, Function, Opaque, Val};

pub(super) fn find(name: &str) -> Option<Function> {
    let function: Function = match name {
        "path" => |args| {
            let text = given(args, "path")?;
            asking(args, AUTHORIZER, PATH, |check| check.path = Some(text))
        },
        "group" => |args| {
            let text = second(args)?.to_owned();
            asking(args, AUTHORIZER, GROUP, |check| check.group = text)
        },
        "serviceAccount" => service_account,
        "resource" => |args| {
            let text = given(args, "resource")?;
            asking(args, GROUP, RESOURCE, |check| check.resource = text)
        },
        "subresource" => |args| narrowed(args, |check, text| check.subresource = text),
        "namespace" => |args| narrowed(args, |check, text| check.namespace = text),
        "name" => |args| narrowed(args, |check, text| check.name = text),
        // Roles know no selectors.
        "fieldSelector" | "labelSelector" => |args| narrowed(args, |_, _| ()),
        "check" => decide,
        "allowed" => |args| of_decision(args, |decision| Val::Bool(decision.allowed)),
        "reason" => |args| of_decision(args, |decision| Val::string(decision.reason.clone())),
        // Roles give a reason for what they cannot tell, and no error.
        "errored" => |args| of_decision(args, |_| Val::Bool(false)),
        "error" => |args| of_decision(args, |_| Val::string("")),
        _ => return None,
    };
    Some(function)
}

/// Returns the text after the question.
fn second<'b>(args: &'b [Val<'_>]) -> Result<&'b str, Failure> {
    match args {
        [_, Val::String(text)] => Ok(&**text),
        _ => Err(Failure::NoOverload),
    }
}

/// Like [`second`], of a text that must not be empty.
fn given(args: &[Val<'_>], what: &str) -> Result<String, Failure> {
    let text = second(args)?;
    match text.trim() {
        "" => Err(Failure::text(format!("{what} must not be empty"))),
        _ => Ok(text.to_owned()),
    }
}

/// Returns a question of the type `from` with one more part, as one of the type `to`.
fn asking<'a>(
    args: &[Val<'a>],
    from: &str,
    to: &'static str,
    add: impl FnOnce(&mut Check),
) -> Result<Val<'a>, Failure> {
    match args.first() {
        Some(Val::Asking(before)) if before.kind == from => {
            let mut next = Asking::clone(before);
            next.kind = to;
            add(&mut next.check);
            Ok(Val::Asking(Rc::new(next)))
        }
        _ => Err(Failure::NoOverload),
    }
}

/// Returns a question about fewer objects.
fn narrowed<'a>(
    args: &[Val<'a>],
    add: impl FnOnce(&mut Check, String),
) -> Result<Val<'a>, Failure> {
    let text = second(args)?.to_owned();
    asking(args, RESOURCE, RESOURCE, |check| add(check, text))
}

fn service_account<'a>(args: &[Val<'a>]) -> Result<Val<'a>, Failure> {
    let [_, Val::String(namespace), Val::String(name)] = args else {
        return Err(Failure::NoOverload);
    };
    if !names::subdomain(name).is_empty() {
        return Err(Failure::text("Invalid service account name"));
    }
    if !names::label(namespace).is_empty() {
        return Err(Failure::text("Invalid service account namespace"));
    }
    let account = Some((namespace.to_string(), name.to_string()));
    asking(args, AUTHORIZER, AUTHORIZER, |check| {
        check.account = account;
    })
}

fn decide<'a>(args: &[Val<'a>]) -> Result<Val<'a>, Failure> {
    let verb = second(args)?.to_owned();
    match args.first() {
        Some(Val::Asking(asked)) if [PATH, RESOURCE].contains(&asked.kind) => {
            let check = Check {
                verb,
                ..asked.check.clone()
            };
            Ok(Val::opaque(Opaque::Decision(asked.by.decide(&check))))
        }
        _ => Err(Failure::NoOverload),
    }
}

fn of_decision<'a>(
    args: &[Val<'a>],
    get: impl FnOnce(&Decision) -> Val<'a>,
) -> Result<Val<'a>, Failure> {
    match args {
        [Val::Opaque(value)] => match &**value {
            Opaque::Decision(decision) => Ok(get(decision)),
            _ => Err(Failure::NoOverload),
        },
        _ => Err(Failure::NoOverload),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::{Authorizer, Check, Decision, Given, Scope, Seen, Unevaluated, Wanted};

    /// Allows one account to get pods. The reason is what was asked.
    #[derive(Debug)]
    struct Roles;

    impl Authorizer for Roles {
        fn decide(&self, check: &Check) -> Decision {
            let robot = Some(("n".to_owned(), "robot".to_owned()));
            let allowed = check.verb == "get" && check.resource == "pods" && check.account == robot;
            let path = check.path.as_deref().unwrap_or_default();
            let (group, sub, namespace) = (&check.group, &check.subresource, &check.namespace);
            let reason = format!("{path}|{group}|{sub}|{namespace}|{}", check.name);
            Decision { allowed, reason }
        }

        fn request_resource(&self) -> Check {
            Check {
                resource: "pods".to_owned(),
                name: "p".to_owned(),
                ..Check::default()
            }
        }
    }

    fn given(source: &str) -> Result<Given, Unevaluated> {
        let scope = Scope::new(&["object"]).with_authorizer();
        let expression = scope.compile(source, Wanted::Bool);
        let expression = expression.unwrap_or_else(|error| panic!("{source}: {error}"));
        let object = json!({ "names": ["a", "b"] });
        let values = [&object];
        let seen = Seen::of(&values).with_authorizer(&Roles);
        scope.evaluate(&expression, &seen, &mut 10_000_000)
    }

    #[test]
    fn questions_are_put_together() {
        let pods = "authorizer.group('g').resource('pods')";
        for holds in [
            format!("{pods}.subresource('s').namespace('n').name('x').check('get').reason() == '|g|s|n|x'"),
            format!("!{pods}.check('get').allowed() && !{pods}.check('get').errored()"),
            format!("{pods}.labelSelector('a=b').fieldSelector('c=d').check('get').error() == ''"),
            "authorizer.path('/x').check('get').reason() == '/x||||'".to_owned(),
            "authorizer.requestResource.check('get').reason() == '||||p'".to_owned(),
            "authorizer.serviceAccount('n', 'robot').group('').resource('pods').check('get').allowed()".to_owned(),
            "object.names.all(n, authorizer.requestResource.name(n).check('x').reason() == '||||' + n)"
                .to_owned(),
        ] {
            assert_eq!(given(&holds), Ok(Given::Bool(true)), "{holds}");
        }
    }

    #[test]
    fn wrong_questions_fail() {
        let failed = |text: &str| Err(Unevaluated::Failed(text.to_owned()));
        for (source, why) in [
            (
                "authorizer.path(' ').check('get').allowed()",
                "path must not be empty",
            ),
            (
                "authorizer.group('').resource('').check('get').allowed()",
                "resource must not be empty",
            ),
            (
                "authorizer.serviceAccount('n', 'A').path('/').check('get').allowed()",
                "Invalid service account name",
            ),
            ("dyn(authorizer).check('get').allowed()", "no such overload"),
            (
                "authorizer.path('/').check('a') == authorizer.path('/').check('a')",
                "no such overload",
            ),
        ] {
            assert_eq!(given(source), failed(why), "{source}");
        }
        // A question is copied with each part: a long text is paid for, also when it is in the
        // question already.
        let long = "'x'.replace('x', lists.range(10000).map(i, 'xxxxxxxxxx').join())";
        for copies in [
            format!("[{long}].all(t, lists.range(6000).all(i, dyn(authorizer.group(t)) != null))"),
            format!(
                "[authorizer.group({long}).resource('r')].all(a, lists.range(12000).all(i, dyn(a.name('n')) != null))"
            ),
        ] {
            assert_eq!(given(&copies), Err(Unevaluated::OverBudget), "{copies}");
        }
        // Two questions are all that one expression can pay for.
        let many = "[1, 2, 3].all(i, !authorizer.path('/').check('get').allowed())";
        assert_eq!(given(many), Err(Unevaluated::OverBudget));
        let scope = Scope::new(&["object"]).with_authorizer();
        let message = scope.compile("authorizer.path('/').check('get').reason()", Wanted::Text);
        assert!(
            message
                .unwrap_err()
                .contains("undeclared reference to 'authorizer'")
        );
        assert!(
            scope
                .compile("[object].map(o, 'x')[0]", Wanted::Text)
                .is_ok()
        );
    }
}
