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

/// Writes the files to a folder, for tools that read them.
pub fn write(folder: &Path) -> Result<()> {
    for (name, text) in FILES {
        place::if_changed(&folder.join(name), text.as_bytes())?;
    }
    Ok(())
}

/// Embeds the world into a core module, in the form that the component model's tools expect.
pub fn embed(module: &mut Vec<u8>) -> std::result::Result<(), Cause> {
    let (resolve, world) = resolve()?;
    wit_component::embed_component_metadata(module, &resolve, world, StringEncoding::UTF8)?;
    Ok(())
}

/// Parses the contract.
fn resolve() -> std::result::Result<(Resolve, WorldId), Cause> {
    let mut sources = SourceMap::new();
    for (name, text) in FILES {
        sources.push_str(name, text);
    }
    let group = sources.parse().map_err(|(_, error)| error)?;
    let mut resolve = Resolve::default();
    let package = resolve.push_group(group)?;
    let world = resolve.select_world(&[package], Some(WORLD))?;
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
    fn it_is_written_for_tools_that_read_it() {
        let folder = tempfile::tempdir().unwrap();
        write(&folder.path().join("wit")).unwrap();
        let world = std::fs::read_to_string(folder.path().join("wit/world.wit")).unwrap();
        assert!(world.contains("world plugin {"));
    }
}
