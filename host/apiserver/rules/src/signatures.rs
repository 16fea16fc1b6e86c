//! The functions and operators that expressions can use, with the types that they take.
//!
//! Owns the table, which has what Kubernetes 1.36 has in the rules of definitions; and the function
//! of patches. Questions about access begin with a variable that rules do not have. Must not know
//! what functions do.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::access;
use crate::named::FORMAT;
use crate::types::Type;

/// One way to call a function.
#[derive(Debug)]
pub(crate) struct Signature {
    /// Whether the first parameter stands before the name: `a.contains(b)`.
    pub member: bool,
    pub params: Vec<Type>,
    pub result: Type,
}

/// Returns all ways to call a function; an operator is a function with a name such as `_+_`.
pub(crate) fn of(name: &str) -> &'static [Signature] {
    TABLE.get(name).map_or(&[], Vec::as_slice)
}

static TABLE: LazyLock<HashMap<&'static str, Vec<Signature>>> = LazyLock::new(|| {
    let mut table: HashMap<&'static str, Vec<Signature>> = HashMap::new();
    for line in TEXT.lines() {
        // A test reads every line.
        let Some((names, signature)) = parse(line) else {
            continue;
        };
        for name in names.split(' ') {
            let (member, name) = match name.strip_prefix('.') {
                Some(name) => (true, name),
                None => (false, name),
            };
            let (params, result) = signature.clone();
            table.entry(name).or_default().push(Signature {
                member,
                params,
                result,
            });
        }
    }
    table
});

