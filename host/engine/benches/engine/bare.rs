//! The floor: bare wasmtime with the same component, a typed function and the same arguments, and
//! no vmhost code.

use vmhost_core::{Gvk, ObjectName};
use wasmtime::component::{Component, HasSelf, Linker};
use wasmtime::{Config, Engine, Store};
use wasmtime_wasi::{ResourceTable, WasiCtx, WasiCtxView, WasiView};

#[allow(missing_docs, reason = "generated; the WIT files carry the text")]
mod generated {
    wasmtime::component::bindgen!({
        path: "../../wit/v1",
        world: "plugin",
        ownership: Borrowing { duplicate_if_necessary: true },
    });
}

use generated::exports::vmhost::plugin::controller::{Outcome, Request};
use generated::vmhost::plugin::{cluster, config, log, types};

pub struct Bare {
    store: Store<State>,
    plugin: generated::Plugin,
}

struct State {
    wasi: WasiCtx,
    table: ResourceTable,
}

impl Bare {
    pub fn new(bytes: &[u8], epochs: bool) -> Self {
        let mut config = Config::new();
        config.epoch_interruption(epochs);
        let engine = Engine::new(&config).expect("an engine");
        let component = Component::new(&engine, bytes).expect("a component");
        let mut linker = Linker::new(&engine);
        wasmtime_wasi::p2::add_to_linker_sync(&mut linker).expect("WASI");
        generated::Plugin::add_to_linker::<_, HasSelf<State>>(&mut linker, |state| state)
            .expect("the contract's imports");
        let state = State {
            wasi: WasiCtx::builder().build(),
            table: ResourceTable::new(),
        };
        let mut store = Store::new(&engine, state);
        store.set_epoch_deadline(u64::MAX / 2);
        let plugin =
            generated::Plugin::instantiate(&mut store, &component, &linker).expect("an instance");
        Self { store, plugin }
    }

    pub fn call(&mut self, (kind, name): (&Gvk, &ObjectName), object: Option<&str>) -> Outcome {
        let request = Request {
            controller: "virtualmachines",
            key: types::ObjectKeyParam {
                kind: types::GvkParam {
                    group: &kind.group,
                    version: &kind.version,
                    kind: &kind.kind,
                },
                namespace: name.namespace(),
                name: name.name(),
            },
            object,
            previous: None,
            deleting: false,
            attempt: 0,
            last: None,
        };
        self.plugin
            .vmhost_plugin_controller()
            .call_reconcile(&mut self.store, request)
            .expect("an outcome")
    }
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView {
            ctx: &mut self.wasi,
            table: &mut self.table,
        }
    }
}

impl types::Host for State {}

impl log::Host for State {
    fn log(&mut self, _: log::Level, _: String) {}
}

impl config::Host for State {
    fn get(&mut self, _: String) -> Option<String> {
        None
    }
}

impl cluster::Host for State {
    fn get(&mut self, _: types::ObjectKeyResult) -> Result<Option<String>, cluster::ReadError> {
        Ok(None)
    }

    fn get_many(
        &mut self,
        _: Vec<types::ObjectKeyResult>,
    ) -> Result<Vec<Option<String>>, cluster::ReadError> {
        Ok(Vec::new())
    }

    fn list(&mut self, _: cluster::Query) -> Result<cluster::Page, cluster::ReadError> {
        Err(cluster::ReadError::Invalid(String::new()))
    }

    fn get_live(
        &mut self,
        _: types::ObjectKeyResult,
    ) -> Result<Option<String>, cluster::ReadError> {
        Ok(None)
    }

    fn list_live(&mut self, _: cluster::Query) -> Result<cluster::Page, cluster::ReadError> {
        Err(cluster::ReadError::Invalid(String::new()))
    }
}
