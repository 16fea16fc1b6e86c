//! The routes about one plugin: reports, which every client of the admin address may read, and
//! orders, which need the token, as a version's component does.
//!
//! Each kind of order has its own file: it parses a request, hands the order to the task that swaps
//! the plugin, and formats the answer. These files must not know how an order is carried out.

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;

use super::gate;
use super::token::Token;

mod canary;
mod component;
pub(crate) mod desk;
mod rollback;
mod shadow;

use desk::Desk;

/// The reports and the orders of a host with this token. Without a token, no order passes.
pub(super) fn router(desk: Desk, token: Option<Token>) -> Router {
    let limit = usize::try_from(desk.largest_component).unwrap_or(usize::MAX);
    let orders = Router::new()
        .merge(rollback::orders())
        .merge(canary::orders())
        .merge(shadow::orders())
        .merge(component::orders())
        // The body of a request may be a new version.
        .layer(DefaultBodyLimit::max(limit))
        .route_layer(from_fn_with_state(token, gate::check));
    Router::new()
        .merge(rollback::reports())
        .merge(canary::reports())
        .merge(shadow::reports())
        .merge(orders)
        .with_state(desk)
}
