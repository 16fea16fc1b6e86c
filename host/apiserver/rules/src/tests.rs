//! Tables of rules, values and what comes of them.
//!
//! The conformance cases of the project run on kube-apiserver too (`tests/cases/rules.json`); here
//! are the parts of the language that they only touch.

use serde_json::{Value, json};

use super::Rules;

/// The schema of an object with a `spec` that has these properties and rules.
fn schema(properties: Value, rules: &[&str]) -> Value {
    let rules: Vec<Value> = rules.iter().map(|rule| json!({ "rule": rule })).collect();
    json!({ "type": "object", "properties": { "spec": {
        "type": "object", "properties": properties, "x-kubernetes-validations": rules,
    } } })
}

fn properties() -> Value {
    json!({
        "i": { "type": "integer" },
        "n": { "type": "number" },
        "s": { "type": "string", "maxLength": 64 },
        "b": { "type": "boolean" },
        "t": { "type": "string", "format": "date-time" },
        "d": { "type": "string", "format": "duration" },
        "y": { "type": "string", "format": "byte" },
        "any": { "x-kubernetes-int-or-string": true },
        "namespace": { "type": "string", "maxLength": 64 },
        "list": { "type": "array", "maxItems": 8, "items": { "type": "integer" } },
        "set": {
            "type": "array", "maxItems": 8, "x-kubernetes-list-type": "set",
            "items": { "type": "string", "maxLength": 8 },
        },
        "map": { "type": "object", "maxProperties": 8, "additionalProperties": { "type": "integer" } },
        "keyed": {
            "type": "array", "maxItems": 8, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
            "items": { "type": "object", "required": ["k"], "properties": {
                "k": { "type": "string", "maxLength": 8 }, "v": { "type": "integer" },
            } },
        },
    })
}

fn values() -> Value {
    json!({
        "i": 5, "n": 2, "s": "hello", "b": true, "t": "2024-05-06T07:08:09Z", "d": "1h30m",
        "y": "aGk=", "any": "50%", "namespace": "x", "list": [3, 1, 2], "set": ["a", "b"],
        "map": { "x": 1, "y": 2 }, "keyed": [{ "k": "a", "v": 1 }, { "k": "b", "v": 2 }],
    })
}

/// Returns what a rule says about the values: nothing if it holds.
fn says(rule: &str) -> Vec<String> {
    let rules = match Rules::compile(&schema(properties(), &[rule]), "") {
        Ok(rules) => rules,
        Err(faults) => panic!("{rule}: {faults:?}"),
    };
    let verdict = rules.check(&json!({ "spec": values() }), None);
    verdict.faults.iter().map(ToString::to_string).collect()
}

