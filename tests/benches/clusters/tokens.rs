//! Tokens of a member's service account, which can be taken back: each is bound to a Secret, and
//! the server refuses it once that Secret is gone.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use http::Method;
use serde_json::{Value, json};
use vmhost_tests::fleet::text;
use vmhost_tests::kubeconfig;
use vmhost_tests::members::Member;
use vmhost_tests::net;

const NAME: &str = "vmhost";
const ACCOUNTS: &str = "/api/v1/namespaces/kube-system/serviceaccounts";
const SECRETS: &str = "/api/v1/namespaces/kube-system/secrets";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";

/// A service account with all rights in a member.
pub struct Account<'a> {
    /// The member.
    pub member: &'a Member,
    folder: &'a Path,
}

impl<'a> Account<'a> {
    /// Creates the account. Its kubeconfigs are kept in a folder.
    pub async fn create(member: &'a Member, folder: &'a Path) -> Result<Account<'a>> {
        let account = json!({
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": { "name": NAME },
        });
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": { "name": NAME },
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": "cluster-admin",
            },
            "subjects": [{
                "kind": "ServiceAccount",
                "name": NAME,
                "namespace": "kube-system",
            }],
        });
        member.user.create(ACCOUNTS, &account).await?;
        member.user.create(BINDINGS, &binding).await?;
        Ok(Account { member, folder })
    }

    /// Issues the token of this number, and returns a kubeconfig with it.
    pub async fn issue(&self, number: usize) -> Result<String> {
        let name = secret(number);
        let secret = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": { "name": name },
        });
        let user = &self.member.user;
        user.create(SECRETS, &secret).await?;
        let request = json!({
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {
                "boundObjectRef": { "apiVersion": "v1", "kind": "Secret", "name": name },
            },
        });
        let tokens = format!("{ACCOUNTS}/{NAME}/token");
        let issued = user.create(&tokens, &request).await?;
        let token = issued["status"]["token"].as_str();
        let token = token.context("a TokenRequest without a token")?;
        let file = self.file(number);
        kubeconfig::changed(&self.member.server.kubeconfig(), &file, |_, user| {
            *user = json!({ "token": token });
        })?;
        text(&file)
    }

    /// Takes a token back. Returns whether the server refuses it from then on.
    pub async fn revoke(&self, number: usize) -> Result<bool> {
        let path = format!("{SECRETS}/{}", secret(number));
        self.member.user.delete(&path).await?;
        Ok(self.ask(number).await? == 401)
    }

    /// Returns the status code that a request with this token is answered with.
    pub async fn ask(&self, number: usize) -> Result<u16> {
        let client = kubeconfig::client(&self.file(number)).await?;
        let path = "/api/v1/namespaces";
        let (code, _) = net::send(&client, Method::GET, path, "", &Value::Null).await?;
        Ok(code)
    }

    fn file(&self, number: usize) -> PathBuf {
        let name = format!("{}-{number}.kubeconfig", self.member.name);
        self.folder.join(name)
    }
}

/// Returns the name of the Secret that a token is bound to.
fn secret(number: usize) -> String {
    format!("token-{number}")
}
