//! Runs this crate without the host: `build FOLDER OUT`, `new NAME LANGUAGE`, `doctor`.

#![allow(clippy::print_stdout, reason = "a command")]

use std::path::Path;

use vmhost_engine::Facts;
use vmhost_toolchain::scaffold::Project;
use vmhost_toolchain::{Network, build, doctor};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let here = Path::new(".");
    match args[..] {
        ["build", folder, out] => {
            let built = build::build(Path::new(folder), Path::new(out), Network::Allowed).await?;
            println!("{} bytes in {:.1?}", built.size, built.took);
            let facts = Facts::of(&std::fs::read(out)?)?;
            println!("{facts:#?}");
        }
        ["new", name, language] => {
            let project = Project {
                name,
                language: language.parse()?,
                kind: "Foo",
                group: "example.com",
                version: "v1",
            };
            println!("{}", project.write(here)?.display());
        }
        _ => print!("{}", doctor::table(&doctor::doctor(here).await)),
    }
    Ok(())
}
