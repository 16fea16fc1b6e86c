//! HTTP requests of plugins to services outside of the cluster: when they are sent, how many at
//! once, and what becomes of one that is cut off.
//!
//! The crate `vmhost-http` decides what is granted and sends it. This module asks the leader's
//! fence right before a request that changes something, and reads the values of headers. It must
//! not know how a turn ends.

use std::sync::Arc;
use std::time::Instant;

use prometheus::IntCounterVec;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio_util::task::AbortOnDropHandle;
use vmhost_cluster::Connection;
use vmhost_core::{
    Gvk, HttpAnswer, HttpCall, HttpError, HttpGrant, HttpHeader, HttpRequest, HttpResponse,
    HttpTurn,
};
use vmhost_engine::Settings;
use vmhost_http::{Allow, Authorities, Client, Outside, Prepared};

use crate::config::book::SettingsBook;
use crate::config::terms::Terms;
use crate::lead::Leadership;
use crate::observe::trace::{carried, headers};

pub(crate) mod cut_off;
mod secrets;

use cut_off::CutOff;
use secrets::Secrets;

/// Maximum number of requests in flight per plugin: a slow service delays only the plugin that
/// calls it. Each may hold a response of 4 MiB.
const OF_A_PLUGIN: usize = 8;

/// The group of keys that are no objects: of timers, admission and conversion.
const OWN_GROUP: &str = "vmhost";

/// The kinds of keys whose calls only answer a question: every host answers, not only the leader,
/// and the API server asks as often as it likes.
const REVIEWS: [&str; 2] = ["Admission", "Conversion"];

/// Sends HTTP requests.
pub struct Outgoing {
    outside: Arc<Outside>,
    io: Handle,
    leadership: Arc<Leadership>,
    secrets: Secrets,
    settings: Arc<SettingsBook>,
    /// The number of requests, by plugin, method and what they came to.
    requests: IntCounterVec,
}

/// The requests of one plugin in one cluster, shared by its generations and controllers.
pub struct HttpRequests {
    outgoing: Arc<Outgoing>,
    plugin: Arc<str>,
    client: Arc<Client>,
    places: Arc<Semaphore>,
    cut_off: Arc<CutOff>,
}

/// What one version of a plugin may send.
#[derive(Clone, Copy)]
pub(crate) struct Granted<'g> {
    /// Those of its description.
    pub(crate) grants: &'g [HttpGrant],
    /// Its settings say where services are, and are values of headers: a candidate's are not those
    /// of the live version.
    pub(crate) terms: &'g Arc<Terms>,
}

/// Returns why a turn may not change anything any more, if it may not.
pub(crate) type Fence = Box<dyn Fn() -> Option<&'static str> + Send + Sync>;

/// A request on its way to being sent.
struct Exchange {
    outgoing: Arc<Outgoing>,
    plugin: Arc<str>,
    client: Arc<Client>,
    terms: Arc<Terms>,
    prepared: Prepared,
    call: HttpCall,
    fence: Fence,
}

impl Outgoing {
    /// Sends requests on the current runtime. `flags` and `authorities` are the operator's,
    /// `settings` those of all plugins.
    pub fn new(
        (flags, authorities): (Vec<Allow>, Authorities),
        settings: Arc<SettingsBook>,
        connection: &Connection,
        requests: IntCounterVec,
        leadership: Arc<Leadership>,
    ) -> Arc<Self> {
        let api_server = host_of(connection.host());
        Arc::new(Self {
            outside: Outside::new(flags, authorities, api_server),
            io: Handle::current(),
            leadership,
            secrets: Secrets::new(connection.reader()),
            settings,
            requests,
        })
    }

    /// The requests of one more plugin.
    pub fn requests(self: &Arc<Self>, plugin: &str) -> HttpRequests {
        HttpRequests {
            client: Arc::new(Client::new(self.outside.clone(), plugin)),
            outgoing: self.clone(),
            plugin: plugin.into(),
            places: Arc::new(Semaphore::new(OF_A_PLUGIN)),
            cut_off: Arc::default(),
        }
    }