/// Names, their parameters, and the result. A name with a dot is called on its first parameter.
const TEXT: &str = "\
_+_ (int, int) int
_+_ (uint, uint) uint
_+_ (double, double) double
_+_ (string, string) string
_+_ (bytes, bytes) bytes
_+_ (list<A>, list<A>) list<A>
_+_ (timestamp, duration) timestamp
_+_ (duration, timestamp) timestamp
_+_ (duration, duration) duration
_-_ (int, int) int
_-_ (uint, uint) uint
_-_ (double, double) double
_-_ (timestamp, timestamp) duration
_-_ (timestamp, duration) timestamp
_-_ (duration, duration) duration
_*_ _/_ (int, int) int
_*_ _/_ (uint, uint) uint
_*_ _/_ (double, double) double
_%_ (int, int) int
_%_ (uint, uint) uint
-_ (int) int
-_ (double) double
!_ (bool) bool
_==_ _!=_ (A, A) bool
_<_ _<=_ _>_ _>=_ (bool, bool) bool
_<_ _<=_ _>_ _>=_ (int, int) bool
_<_ _<=_ _>_ _>=_ (int, uint) bool
_<_ _<=_ _>_ _>=_ (int, double) bool
_<_ _<=_ _>_ _>=_ (uint, uint) bool
_<_ _<=_ _>_ _>=_ (uint, int) bool
_<_ _<=_ _>_ _>=_ (uint, double) bool
_<_ _<=_ _>_ _>=_ (double, double) bool
_<_ _<=_ _>_ _>=_ (double, int) bool
_<_ _<=_ _>_ _>=_ (double, uint) bool
_<_ _<=_ _>_ _>=_ (string, string) bool
_<_ _<=_ _>_ _>=_ (bytes, bytes) bool
_<_ _<=_ _>_ _>=_ (timestamp, timestamp) bool
_<_ _<=_ _>_ _>=_ (duration, duration) bool
_[_] (list<A>, int) A
_[_] (map<A, B>, A) B
_[_] _[?_] (optional<list<A>>, int) optional<A>
_[_] _[?_] (optional<map<A, B>>, A) optional<B>
_[?_] (list<A>, int) optional<A>
_[?_] (map<A, B>, A) optional<B>
@in (A, list<A>) bool
@in (A, map<A, B>) bool
size .size (string) int
size .size (bytes) int
size .size (list<A>) int
size .size (map<A, B>) int
dyn (A) dyn
type (A) type
int (int) int
int (uint) int
int (double) int
int (string) int
int (timestamp) int
int (duration) int
uint (uint) uint
uint (int) uint
uint (double) uint
uint (string) uint
double (double) double
double (int) double
double (uint) double
double (string) double
bool (bool) bool
bool (string) bool
string (string) string
string (int) string
string (uint) string
string (double) string
string (bool) string
string (bytes) string
string (timestamp) string
string (duration) string
string (net.IP) string
string (net.CIDR) string
bytes (bytes) bytes
bytes (string) bytes
duration (duration) duration
duration (int) duration
duration (string) duration
timestamp (timestamp) timestamp
timestamp (int) timestamp
timestamp (string) timestamp
.getFullYear .getMonth .getDayOfYear .getDayOfMonth .getDate .getDayOfWeek (timestamp) int
.getFullYear .getMonth .getDayOfYear .getDayOfMonth .getDate .getDayOfWeek (timestamp, string) int
.getHours .getMinutes .getSeconds .getMilliseconds (timestamp) int
.getHours .getMinutes .getSeconds .getMilliseconds (timestamp, string) int
.getHours .getMinutes .getSeconds .getMilliseconds (duration) int
optional.of optional.ofNonZeroValue (A) optional<A>
optional.none () optional<A>
.hasValue (optional<A>) bool
.value (optional<A>) A
.or (optional<A>, optional<A>) optional<A>
.orValue (optional<A>, A) A
matches .matches (string, string) bool
.contains .startsWith .endsWith (string, string) bool
.charAt (string, int) string
.indexOf .lastIndexOf (string, string) int
.indexOf .lastIndexOf (string, string, int) int
.lowerAscii .upperAscii .trim (string) string
.replace (string, string, string) string
.replace (string, string, string, int) string
.split (string, string) list<string>
.split (string, string, int) list<string>
.substring (string, int) string
.substring (string, int, int) string
.join (list<string>) string
.join (list<string>, string) string
.format (string, list<dyn>) string
jsonpatch.escapeKey (string) string
strings.quote (string) string
.find (string, string) string
.findAll (string, string) list<string>
.findAll (string, string, int) list<string>
.isSorted (list<int>) bool
.isSorted (list<uint>) bool
.isSorted (list<double>) bool
.isSorted (list<bool>) bool
.isSorted (list<string>) bool
.isSorted (list<bytes>) bool
.isSorted (list<duration>) bool
.isSorted (list<timestamp>) bool
.sum (list<int>) int
.sum (list<uint>) uint
.sum (list<double>) double
.sum (list<duration>) duration
.min .max (list<int>) int
.min .max (list<uint>) uint
.min .max (list<double>) double
.min .max (list<bool>) bool
.min .max (list<string>) string
.min .max (list<bytes>) bytes
.min .max (list<duration>) duration
.min .max (list<timestamp>) timestamp
.indexOf .lastIndexOf (list<A>, A) int
.slice (list<A>, int, int) list<A>
.flatten (list<list<A>>) list<A>
.flatten (list<dyn>, int) list<dyn>
.distinct .reverse (list<A>) list<A>
.sort (list<int>) list<int>
.sort (list<uint>) list<uint>
.sort (list<double>) list<double>
.sort (list<bool>) list<bool>
.sort (list<string>) list<string>
.sort (list<bytes>) list<bytes>
.sort (list<duration>) list<duration>
.sort (list<timestamp>) list<timestamp>
lists.range (int) list<int>
sets.contains sets.equivalent sets.intersects (list<A>, list<A>) bool
url (string) kubernetes.URL
isURL (string) bool
.getScheme .getHost .getHostname .getPort .getEscapedPath (kubernetes.URL) string
.getQuery (kubernetes.URL) map<string, list<string>>
quantity (string) kubernetes.Quantity
isQuantity (string) bool
.sign .asInteger (kubernetes.Quantity) int
.asApproximateFloat (kubernetes.Quantity) double
.isInteger (kubernetes.Quantity) bool
.isGreaterThan .isLessThan (kubernetes.Quantity, kubernetes.Quantity) bool
.compareTo (kubernetes.Quantity, kubernetes.Quantity) int
.add .sub (kubernetes.Quantity, kubernetes.Quantity) kubernetes.Quantity
.add .sub (kubernetes.Quantity, int) kubernetes.Quantity
semver (string) kubernetes.Semver
semver (string, bool) kubernetes.Semver
isSemver (string) bool
isSemver (string, bool) bool
.major .minor .patch (kubernetes.Semver) int
.isGreaterThan .isLessThan (kubernetes.Semver, kubernetes.Semver) bool
.compareTo (kubernetes.Semver, kubernetes.Semver) int
ip (string) net.IP
isIP ip.isCanonical (string) bool
.family (net.IP) int
.isUnspecified .isLoopback .isLinkLocalMulticast .isLinkLocalUnicast .isGlobalUnicast (net.IP) bool
cidr (string) net.CIDR
isCIDR (string) bool
.containsIP (net.CIDR, string) bool
.containsIP (net.CIDR, net.IP) bool
.containsCIDR (net.CIDR, string) bool
.containsCIDR (net.CIDR, net.CIDR) bool
.ip (net.CIDR) net.IP
.masked (net.CIDR) net.CIDR
.prefixLength (net.CIDR) int
format.dns1123Label format.dns1123Subdomain format.dns1035Label () kubernetes.NamedFormat
format.dns1123LabelPrefix format.dns1123SubdomainPrefix () kubernetes.NamedFormat
format.dns1035LabelPrefix format.qualifiedName format.labelValue () kubernetes.NamedFormat
format.uri format.uuid format.byte format.date format.datetime () kubernetes.NamedFormat
format.named (string) optional<kubernetes.NamedFormat>
.validate (kubernetes.NamedFormat, string) optional<list<string>>
.path (authorization.Authorizer, string) authorization.PathCheck
.group (authorization.Authorizer, string) authorization.GroupCheck
.serviceAccount (authorization.Authorizer, string, string) authorization.Authorizer
.resource (authorization.GroupCheck, string) authorization.ResourceCheck
.subresource .namespace .name (authorization.ResourceCheck, string) authorization.ResourceCheck
.fieldSelector .labelSelector (authorization.ResourceCheck, string) authorization.ResourceCheck
.check (authorization.PathCheck, string) authorization.Decision
.check (authorization.ResourceCheck, string) authorization.Decision
.allowed .errored (authorization.Decision) bool
.reason .error (authorization.Decision) string
";

