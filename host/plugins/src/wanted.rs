//! From a `spec` to what it wants to run: source -> policy -> describe -> settings -> grants ->
//! name. Each step that fails is a condition. It must not know what runs now, nor what is done with
//! the result.

use std::sync::Arc;

use bytes::Bytes;
use tokio::task::spawn_blocking;
use vmhost_core::chain_line;
use vmhost_engine::LoadError;
use vmhost_runtime::config::terms::Terms;
use vmhost_runtime::deploy::loaded::Loaded;

use crate::compilation::Ended;
use crate::conditions::{Found, Stop};
use crate::keeper::Keeper;
use crate::lane::{Code, Described, Lane, Wanted};
use crate::object::Plugin;
use crate::policy::Policy;
use crate::revision::{self, Revision};
use crate::settings;
use crate::shared::Shared;
use crate::source::{Content, of_image};
use crate::terms::NAME_RESERVED;
use crate::verify::{lends_login, reachable, verified};

impl Keeper {
    /// What the `spec` of this object wants to run.
    pub(crate) async fn wanted(
        &mut self,
        plugin: &Plugin,
        lane: &mut Lane,
        found: &mut Found,
    ) -> Result<Wanted, Stop> {
        let shared = self.shared.clone();
        let policies = shared.policies_of(&plugin.metadata.namespace).await;
        let policies = policies.map_err(|why| Stop::at("Verified", "PoliciesUnknown", why))?;
        let policies: Arc<[Policy]> = policies.into();
        let home = &plugin.metadata.namespace;
        if let Some(image) = &plugin.spec.image {
            let image = of_image(image);
            reachable(image, &policies)?;
            let named = &shared.options.login_namespaces;
            lane.known.lends = lends_login(image, home, named, &policies);
        }
        let content = lane.known.read(&shared, plugin, &mut self.watched).await?;
        lane.source = Some(content.clone());
        let text = format!("{} {}", content.origin, content.digest);
        found.done("Pulled", "Pulled", text);
        let signers = self.verified(&content, &policies, found).await;
        if signers.is_err() {
            // It may be signed later, so that its signatures are read again.
            lane.known.forget();
        }
        lane.signers = signers?;
        let code = self.code(home, &content, lane).await?;
        let informers = &shared.given.plugins.informers;
        let unfit = |why: String| Stop::at("Loaded", "SettingsInvalid", why);
        let given = settings::gather(&plugin.spec, informers, &mut self.watched).await;
        let checked = settings::checked(&code.description, given.map_err(unfit)?).await;
        let checked = checked.map_err(unfit)?;
        let terms = self.terms(plugin, &code.description, &policies, checked, found)?;
        self.review(&code, &terms, home).await?;
        // At the end: what may not run keeps its name from nobody.
        self.claim(plugin, &code.description.name)?;
        let revision = Revision {
            name: revision::name(plugin, &code.component, &terms),
            source: content.origin.clone(),
            digest: content.digest.clone(),
            component: code.component.clone(),
            signers: lane.signers.clone(),
            template: plugin.template.clone(),
        };
        Ok(Wanted {
            code,
            content,
            terms,
            revision,
        })
    }

    /// Checks origin and signatures of a component, away from the thread of watches and writes: the
    /// whole component is hashed.
    async fn verified(
        &self,
        content: &Arc<Content>,
        policies: &Arc<[Policy]>,
        found: &mut Found,
    ) -> Result<Vec<String>, Stop> {
        let required = self.shared.options.require_signatures;
        let (content, policies) = (content.clone(), policies.clone());
        let verifying = spawn_blocking(move || {
            let mut found = Found::default();
            let signers = verified(&content, &policies, required, &mut found);
            (signers, found)
        });
        match verifying.await {
            Ok((signers, told)) => {
                found.extend(told);
                signers
            }
            Err(error) => Err(Stop::at("Verified", "Unverified", error.to_string())),
        }
    }

    /// The code of a component, compiled once.
    async fn code(&mut self, home: &str, content: &Content, lane: &mut Lane) -> Result<Code, Stop> {
        let not_loadable = |why: String| Stop::at("Loaded", "NotLoadable", why);
        if let Some(described) = &lane.described
            && described.digest == content.digest
        {
            return described.loaded.clone().map_err(not_loadable);
        }
        let begin = || {
            let (shared, component) = (self.shared.clone(), content.component.clone());
            compiled(shared, home.to_owned(), component)
        };
        let loaded = self.compilation.of(&content.digest, begin).await?;
        let may_pass = loaded.as_ref().is_err_and(LoadError::may_pass);
        let loaded = loaded.map_err(|error| chain_line(&error));
        if !may_pass {
            lane.described = Some(Described {
                loaded: loaded.clone(),
                digest: content.digest.clone(),
            });
        }
        loaded.map_err(not_loadable)
    }

    /// Takes the plugin's name, unless another plugin has it. Of two objects, the one has it that
    /// the leader reported, so that all hosts run the same one.
    fn claim(&self, plugin: &Plugin, name: &str) -> Result<(), Stop> {
        if let Some(why) = self.shared.reserved(name, &plugin.metadata.namespace) {
            // What still runs is taken off by itself.
            return Err(Stop::at("Loaded", NAME_RESERVED, why));
        }
        let taken = |why: String| Stop::at("Loaded", "NameTaken", why);
        match self.plugin.as_deref() {
            Some(running) if running != name => {
                return Err(taken(format!(
                    "the component describes itself as {name:?}, and {running:?} runs: the name \
                     owns fields in the cluster and cannot change; create another Plugin for it"
                )));
            }
            Some(_) => {}
            None if self.shared.given.running(name).is_some() => {
                return Err(taken(format!(
                    "this host runs a plugin named {name:?} already: two cannot own the same fields"
                )));
            }
            None => {}
        }
        if !self.shared.given.leads() && plugin.status.plugin.as_deref() != Some(name) {
            let waits = "the leader does not run it yet";
            return Err(Stop::at("Loaded", "WaitsForLeader", waits));
        }
        self.shared.claim(name, &self.key).map_err(|other| {
            taken(format!(
                "the Plugin {other} has a component that is named {name:?}, too: remove one of them"
            ))
        })
    }

    /// Loads what is wanted with its terms.
    pub(crate) async fn loaded(&self, wanted: &Wanted) -> Result<Loaded, Stop> {
        let loader = &self.shared.given.plugins.loader;
        let plugin = loader
            .describe(wanted.code.image.clone(), &wanted.terms)
            .await;
        let plugin =
            plugin.map_err(|error| Stop::at("Loaded", "NotLoadable", chain_line(&error)))?;
        Ok(Loaded {
            plugin,
            bytes: wanted.content.component.to_vec(),
            build: None,
            compile: wanted.code.compile,
        })
    }
}

/// Compiles a component, and asks it what it is.
async fn compiled(shared: Arc<Shared>, home: String, component: Bytes) -> Ended {
    let _place = shared.compilers.take(&home, "Loaded").await?;
    let loader = &shared.given.plugins.loader;
    let compiling = async {
        let (image, compile) = loader.compile(component).await?;
        let plugin = loader.describe(image.clone(), &Terms::default()).await?;
        Ok(Code {
            component: plugin.digest().to_owned(),
            image,
            compile,
            description: Arc::new(plugin.description().clone()),
        })
    };
    Ok(compiling.await)
}