#[test]
fn rules_that_hold() {
    for rule in [
        "self.i == 5 && self.n == 2.0 && self.i > 2u && self.i < 5.5",
        "type(self.n) == double && type(self.i) == int && type(self.any) == string",
        "self.s + '!' == 'hello!' && size(self.s) == 5 && self.s.size() == 5",
        "self.s.startsWith('he') && self.s.endsWith('lo') && self.s.contains('ell')",
        "self.s.matches('^h.*o$') && self.s.find('l+') == 'll' && self.s.findAll('l').size() == 2",
        "self.s.upperAscii() == 'HELLO' && self.s.charAt(1) == 'e' && self.s.substring(1, 3) == 'el'",
        "self.s.indexOf('l') == 2 && self.s.lastIndexOf('l') == 3 && self.s.replace('l', 'L', 1) == 'heLlo'",
        "'a,b,c'.split(',') == ['a', 'b', 'c'] && 'abc'.split('') == ['a', 'b', 'c'] && 'a,b,c'.split(',', 2)[1] == 'b,c'",
        "['a', 'b'].join('-') == 'a-b' && ' x '.trim() == 'x'",
        "'%s is %d and %.2f'.format([self.s, self.i, self.n]) == 'hello is 5 and 2.00'",
        "has(self.s) && !has(self.map.z) && 'x' in self.map && self.map['y'] == 2 && self.map.x == 1",
        "self.__namespace__ == 'x'",
        "self.t == timestamp('2024-05-06T07:08:09Z') && self.t.getFullYear() == 2024 && self.t.getMonth() == 4",
        "self.t.getHours('-02:00') == 5 && self.t + self.d == timestamp('2024-05-06T08:38:09Z')",
        "self.d == duration('90m') && self.d.getMinutes() == 90 && self.d > duration('1h')",
        "self.y == b'hi' && string(self.y) == 'hi'",
        "type(self.any) == string ? self.any.matches('^[0-9]+%$') : self.any < 5",
        "self.list.all(x, x > 0) && self.list.exists(x, x == 3) && self.list.exists_one(x, x == 1)",
        "self.list.map(x, x * 2) == [6, 2, 4] && self.list.filter(x, x > 1) == [3, 2]",
        "self.list.map(x, x > 1, x * 2) == [6, 4] && self.list.sum() == 6 && self.list.max() == 3",
        "!self.list.isSorted() && self.list.sort() == [1, 2, 3] && self.list.sortBy(x, -x) == [3, 2, 1]",
        "self.list.indexOf(2) == 2 && self.list[0] == 3 && 2 in self.list && !(7 in self.list)",
        "self.list.slice(1, 3) == [1, 2] && self.list.reverse() == [2, 1, 3] && [1, 1].distinct() == [1]",
        "self.list.all(i, x, i < 3 && x < 4) && self.map.exists(k, v, k == 'y' && v == 2)",
        "self.list.transformList(i, x, i + x) == [3, 2, 4] && self.map.transformMap(k, v, v + 1) == {'x': 2, 'y': 3}",
        "self.set == ['b', 'a'] && self.set + ['a', 'c'] == ['c', 'b', 'a'] && sets.contains(self.set, ['a'])",
        "self.keyed.exists(e, e.k == 'a' && e.v == 1) && self.keyed == self.keyed",
        "self.map.all(k, k != 'z') && self.map.size() == 2",
        "self.?s.orValue('') == 'hello' && self.map[?'z'].orValue(9) == 9 && !self.?map.?z.hasValue()",
        "self.?s.optMap(x, x + '!').value() == 'hello!' && optional.none().orValue(1) == 1",
        "[?self.?s, ?self.map[?'z'].optMap(x, 'z')].size() == 1",
        "quantity('1.5Gi').isGreaterThan(quantity('1G')) && quantity('200m').add(quantity('800m')).asInteger() == 1",
        "isQuantity('10k') && !isQuantity('10x') && quantity('50k').compareTo(quantity('50000')) == 0",
        "isIP('10.0.0.1') && ip('::1').family() == 6 && cidr('10.0.0.0/8').containsIP('10.1.2.3')",
        "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && string(cidr('10.1.2.3/8').masked()) == '10.0.0.0/8'",
        "isURL('https://a.example:80/p') && url('https://a.example:80/p?x=1').getPort() == '80'",
        "semver('1.2.3').isLessThan(semver('1.10.0')) && isSemver('v1.2', true) && !isSemver('v1.2')",
        "int('7') == 7 && string(7) == '7' && double('1.5') == 1.5 && uint(3) == 3u && bool('true')",
        "true || 1 / 0 == 1",
        "!(false && 1 / 0 == 1)",
        "[0, 1].exists(x, 1 / x == 1)",
        "dyn(1) == dyn(1.0) && dyn('a') != dyn(1)",
        "!format.dns1123Label().validate(self.s).hasValue() && !format.named('none').hasValue()",
        "format.named('uuid').value().validate(self.s).value() == ['does not match the UUID format']",
        "format.date() == format.named('date').value() && format.date() != format.datetime()",
        "format.labelValue().validate('a b').value()[0].startsWith('a valid label must be')",
    ] {
        assert_eq!(says(rule), Vec::<String>::new(), "{rule}");
    }
}

