//! Orders of an operator to one plugin: their content, and the channel to the only task that swaps
//! the plugin.
//!
//! This module must not know where an order comes from, nor how it is carried out.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

use crate::canary::order::Start;
use crate::config::terms::Terms;
use crate::deploy::history::report::RolledBack;
use crate::deploy::loaded::Loaded;

/// The number of orders that may wait in the channel.
const WAITING: usize = 8;

/// The channel for the answer to an order. The caller may have stopped waiting.
pub(crate) type Answer<T> = oneshot::Sender<Result<T, OrderError>>;

/// An order to the task that swaps a plugin.
pub(crate) enum Order {
    /// Replace the running version by an older one.
    Rollback {
        /// The beginning of the older version's digest. `None` means the version before the running
        /// one.
        to: Option<String>,
        /// The channel for the answer.
        answer: Answer<RolledBack>,
    },
    /// Replace the running version by this one, under these terms. A version that was rolled back
    /// is refused.
    Swap {
        /// The version.
        loaded: Box<Loaded>,
        /// The terms.
        terms: Arc<Terms>,
        /// The channel for the answer: the text of the swap.
        answer: Answer<String>,
    },
    /// End the task: the plugin is removed.
    End {
        /// The channel for the answer.
        answer: Answer<()>,
    },
    /// Try a version on a share of the objects.
    StartCanary {
        /// The version.
        start: Box<Start>,
        /// The channel for the answer.
        answer: Answer<()>,
    },
    /// Make the candidate the live version.
    Promote {
        /// The candidate's generation. `None` means any.
        generation: Option<u64>,
        /// The channel for the answer.
        answer: Answer<()>,
    },
}

/// Why an order was not carried out.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OrderError {
    /// The host shuts down, or the task that swaps the plugin has failed.
    #[error("the order was dropped: vmhost is shutting down, or its log tells why")]
    Dropped,
    /// Too many orders are waiting.
    #[error("{WAITING} orders wait already: try again later")]
    Busy,
    /// The plugin's present state does not allow the order. The text says why, and what to do
    /// instead.
    #[error("{0}")]
    Refused(String),
    /// The version did not pass a check, or its stores did not fill.
    #[error(transparent)]
    Unfit(Box<dyn std::error::Error + Send + Sync>),
    /// The version was rolled back. The text says how to lift that.
    #[error("{0}")]
    RolledBack(String),
}

/// The orders for one plugin.
pub(crate) struct Orders {
    sender: mpsc::Sender<Order>,
    /// The receiving end, until the task that swaps the plugin takes it.
    receiver: Mutex<Option<Incoming>>,
}

/// The receiving end of the orders to one plugin.
pub(crate) struct Incoming(mpsc::Receiver<Order>);

impl Orders {
    /// Gives an order to the task that swaps the plugin. Does not wait for it.
    pub(crate) fn send(&self, order: Order) -> Result<(), OrderError> {
        self.sender.try_send(order).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => OrderError::Busy,
            mpsc::error::TrySendError::Closed(_) => OrderError::Dropped,
        })
    }

    /// Sends an order and waits for the answer.
    pub(crate) async fn ask<T>(
        &self,
        order: impl FnOnce(Answer<T>) -> Order,
    ) -> Result<T, OrderError> {
        let (answer, answered) = oneshot::channel();
        self.send(order(answer))?;
        answered.await.unwrap_or(Err(OrderError::Dropped))
    }

    /// Returns the receiving end, which also has the orders that wait already. `None` if a task has
    /// taken it before.
    pub(crate) fn incoming(&self) -> Option<Incoming> {
        self.receiver.lock().take()
    }
}

impl Default for Orders {
    fn default() -> Self {
        let (sender, receiver) = mpsc::channel(WAITING);
        Self {
            sender,
            receiver: Mutex::new(Some(Incoming(receiver))),
        }
    }
}

impl Incoming {
    /// Waits for the next order. Cancel safe.
    pub(crate) async fn next(&mut self) -> Order {
        match self.0.recv().await {
            Some(order) => order,
            // The sending end is gone with the plugin, and so this task will be cancelled.
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rolled_back(to: &str) -> RolledBack {
        RolledBack {
            to: to.to_owned(),
            ..RolledBack::default()
        }
    }

    #[tokio::test]
    async fn an_order_is_answered_by_the_task_that_takes_it() {
        let orders = Orders::default();
        let mut incoming = orders.incoming().unwrap();
        assert!(orders.incoming().is_none());
        let asked = orders.ask(|answer| Order::Rollback {
            to: Some("ab".to_owned()),
            answer,
        });
        let obey = async {
            let Order::Rollback { to, answer } = incoming.next().await else {
                panic!("another order");
            };
            answer.send(Ok(rolled_back(&to.unwrap()))).unwrap();
        };
        let (answer, ()) = tokio::join!(asked, obey);
        assert_eq!(answer.unwrap(), rolled_back("ab"));
    }

    #[tokio::test]
    async fn an_order_without_a_task_is_dropped() {
        let orders = Orders::default();
        for _ in 0..WAITING {
            let (answer, _) = oneshot::channel();
            orders.send(Order::Rollback { to: None, answer }).unwrap();
        }
        let (answer, _) = oneshot::channel();
        let full = orders.send(Order::Rollback { to: None, answer });
        assert!(matches!(full, Err(OrderError::Busy)), "{full:?}");
        drop(orders.incoming());
        let ended = orders
            .ask(|answer| Order::Rollback { to: None, answer })
            .await;
        assert!(matches!(ended, Err(OrderError::Dropped)), "{ended:?}");
    }
}