    /// Reads the settings of a version of a plugin: those of its terms, or else of the flags.
    fn with_settings<T>(
        &self,
        plugin: &str,
        terms: &Terms,
        read: impl FnOnce(Option<&Settings>) -> T,
    ) -> T {
        match &terms.settings {
            Some(own) => read(Some(own)),
            None => read(self.settings.all().get(plugin)),
        }
    }

    fn count(&self, plugin: &str, method: &str, answer: &Result<HttpResponse, HttpError>) {
        // A policy may invent any number of methods.
        let method = match method {
            "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE" | "OPTIONS" => method,
            _ => "other",
        };
        let status;
        let code = match answer {
            Ok(response) => {
                status = response.status.to_string();
                status.as_str()
            }
            Err(HttpError::Denied(_)) => "denied",
            Err(HttpError::Invalid(_)) => "invalid",
            Err(HttpError::NotSent(_)) => "not_sent",
            Err(HttpError::NoAnswer(_)) => "no_answer",
            Err(HttpError::TooLarge(_)) => "too_large",
        };
        let counter = self.requests.with_label_values(&[plugin, method, code]);
        counter.inc();
    }
}

impl HttpRequests {
    /// The requests of the same plugin in another cluster, whose keys may have the same names:
    /// `cut_off` are those that were cut off there.
    pub(crate) fn elsewhere(&self, cut_off: &Arc<CutOff>) -> Self {
        Self {
            outgoing: self.outgoing.clone(),
            plugin: self.plugin.clone(),
            client: self.client.clone(),
            places: self.places.clone(),
            cut_off: cut_off.clone(),
        }
    }

    /// A call of this turn begins: tells it in the log if the last one of the key was cut off in a
    /// request.
    pub(crate) fn begins(&self, turn: &HttpTurn) {
        if let Some(what) = self.cut_off.take(&turn.controller, &turn.name) {
            tracing::warn!(
                "the last call about this key was cut off in {what}: it may have been carried out; repeated, it has the same Idempotency-Key"
            );
        }
    }

    /// The grants with the places that settings say.
    fn placed(&self, granted: Granted<'_>) -> Vec<HttpGrant> {
        let Granted { grants, terms } = granted;
        self.outgoing
            .with_settings(&self.plugin, terms, |settings| {
                let setting = |name: &str| settings?.get(name).map(String::as_str);
                grants.iter().map(|grant| grant.placed(setting)).collect()
            })
    }

    /// Sends a request, if one of the grants covers it.
    pub(crate) fn send(&self, granted: Granted<'_>, call: HttpCall) -> HttpAnswer {
        self.send_while(granted, call, Box::new(|| None))
    }

    /// Like [`HttpRequests::send`]. Right before a request that changes something is sent, `fence`
    /// is asked besides the leader's.
    pub(crate) fn send_while(
        &self,
        granted: Granted<'_>,
        call: HttpCall,
        fence: Fence,
    ) -> HttpAnswer {
        let prepared = match refused(&call) {
            Some(error) => Err(error),
            None => self.client.prepare(&self.placed(granted), &call),
        };
        let prepared = match prepared {
            Ok(prepared) => prepared,
            Err(error) => {
                let answer = Err(error);
                let method = &call.request.method;
                self.outgoing.count(&self.plugin, method, &answer);
                return HttpAnswer::answered(answer);
            }
        };
        let exchange = Exchange {
            outgoing: self.outgoing.clone(),
            plugin: self.plugin.clone(),
            client: self.client.clone(),
            terms: granted.terms.clone(),
            prepared,
            call,
            fence,
        };
        let cut_off = self.cut_off.clone();
        let admitted = self.places.clone().acquire_owned();
        HttpAnswer::new(admitted, async move |place| {
            let io = exchange.outgoing.io.clone();
            let changes = !exchange.call.request.is_safe();
            let watched = changes.then(|| cut_off.watch(&exchange.call));
            // A call that stops waiting (at its deadline) cancels the request.
            let sending = AbortOnDropHandle::new(io.spawn(carried(async move {
                let _place = place;
                exchange.run().await
            })));
            let answer = match sending.await {
                Ok(answer) => answer,
                Err(error) => Err(HttpError::NoAnswer(error.to_string())),
            };
            if let Some(watched) = watched {
                watched.answered();
            }
            answer
        })
    }
}

