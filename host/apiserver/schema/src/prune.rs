//! Removes fields that a schema does not declare.
//!
//! Follows k8s.io/apiextensions-apiserver `pkg/apiserver/schema/pruning`. Must not know validation
//! or defaults.

use serde_json::Value;

use crate::node::{Additional, Node};

/// Prunes `value` and returns the paths of the removed fields, sorted.
pub(crate) fn prune(value: &mut Value, root: &Node) -> Vec<String> {
    let mut pruner = Pruner {
        path: Vec::new(),
        removed: Vec::new(),
    };
    pruner.visit(value, Some(root));
    pruner.removed.sort();
    pruner.removed
}

struct Pruner {
    path: Vec<String>,
    removed: Vec<String>,
}

impl Pruner {
    fn visit(&mut self, value: &mut Value, node: Option<&Node>) {
        self.walk(value, node, node.is_some_and(|node| node.preserve));
    }

    /// `open` is passed on through lists, like `skipPrune`.
    fn walk(&mut self, value: &mut Value, node: Option<&Node>, open: bool) {
        match value {
            Value::Object(map) => map.retain(|name, value| self.keep(name, value, node, open)),
            Value::Array(items) => {
                let node = node.and_then(|node| node.items.as_deref());
                if open && node.is_none() {
                    return;
                }
                for (index, item) in items.iter_mut().enumerate() {
                    self.path.push(format!("[{index}]"));
                    self.walk(item, node, open || node.is_some_and(|node| node.preserve));
                    self.path.pop();
                }
            }
            _ => {}
        }
    }

    fn keep(&mut self, name: &str, value: &mut Value, node: Option<&Node>, open: bool) -> bool {
        if node.is_some_and(|node| node.is_meta(name)) {
            return true;
        }
        let separator = if self.path.is_empty() { "" } else { "." };
        self.path.push(format!("{separator}{name}"));
        let keep = match node {
            Some(node) => match (node.properties.get(name), &node.additional) {
                (Some(field), _) => {
                    self.visit(value, Some(field));
                    true
                }
                (None, Additional::Schema(field)) => {
                    self.visit(value, Some(field));
                    true
                }
                (None, Additional::Allowed(_)) => {
                    if !open {
                        self.visit(value, None);
                    }
                    true
                }
                (None, Additional::Unset) => open,
            },
            None => false,
        };
        if !keep {
            self.removed.push(self.path.concat());
        }
        self.path.pop();
        keep
    }
}