#[test]
fn rules_that_fail_when_they_are_evaluated() {
    for (rule, text) in [
        ("self.i / 0 == 1", "division by zero"),
        ("self.map['z'] == 1", "no such key: z"),
        ("self.list[7] == 1", "index out of bounds: 7"),
        ("self.i + 9223372036854775807 > 0", "integer overflow"),
        ("self.any + 1 == 2", "no such overload"),
        (
            "[1].min() == 1 && self.list.filter(x, x > 9).max() == 1",
            "max called on empty list",
        ),
        ("duration('x') == self.d", "type conversion error"),
        (
            "optional.none().value() == 1",
            "optional.none() dereference",
        ),
    ] {
        let said = says(rule);
        assert!(
            said.len() == 1 && said[0].contains(text),
            "{rule}: {said:?}"
        );
    }
}

#[test]
fn wrong_expressions_are_refused_with_the_place() {
    for (rule, text) in [
        (
            "self.none == 1",
            "ERROR: <input>:1:5: undefined field 'none'\n | self.none == 1\n | ....^",
        ),
        (
            "self.i == 'x'",
            "found no matching overload for '_==_' applied to '(int, string)'",
        ),
        (
            "self.s.foo()",
            "undeclared reference to 'foo' (in container '')",
        ),
        (
            "other == 1",
            "undeclared reference to 'other' (in container '')",
        ),
        ("self.i", "cel expression must evaluate to a bool"),
        (
            "self.i.all(x, true)",
            "expression of type 'int' cannot be range of a comprehension",
        ),
        ("self.list.all(1, true)", "argument must be a simple name"),
        (
            "self.list.all(x, x)",
            "expected type 'bool' but found 'int'",
        ),
        ("has(self)", "invalid argument to has() macro"),
        (
            "[1, 'a'].size() == 2",
            "expected type 'int' but found 'string'",
        ),
        ("self.s.matches('[')", "invalid matches argument"),
        (
            "self.i.x == 1",
            "type 'int' does not support field selection",
        ),
        ("self.i ==", "Syntax error"),
        (
            "self.set.map(x, self.set.map(y, [x, y])).size() == format.named('x')",
            "found no matching overload for '_==_'",
        ),
        (
            "self.t.getHours('Mars/Phobos') == 3",
            "time zone 'Mars/Phobos' is not supported",
        ),
        (
            "format.email().validate(self.s).hasValue()",
            "undeclared reference to 'format'",
        ),
        (
            "authorizer.path('/').check('get').allowed()",
            "undeclared reference to 'authorizer'",
        ),
    ] {
        let faults = match Rules::compile(&schema(properties(), &[rule]), "") {
            Ok(_) => panic!("{rule} is accepted"),
            Err(faults) => faults,
        };
        assert!(
            faults[0].message.contains(text),
            "{rule}: {}",
            faults[0].message
        );
        assert_eq!(
            faults[0].field,
            "properties[spec].x-kubernetes-validations[0].rule"
        );
    }
}

#[test]
fn endless_rules_end() {
    // The limits keep such schemas out; the budget would stop them too.
    let list = json!({ "l": { "type": "array", "items": { "type": "integer" } } });
    let rule = "self.l.all(x, self.l.all(y, self.l.all(z, x + y + z < 0 || true)))";
    let faults = Rules::compile(&schema(list, &[rule]), "").unwrap_err();
    let texts: Vec<&str> = faults.iter().map(|fault| fault.message.as_str()).collect();
    assert!(
        texts[0].starts_with(
            "Forbidden: estimated rule cost exceeds budget by factor of more than 100x"
        )
    );
    assert_eq!(faults.len(), 3, "{texts:?}");
    let list = json!({ "l": { "type": "array", "maxItems": 100, "items": { "type": "integer" } } });
    let rules = Rules::compile(&schema(list, &[rule]), "").unwrap();
    let many: Vec<u32> = (0..1000).collect();
    let verdict = rules.check(&json!({ "spec": { "l": many } }), None);
    assert!(
        verdict.faults[0]
            .message
            .contains("call cost exceeds limit"),
        "{:?}",
        verdict.faults
    );
}