impl Exchange {
    async fn run(self) -> Result<HttpResponse, HttpError> {
        let (outgoing, plugin) = (self.outgoing.clone(), self.plugin.clone());
        let method = self.call.request.method.clone();
        let answer = self.exchange().await;
        outgoing.count(&plugin, &method, &answer);
        answer
    }

    async fn exchange(mut self) -> Result<HttpResponse, HttpError> {
        let began = Instant::now();
        let added = std::mem::take(&mut self.prepared.added);
        for header in &added {
            let value = self.value(header).await?;
            self.prepared.add(header, &value)?;
        }
        if let Some(trace) = headers() {
            self.client.tell_trace(&mut self.prepared, &trace);
        }
        let left = self.call.left.saturating_sub(began.elapsed());
        if !self.call.request.is_safe() {
            if self.outgoing.leadership.fence().is_err() {
                let why = "this host does not hold the leader lease";
                return Err(HttpError::NotSent(why.to_owned()));
            }
            if let Some(why) = (self.fence)() {
                return Err(HttpError::NotSent(why.to_owned()));
            }
        }
        let answer = self.client.send(self.prepared, left).await?;
        if matches!(answer.status, 401 | 403) {
            // The Secret may have been exchanged. Those of other services are kept: one that
            // refuses everything would have all of them read at each of its requests.
            let secrets = added.iter().filter_map(|header| header.secret.as_ref());
            secrets.for_each(|secret| self.outgoing.secrets.forget(secret));
        }
        Ok(answer)
    }

    /// Reads the value of a header that the host adds.
    async fn value(&self, header: &HttpHeader) -> Result<Vec<u8>, HttpError> {
        if let Some(secret) = &header.secret {
            let read = self.outgoing.secrets.read(secret);
            return match tokio::time::timeout(self.call.left, read).await {
                Ok(value) => value,
                Err(_) => Err(HttpError::NotSent(format!(
                    "Secret {}/{} could not be read in time",
                    secret.namespace, secret.name
                ))),
            };
        }
        let setting = header.setting.as_deref().unwrap_or_default();
        let (outgoing, terms) = (&self.outgoing, &self.terms);
        let value = outgoing.with_settings(&self.plugin, terms, |settings| {
            settings?.get(setting).cloned()
        });
        value.map(String::into_bytes).ok_or_else(|| {
            HttpError::NotSent(format!(
                "the header {} needs the setting {setting}: --setting {}.{setting}=VALUE, or \
                 spec.settings of its Plugin object",
                header.name, self.plugin
            ))
        })
    }
}

/// Returns why a call may not send this, whatever is granted.
fn refused(call: &HttpCall) -> Option<HttpError> {
    if call.request.is_safe() || !is_review(&call.turn.kind) {
        return None;
    }
    let HttpRequest { method, .. } = &call.request;
    let method = vmhost_core::cut(method, 16);
    Some(HttpError::Denied(format!(
        "a webhook sends only GET and HEAD, and not {method}: the API server may ask again, or only try"
    )))
}

fn is_review(kind: &Gvk) -> bool {
    kind.group == OWN_GROUP && REVIEWS.contains(&kind.kind.as_str())
}

/// The name or address in `HOST:PORT`. `None` for the text of a server in this process.
fn host_of(authority: &str) -> Option<String> {
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.parse::<u16>().is_ok() => host,
        _ => authority,
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let is_sound = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':');
    (!host.is_empty() && host.chars().all(is_sound)).then(|| host.to_owned())
}

#[cfg(test)]
mod tests;
