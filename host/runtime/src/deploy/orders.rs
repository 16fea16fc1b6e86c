//! Orders of an operator to one plugin: what may be ordered, and the way to the one task that swaps
//! the plugin.
//!
//! It must not know who gives an order, nor how it is carried out.

use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

use crate::canary::order::Start;
use crate::deploy::history::report::RolledBack;

/// The number of orders that may wait for the one that is carried out.
const WAITING: usize = 8;

/// Where the answer to an order goes. Nobody may be listening any more.
pub(crate) type Answer<T> = oneshot::Sender<Result<T, OrderError>>;

/// An order to the task that swaps a plugin.
pub(crate) enum Order {
    /// Replace the running version by an older one.
    Rollback {
        /// The beginning of the older version's digest. `None` for the version before the running
        /// one.
        to: Option<String>,
        /// Where the answer goes.
        answer: Answer<RolledBack>,
    },
    /// Try a version on a share of the objects.
    StartCanary {
        /// The version.
        start: Box<Start>,
        /// Where the answer goes.
        answer: Answer<()>,
    },
    /// Make the version that is tried the live one.
    Promote {
        /// Its generation. `None` for the one that is tried, whichever it is.
        generation: Option<u64>,
        /// Where the answer goes.
        answer: Answer<()>,
    },
}

/// Why an order is not carried out.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OrderError {
    /// The host ends, or the task that swaps the plugin failed.
    #[error("the order was dropped: vmhost is shutting down, or its log tells why")]
    Dropped,
    /// Too many orders wait.
    #[error("{WAITING} orders wait already: try again later")]
    Busy,
    /// The state of the plugin does not allow it. The text says why and what to do.
    #[error("{0}")]
    Refused(String),
    /// The version did not pass a check, or its stores did not fill.
    #[error(transparent)]
    Unfit(Box<dyn std::error::Error + Send + Sync>),
}

/// The orders for one plugin.
pub(crate) struct Orders {
    sender: mpsc::Sender<Order>,
    /// Taken by the task that swaps the plugin.
    receiver: Mutex<Option<Incoming>>,
}

/// The orders that the task that swaps a plugin carries out.
pub(crate) struct Incoming(mpsc::Receiver<Order>);

impl Orders {
    /// Gives an order to the task that swaps the plugin. Does not wait for it.
    pub(crate) fn send(&self, order: Order) -> Result<(), OrderError> {
        self.sender.try_send(order).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => OrderError::Busy,
            mpsc::error::TrySendError::Closed(_) => OrderError::Dropped,
        })
    }

    /// Gives an order and waits for the answer.
    pub(crate) async fn ask<T>(
        &self,
        order: impl FnOnce(Answer<T>) -> Order,
    ) -> Result<T, OrderError> {
        let (answer, answered) = oneshot::channel();
        self.send(order(answer))?;
        answered.await.unwrap_or(Err(OrderError::Dropped))
    }

    /// The orders from now on and those that wait, for the task that carries them out. `None` if a
    /// task has taken them.
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
            // The plugin is gone, and with it this task.
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
