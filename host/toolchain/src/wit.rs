//! The contract: the text of `wit/v1`, its world, and the names that a core module must export.
//! This module knows no toolchain.

use std::path::Path;

use wit_component::StringEncoding;
use wit_parser::{Resolve, SourceMap, WorldId};

use crate::error::Cause;
use crate::{Result, place};

/// The world that a plugin implements.
pub const WORLD: &str = "plugin";

/// The interface that the world exports.
pub const CONTROLLER: &str = "vmhost:plugin/controller@1.0.0";

/// The prefix of the contract's name for all its minor versions.
pub const CONTRACT_MAJOR: &str = "vmhost:plugin@1.";

/// The files of `wit/v1`, with their text.
pub const FILES: [(&str, &str); 3] = [
    ("types.wit", include_str!("../../../wit/v1/types.wit")),
    ("cluster.wit", include_str!("../../../wit/v1/cluster.wit")),
    ("world.wit", include_str!("../../../wit/v1/world.wit")),
];

/// The interface of HTTP requests, which a policy imports beside the world.
pub const HTTP: &str = "vmhost:http/http@";

/// The world that imports it, and the files of `wit/http-v1`, with their text.
const HTTP_WORLD: &str = "client";
const HTTP_FILES: [(&str, &str); 1] = [("http.wit", include_str!("../../../wit/http-v1/http.wit"))];

/// The line of a world that imports it.
pub const HTTP_IMPORT: &str = "import vmhost:http/http@1.0.0;";

/// A world of the contract and of HTTP requests, for tools that take one world as a whole.
const POLICY: (&str, &str) = (
    "policy",
    "package vmhost:policy;\n\nworld policy {\n  include vmhost:plugin/plugin@1.0.0;\n  import vmhost:http/http@1.0.0;\n}\n",
);

/// Writes the files to a folder, for tools that read them.
pub fn write(folder: &Path) -> Result<()> {
    for (name, text) in FILES {
        place::if_changed(&folder.join(name), text.as_bytes())?;
    }
    Ok(())
}

/// Writes the files to a folder for a policy that sends HTTP requests, with those of its package.
/// Returns the world that has both.
pub fn write_with_http(folder: &Path) -> Result<&'static str> {
    place::if_changed(&folder.join("policy.wit"), POLICY.1.as_bytes())?;
    write(&folder.join("deps/plugin"))?;
    write_http(&folder.join("deps/http"))?;
    Ok(POLICY.0)
}

/// Writes the files of the package of HTTP requests.
pub fn write_http(folder: &Path) -> Result<()> {
    for (name, text) in HTTP_FILES {
        place::if_changed(&folder.join(name), text.as_bytes())?;
    }
    Ok(())
}

/// Embeds the world into a core module, in the form that the component model's tools expect; with
/// `http`, also the import of HTTP requests. The tools merge both.
pub fn embed(module: &mut Vec<u8>, http: bool) -> std::result::Result<(), Cause> {
    let (resolve, world) = resolve()?;
    wit_component::embed_component_metadata(module, &resolve, world, StringEncoding::UTF8)?;
    if http {
        let (resolve, world) = parse(&HTTP_FILES, HTTP_WORLD)?;
        wit_component::embed_component_metadata(module, &resolve, world, StringEncoding::UTF8)?;
    }
    Ok(())
}

/// Parses the contract.
fn resolve() -> std::result::Result<(Resolve, WorldId), Cause> {
    parse(&FILES, WORLD)
}

fn parse(files: &[(&str, &str)], world: &str) -> std::result::Result<(Resolve, WorldId), Cause> {
    let mut sources = SourceMap::new();
    for (name, text) in files {
        sources.push_str(name, *text);
    }
    let group = sources.parse().map_err(|(_, error)| error)?;
    let mut resolve = Resolve::default();
    let package = resolve.push_group(group)?;
    let world = resolve.select_world(&[package], Some(world))?;
    Ok((resolve, world))
}

#[cfg(test)]
mod tests {
    use vmhost_engine::INTERFACES;

    use super::*;

    #[test]
    fn the_constants_say_what_the_contract_says() {
        let (resolve, world) = resolve().unwrap();
        let world = &resolve.worlds[world];
        let exports: Vec<String> = world
            .exports
            .keys()
            .map(|key| resolve.name_world_key(key))
            .collect();
        assert_eq!(exports, [CONTROLLER]);
        let imports: Vec<String> = world
            .imports
            .keys()
            .map(|key| resolve.name_world_key(key))
            .collect();
        for name in INTERFACES {
            let import = format!("vmhost:plugin/{name}@");
            assert!(imports.iter().any(|found| found.starts_with(&import)));
        }
        assert_eq!(imports.len(), INTERFACES.len());
    }

    #[test]
    fn a_world_has_the_contract_and_http_requests() {
        let folder = tempfile::tempdir().unwrap();
        let world = write_with_http(folder.path()).unwrap();
        let mut resolve = Resolve::default();
        let (package, _) = resolve.push_dir(folder.path()).unwrap();
        let world = resolve.select_world(&[package], Some(world)).unwrap();
        let world = &resolve.worlds[world];
        assert_eq!(world.exports.len(), 1);
        assert_eq!(world.imports.len(), INTERFACES.len() + 1);
        assert!(POLICY.1.contains(HTTP_IMPORT));
    }

    #[test]
    fn http_requests_are_a_package_of_their_own() {
        let (resolve, world) = parse(&HTTP_FILES, HTTP_WORLD).unwrap();
        let imports = resolve.worlds[world].imports.keys();
        let imports: Vec<String> = imports.map(|key| resolve.name_world_key(key)).collect();
        assert!(
            imports.len() == 1 && imports[0].starts_with(HTTP),
            "{imports:?}"
        );
    }

    #[test]
    fn it_is_written_for_tools_that_read_it() {
        let folder = tempfile::tempdir().unwrap();
        write(&folder.path().join("wit")).unwrap();
        let world = std::fs::read_to_string(folder.path().join("wit/world.wit")).unwrap();
        assert!(world.contains("world plugin {"));
    }
}
