//! What the cluster serves, as a rule of a webhook names it: API groups, and resources by their
//! plural.

use serde::Deserialize;
use vmhost_core::Gvk;

use super::{DISCOVERY_TIMEOUT, Resource, group_path};
use crate::error::Error;
use crate::reader::Reader;

#[derive(Deserialize)]
struct GroupList {
    groups: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    name: String,
    versions: Vec<Version>,
}

#[derive(Deserialize)]
struct Version {
    version: String,
}

#[derive(Deserialize)]
struct ListedResources {
    resources: Vec<Listed>,
}

#[derive(Deserialize)]
struct Listed {
    name: String,
    kind: String,
    namespaced: bool,
    #[serde(default)]
    verbs: Vec<String>,
}

impl Reader {
    /// Returns the API groups, each with its versions in the order of the server; the core group
    /// first. Not every version has every resource.
    pub async fn groups(&self) -> Result<Vec<(String, Vec<String>)>, Error> {
        let body = self.fetch("/apis", None, DISCOVERY_TIMEOUT).await?;
        let list: GroupList =
            serde_json::from_slice(&body).map_err(|error| Error::Unreadable(error.to_string()))?;
        let core = (String::new(), vec!["v1".to_owned()]);
        let versions = |all: Vec<Version>| all.into_iter().map(|of| of.version).collect::<Vec<_>>();
        let groups = list.groups.into_iter();
        let groups = groups.map(|group| (group.name, versions(group.versions)));
        Ok(std::iter::once(core).chain(groups).collect())
    }

    /// Returns the resources of a group's version whose objects can be listed, without
    /// subresources; `None` if the cluster does not serve the version.
    pub async fn resources(
        &self,
        group: &str,
        version: &str,
    ) -> Result<Option<Vec<Resource>>, Error> {
        let path = group_path(&Gvk::new(group, version, ""));
        let body = match self.fetch(&path, None, DISCOVERY_TIMEOUT).await {
            Ok(body) => body,
            Err(error) if error.code() == Some(404) => return Ok(None),
            Err(error) => return Err(error),
        };
        let list: ListedResources =
            serde_json::from_slice(&body).map_err(|error| Error::Unreadable(error.to_string()))?;
        let is_listed = |listed: &Listed| {
            !listed.name.contains('/') && listed.verbs.iter().any(|verb| verb == "list")
        };
        let found = list.resources.into_iter().filter(is_listed);
        let resource = |listed: Listed| Resource {
            kind: Gvk::new(group, version, &listed.kind),
            plural: listed.name,
            namespaced: listed.namespaced,
            subresources: Vec::new(),
        };
        Ok(Some(found.map(resource).collect()))
    }
}

#[cfg(test)]
mod tests {
    use crate::fake::{Fake, json, status};

    #[tokio::test]
    async fn groups_and_what_can_be_listed_are_found() {
        let fake = Fake::new(|request| match request.uri().path() {
            "/apis" => json(
                200,
                r#"{"kind":"APIGroupList","groups":[{"name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"},{"groupVersion":"apps/v1beta1","version":"v1beta1"}],"preferredVersion":{"groupVersion":"apps/v1","version":"v1"}}]}"#,
            ),
            "/api/v1" => json(
                200,
                r#"{"resources":[{"name":"pods","kind":"Pod","namespaced":true,"verbs":["list"]},{"name":"pods/status","kind":"Pod","namespaced":true,"verbs":["get"]},{"name":"bindings","kind":"Binding","namespaced":true,"verbs":["create"]}]}"#,
            ),
            _ => status(404, "NotFound", "no"),
        });
        let reader = fake.connection().reader();
        let groups = reader.groups().await.unwrap();
        let of = |group: &str, versions: &[&str]| {
            let versions = versions.iter().map(ToString::to_string);
            (group.to_owned(), versions.collect::<Vec<_>>())
        };
        assert_eq!(groups, [of("", &["v1"]), of("apps", &["v1", "v1beta1"])]);
        let found = reader.resources("", "v1").await.unwrap().unwrap();
        let plurals: Vec<&str> = found.iter().map(|found| found.plural.as_str()).collect();
        assert_eq!(plurals, ["pods"]);
        assert_eq!(found[0].kind.to_string(), "Pod.v1");
        assert!(reader.resources("x.io", "v1").await.unwrap().is_none());
    }
}
