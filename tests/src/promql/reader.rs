//! Reads an expression token by token, and refuses one that uses a metric as its name forbids.

use anyhow::{Context, Result, bail, ensure};

use super::{Query, Selector};

/// The functions and aggregations that our expressions use.
const FUNCTIONS: [&str; 7] = [
    "changes",
    "histogram_quantile",
    "increase",
    "max",
    "min",
    "rate",
    "sum",
];

/// What a list of labels follows.
const LISTS: [&str; 6] = [
    "by",
    "without",
    "on",
    "ignoring",
    "group_left",
    "group_right",
];

/// Words that are neither.
const OPERATORS: [&str; 5] = ["and", "or", "unless", "bool", "offset"];

/// The endings of counters, whose value alone says nothing.
const COUNTERS: [&str; 3] = ["_total", "_bucket", "_count"];

/// Reads an expression.
pub fn read(text: &str) -> Result<Query> {
    let tokens = tokens(text)?;
    let mut reader = Reader {
        tokens: &tokens,
        at: 0,
        open: Vec::new(),
        last_list: 0,
        query: Query::default(),
    };
    while reader.at < tokens.len() {
        reader.step()?;
    }
    ensure!(reader.open.is_empty(), "a bracket is not closed");
    ensure!(!reader.query.selectors.is_empty(), "no metric");
    Ok(reader.query)
}

/// An expression that has been read up to a token.
struct Reader<'a> {
    tokens: &'a [String],
    at: usize,
    /// The functions whose brackets are open; an empty name for other brackets.
    open: Vec<&'a str>,
    /// Where the labels of the last list begin among those of the query.
    last_list: usize,
    query: Query,
}

impl<'a> Reader<'a> {
    /// Returns a token; an empty one behind the end.
    fn token(&self, at: usize) -> &'a str {
        self.tokens.get(at).map_or("", String::as_str)
    }

    /// Reads what begins here, up to the token behind it.
    fn step(&mut self) -> Result<()> {
        let (word, next) = (self.token(self.at), self.token(self.at + 1));
        match word {
            "(" => self.open.push(""),
            ")" => {
                let opened = self.open.pop();
                opened.context("a bracket is closed and not opened")?;
            }
            _ if LISTS.contains(&word) => self.labels(word)?,
            _ if OPERATORS.contains(&word) || !is_word(word) => {}
            _ if next == "(" || LISTS.contains(&next) => {
                ensure!(FUNCTIONS.contains(&word), "unknown function {word}");
                if next == "(" {
                    self.open.push(word);
                    self.at += 1;
                }
            }
            metric => self.selector(metric)?,
        }
        self.at += 1;
        Ok(())
    }

    /// Reads a list of labels up to its closing bracket.
    fn labels(&mut self, word: &str) -> Result<()> {
        ensure!(self.token(self.at + 1) == "(", "{word} without a list");
        self.last_list = self.query.grouped.len();
        self.at += 2;
        while self.token(self.at) != ")" {
            let label = self.token(self.at);
            ensure!(!label.is_empty(), "the list of {word} does not end");
            if label != "," {
                self.query.grouped.push(label.to_owned());
            }
            self.at += 1;
        }
        Ok(())
    }

    /// Reads a metric with its matchers and its range, up to their last token.
    fn selector(&mut self, metric: &str) -> Result<()> {
        let mut selector = Selector {
            metric: metric.to_owned(),
            ..Selector::default()
        };
        if self.token(self.at + 1) == "{" {
            self.at = matchers(self.tokens, self.at + 2, &mut selector)?;
        }
        let has_range = self.token(self.at + 1) == "[";
        if has_range {
            while self.token(self.at) != "]" {
                ensure!(self.at < self.tokens.len(), "a range does not end");
                self.at += 1;
            }
        }
        selector.of_range = self.function_of(metric, has_range)?.to_owned();
        self.query.selectors.push(selector);
        Ok(())
    }

    /// Returns the function of a metric's range; an empty name for a value of the moment. Checks
    /// that the metric is used as its name asks.
    fn function_of(&self, metric: &str, has_range: bool) -> Result<&'a str> {
        let of = self.open.last().copied().unwrap_or_default();
        let wants_range = matches!(of, "rate" | "increase" | "changes");
        ensure!(wants_range == has_range, "{metric}: {of} and its range");
        let is_counter = COUNTERS.iter().any(|ending| metric.ends_with(ending));
        ensure!(!is_counter || wants_range, "{metric} is a counter");
        let is_bucket = metric.ends_with("_bucket");
        let in_quantile = self.open.contains(&"histogram_quantile");
        ensure!(
            is_bucket == in_quantile,
            "{metric}: quantiles are of buckets"
        );
        let last = self.query.grouped.get(self.last_list..);
        let has_bounds = last.unwrap_or_default().iter().any(|label| label == "le");
        ensure!(!is_bucket || has_bounds, "{metric} is not grouped by le");
        Ok(if wants_range { of } else { "" })
    }
}

/// Reads matchers up to the closing bracket, and returns its place.
fn matchers(tokens: &[String], mut at: usize, selector: &mut Selector) -> Result<usize> {
    loop {
        match tokens.get(at..).unwrap_or_default() {
            [end, ..] if end == "}" => return Ok(at),
            [comma, ..] if comma == "," => at += 1,
            [label, operator, value, ..] => {
                let is_operator = ["=", "!=", "=~", "!~"].contains(&operator.as_str());
                ensure!(is_word(label) && is_operator, "matcher {label} {operator}");
                let value = value.strip_prefix('"').context("a value has no quotes")?;
                let matcher = (label.clone(), operator.clone(), value.to_owned());
                selector.matchers.push(matcher);
                at += 3;
            }
            _ => bail!("matchers do not end"),
        }
    }
}

fn is_word(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
}

/// Words, signs, and texts: these begin with a quote, and have none at their end.
fn tokens(text: &str) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_part = |c: char| c.is_ascii_alphanumeric() || "_:.$".contains(c);
        let length = if first == '"' {
            let end = rest[1..].find('"').context("a text does not end")?;
            found.push(rest[..=end].to_owned());
            end + 2
        } else {
            let length = match first {
                first if is_part(first) => rest.find(|c: char| !is_part(c)).unwrap_or(rest.len()),
                '=' | '!' | '<' | '>' if rest[1..].starts_with(['=', '~']) => 2,
                first => first.len_utf8(),
            };
            found.push(rest[..length].to_owned());
            length
        };
        rest = rest[length..].trim_start();
    }
    Ok(found)
}