#[test]
fn deep_expressions_are_refused() {
    let deep = format!("{}true{}", "(".repeat(2000), ")".repeat(2000));
    assert!(Rules::compile(&schema(properties(), &[&deep]), "").is_err());
    let long = vec!["self.i"; 500].join(" + ") + " > 0";
    assert!(Rules::compile(&schema(properties(), &[&long]), "").is_err());
    let wide = vec!["self.i > 0"; 200].join(" && ");
    assert!(says(&wide).is_empty());
}

#[test]
fn changes_are_compared_with_what_was_there() {
    let properties = json!({
        "fixed": { "type": "string", "x-kubernetes-validations": [
            { "rule": "self == oldSelf", "message": "is fixed" },
        ] },
        "grows": { "type": "integer", "x-kubernetes-validations": [
            { "rule": "oldSelf.hasValue() ? self >= oldSelf.value() : self == 0", "optionalOldSelf": true },
        ] },
        "small": { "type": "integer", "x-kubernetes-validations": [
            { "rule": "self < 10", "messageExpression": "'%d is not small'.format([self])", "reason": "FieldValueForbidden" },
        ] },
    });
    let rules = Rules::compile(&schema(properties, &[]), "").unwrap();
    let said = |new: Value, old: Option<Value>| {
        let old = old.map(|old| json!({ "spec": old }));
        let verdict = rules.check(&json!({ "spec": new }), old.as_ref());
        let faults: Vec<String> = verdict.faults.iter().map(ToString::to_string).collect();
        (faults, verdict.warnings)
    };
    let none = || (Vec::<String>::new(), Vec::<String>::new());
    assert_eq!(said(json!({ "fixed": "a", "grows": 0 }), None), none());
    assert_eq!(said(json!({ "grows": 2 }), None).0.len(), 1);
    assert_eq!(
        said(json!({ "grows": 2 }), Some(json!({ "grows": 1 }))),
        none()
    );
    let (faults, _) = said(json!({ "fixed": "b" }), Some(json!({ "fixed": "a" })));
    assert_eq!(faults, ["spec.fixed: Invalid value: \"b\": is fixed"]);
    let text = "spec.small: Forbidden: 12 is not small";
    assert_eq!(said(json!({ "small": 12 }), None).0, [text]);
    // What was wrong before may stay.
    let (faults, warnings) = said(
        json!({ "small": 12, "grows": 1 }),
        Some(json!({ "small": 12, "grows": 0 })),
    );
    assert_eq!((faults, warnings), (Vec::new(), vec![text.to_owned()]));
}

#[test]
fn defaults_must_keep_the_rules() {
    let properties = json!({ "i": {
        "type": "integer", "default": 1, "x-kubernetes-validations": [{ "rule": "self > 1" }],
    } });
    let faults = Rules::compile(&schema(properties, &[]), "at").unwrap_err();
    assert_eq!(
        faults[0].to_string(),
        "at.properties[spec].properties[i].default: Invalid value: 1: failed rule: self > 1"
    );
}

#[test]
fn a_long_expression_is_refused_before_it_exhausts_the_stack() {
    let refused = |terms: usize| {
        let rule = format!("{} == 1", vec!["1"; terms].join("+"));
        let faults = Rules::compile(&schema(properties(), &[rule.as_str()]), "").unwrap_err();
        faults[0].to_string()
    };
    assert!(refused(3_000).contains("nests deeper than 100 levels"));
    let size = "expression code point size exceeds limit: size: 120004, limit 100000";
    assert!(refused(60_000).contains(size));
}

#[test]
fn what_an_expression_makes_is_limited() {
    let long = json!({ "type": "string", "maxLength": 100_000 });
    let rule = |rule: &str| {
        let schema = schema(json!({ "s": long }), &[rule]);
        let rules =
            Rules::compile(&schema, "").unwrap_or_else(|faults| panic!("{rule}: {faults:?}"));
        let object = json!({ "spec": { "s": "x".repeat(100_000) } });
        let faults = rules.check(&object, None).faults;
        faults.iter().map(ToString::to_string).collect::<String>()
    };
    let large = rule("self.s.replace('', self.s).startsWith('x')");
    assert!(large.contains("actual cost limit exceeded"), "{large}");
    assert_eq!(rule("self.s.replace('x', 'yy').startsWith('yy')"), "");
}
