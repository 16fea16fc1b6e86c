//! New tokens for all members under load: each old token is refused once the host has the new one.
//! No object may be lost, and nothing may be listed again.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::sync::oneshot;
use tokio::time::sleep;
use vmhost_tests::host::Host;
use vmhost_tests::member_load::{self, Load};
use vmhost_tests::members::{Member, Members};

use crate::entrant;
use crate::settings::Settings;
use crate::tokens::Account;

/// The load before the first rotation, between two, and after the last.
const BETWEEN: Duration = Duration::from_secs(2);

/// What the host logs when it uses new credentials with the stores that it has.
const NEW: &str = "new credentials, with the same stores";

/// What the host logs when it begins to work in a member.
const ENGAGED: &str = "starting workers";

/// What a rotation came to.
pub struct Rotation {
    /// What became of the objects.
    pub load: Load,
    /// How many tokens were replaced.
    pub replaced: usize,
    /// How many old tokens the servers refused afterwards.
    pub refused: usize,
    /// How many lists after the first the members' stores needed.
    pub relists: u64,
    /// How often a member was left and engaged anew, with new stores.
    pub engaged_anew: usize,
}

/// Rotates the tokens of all members.
pub async fn measure(members: &Members, settings: &Settings, cache: &Path) -> Result<Rotation> {
    members.empty().await?;
    let folder = tempfile::tempdir()?;
    let mut accounts = Vec::new();
    for member in &members.all {
        let account = Account::create(member, folder.path()).await?;
        let kubeconfig = account.issue(0).await?;
        ensure!(account.ask(0).await? == 200, "a token is of no use");
        members.add(&member.name, &kubeconfig).await?;
        accounts.push(account);
    }
    let host = entrant::vmhost(&members.home.kubeconfig(), cache)?;
    let host = host.ready().await?;
    members.create("rotation-seed").await?;
    members.until_marked("rotation-seed", 1).await?;
    let (relists, engaged) = (relists(&host).await?, engaged(&host));
    ensure!(
        engaged == accounts.len(),
        "the host has begun to work in a member {engaged} times"
    );

    let (end, ended) = oneshot::channel::<()>();
    let rotating = async {
        // The load ends when this is dropped.
        let _end = end;
        rotate(members, &accounts, &host, settings.rotations).await
    };
    let until = async {
        let _ = ended.await;
    };
    let all: Vec<&Member> = members.all.iter().collect();
    let loading = member_load::steady(&all, "rotation", settings.rate, until);
    let (refused, load) = tokio::join!(rotating, loading);
    Ok(Rotation {
        load: load?,
        replaced: settings.rotations * accounts.len(),
        refused: refused?,
        relists: self::relists(&host).await?.saturating_sub(relists),
        engaged_anew: self::engaged(&host) - engaged,
    })
}

/// Replaces all tokens some times. Returns how many old ones are refused afterwards.
async fn rotate(
    members: &Members,
    accounts: &[Account<'_>],
    host: &Host,
    rotations: usize,
) -> Result<usize> {
    let mut refused = 0;
    for number in 1..=rotations {
        sleep(BETWEEN).await;
        for account in accounts {
            let kubeconfig = account.issue(number).await?;
            members.change(&account.member.name, &kubeconfig).await?;
        }
        let all = number * accounts.len();
        host.wait_for_lines(all, |line| line.contains(NEW)).await?;
        for account in accounts {
            refused += usize::from(account.revoke(number - 1).await?);
        }
    }
    sleep(BETWEEN).await;
    Ok(refused)
}

/// Returns the number of lists after the first, in all stores of members.
async fn relists(host: &Host) -> Result<u64> {
    let state = host.state().await?;
    let stores = state.stores.iter();
    let stores = stores.filter(|store| store.cluster.is_some());
    Ok(stores.map(|store| store.relists).sum())
}

/// Returns how often the host has begun to work in a member.
fn engaged(host: &Host) -> usize {
    let output = host.output();
    let lines = output.iter().filter(|line| line.contains(ENGAGED));
    lines.count()
}
