//! The tasks that compile optimised code for the components of a plugin's running generations.
//!
//! This module must not know how code is compiled.

use tokio::task::AbortHandle;

use super::Slot;

impl Slot {
    /// Starts the task that compiles optimised code for the component of a running generation,
    /// unless one runs already. Aborts the tasks for components that do not run any more.
    pub(crate) fn optimising(&self, component: &str, start: impl FnOnce() -> Option<AbortHandle>) {
        let lineup = self.lineup();
        let runs = |of: &str| {
            let mut members = lineup.members();
            members.any(|generation| generation.plugin.component() == of)
        };
        let mut tasks = self.optimising.lock();
        tasks.retain(|(of, task)| {
            let is_wanted = runs(of);
            if !is_wanted {
                task.abort();
            }
            is_wanted && !task.is_finished()
        });
        if tasks.iter().all(|(of, _)| of != component) {
            tasks.extend(start().map(|task| (component.to_owned(), task)));
        }
    }
}