type Line = (&'static str, (Vec<Type>, Type));

fn parse(line: &'static str) -> Option<Line> {
    let (names, rest) = line.split_once(" (")?;
    let mut rest = rest;
    let mut params = Vec::new();
    while !rest.starts_with(')') {
        let (param, after) = read(rest)?;
        params.push(param);
        rest = after.strip_prefix(", ").unwrap_or(after);
    }
    let (result, rest) = read(rest.strip_prefix(") ")?)?;
    rest.is_empty().then_some((names, (params, result)))
}

/// Reads one type, and returns the text after it.
fn read(text: &str) -> Option<(Type, &str)> {
    let end = text.find(['<', '>', ',', ')']).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let simple = match name {
        "A" => Type::Variable(0),
        "B" => Type::Variable(1),
        "dyn" => Type::Dyn,
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "duration" => Type::Duration,
        "timestamp" => Type::Timestamp,
        "type" => Type::Kind,
        "net.IP" => Type::Opaque("net.IP"),
        "net.CIDR" => Type::Opaque("net.CIDR"),
        "kubernetes.URL" => Type::Opaque("kubernetes.URL"),
        "kubernetes.Quantity" => Type::Opaque("kubernetes.Quantity"),
        "kubernetes.Semver" => Type::Opaque("kubernetes.Semver"),
        "kubernetes.NamedFormat" => Type::Opaque(FORMAT),
        "authorization.Authorizer" => Type::Opaque(access::AUTHORIZER),
        "authorization.PathCheck" => Type::Opaque(access::PATH),
        "authorization.GroupCheck" => Type::Opaque(access::GROUP),
        "authorization.ResourceCheck" => Type::Opaque(access::RESOURCE),
        "authorization.Decision" => Type::Opaque(access::DECISION),
        "list" | "optional" | "map" => {
            let (first, rest) = read(rest.strip_prefix('<')?)?;
            if name == "map" {
                let (second, rest) = read(rest.strip_prefix(", ")?)?;
                let map = Type::Map(Box::new(first), Box::new(second));
                return Some((map, rest.strip_prefix('>')?));
            }
            let rest = rest.strip_prefix('>')?;
            return Some((
                match name {
                    "list" => Type::List(Box::new(first)),
                    _ => Type::Optional(Box::new(first)),
                },
                rest,
            ));
        }
        _ => return None,
    };
    Some((simple, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_read() {
        for line in TEXT.lines() {
            assert!(parse(line).is_some(), "{line}");
        }
        let index: Vec<String> = of("_[_]")
            .iter()
            .map(|one| {
                format!(
                    "{:?} {}",
                    one.params.iter().map(Type::to_string).collect::<Vec<_>>(),
                    one.result
                )
            })
            .collect();
        assert_eq!(index[0], r#"["list(A)", "int"] A"#);
        assert_eq!(index[1], r#"["map(A, B)", "A"] B"#);
        assert!(of("size").iter().any(|one| one.member));
    }

    #[test]
    fn every_function_of_the_table_exists() {
        for name in TABLE.keys() {
            assert!(crate::functions::find(name).is_some(), "{name}");
        }
    }
}
