//! What people search a state's resources by: where they stand and how the provider calls them. Nothing else of their
//! attributes, and nothing that is marked as sensitive.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::Unreadable;
use super::facts::Contents;
use super::scanner::Copied;
use super::walk::{InstanceName, ResourceName, Visitor, walk_into};

/// Resources that are indexed of one state.
const INDEXED_MAX: usize = 50_000;
/// What is kept of them together until it is written, in bytes.
const INDEX_BYTES_MAX: usize = 20 << 20;
/// Longest address, in bytes. A longer one is no resource of Terraform's.
const ADDRESS_BYTES_MAX: usize = 1_024;
/// Longest text of any other kind; a longer one is cut.
const TEXT_LENGTH_MAX: usize = 512;
/// Attributes that name a resource in its cloud, besides `id` and `arn`.
const NAMES: [&str; 8] =
    ["name", "bucket", "display_name", "self_link", "fqdn", "dns_name", "public_ip", "private_ip"];
/// Maps in which people give names of their own, under `Name` or `name`.
const LABELS: [&str; 2] = ["tags", "labels"];
/// The ids of this provider's resources are the values that they made: some people use them as passwords.
const IDS_ARE_VALUES: &str = "random_";

/// A resource in the index, as it is written there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::tfstates) struct IndexedResource {
    pub(in crate::tfstates) address: String,
    pub(in crate::tfstates) mode: String,
    #[serde(rename = "type")]
    pub(in crate::tfstates) kind: String,
    pub(in crate::tfstates) name: String,
    pub(in crate::tfstates) module: Option<String>,
    pub(in crate::tfstates) provider: String,
    pub(in crate::tfstates) index_key: Option<String>,
    pub(in crate::tfstates) resource_id: Option<String>,
    pub(in crate::tfstates) arn: Option<String>,
    /// Other attributes that name it.
    pub(in crate::tfstates) names: BTreeMap<String, String>,
    /// What is searched, in lower case.
    pub(in crate::tfstates) haystack: String,
}

/// What one state has.
#[derive(Debug, Default)]
pub(in crate::tfstates) struct ResourceIndex {
    /// JSON of [`IndexedResource`] by address: a third of the memory.
    pub(in crate::tfstates) resources: BTreeMap<Box<str>, Box<str>>,
    /// Whether there were too many.
    pub(in crate::tfstates) truncated: bool,
    /// The rest.
    pub(in crate::tfstates) contents: Contents,
}

/// Reads a state for the index. What could be read of one that breaks off is not enough.
pub(in crate::tfstates) fn index(source: impl Read) -> (ResourceIndex, Result<(), Unreadable>) {
    let (mut reading, mut contents) = (Reading::default(), Contents::default());
    let walked = walk_into(source, &mut reading, &mut contents).map(drop);
    let readable = if contents.says.is_opaque { Err(Unreadable::Encrypted) } else { walked };
    if readable.is_err() {
        reading = Reading::default();
    }
    let Reading { resources, truncated, .. } = reading;
    (ResourceIndex { resources, truncated, contents }, readable)
}

#[derive(Default)]
struct Reading {
    resources: BTreeMap<Box<str>, Box<str>>,
    bytes: usize,
    truncated: bool,
    attributes: Vec<u8>,
    sensitive: Sensitive,
}

/// Which attributes of an instance are sensitive, in whole or in part.
#[derive(Debug, Default)]
enum Sensitive {
    #[default]
    Nothing,
    These(BTreeSet<String>),
    /// The list could not be read.
    Everything,
}

/// How the cloud calls an instance.
#[derive(Debug, Default)]
struct Identity {
    id: Option<String>,
    arn: Option<String>,
    names: BTreeMap<String, String>,
}

impl Visitor for Reading {
    type Kept = Identity;

    fn wants(&self, field: &str) -> bool {
        matches!(field, "attributes" | "attributes_flat" | "sensitive_attributes")
    }

    fn field(&mut self, name: &str, value: &Copied<'_>) -> Result<(), Unreadable> {
        match (name, value) {
            ("sensitive_attributes", value) => self.sensitive = Sensitive::read(value),
            (_, Copied::Whole(json)) if json.starts_with(b"{") => {
                self.attributes.clear();
                self.attributes.extend_from_slice(json);
            }
            _ => {}
        }
        Ok(())
    }

    fn instance(&mut self) -> Identity {
        let sensitive = std::mem::take(&mut self.sensitive);
        let identity = Identity::read(&self.attributes, &sensitive);
        self.attributes.clear();
        identity
    }

    fn resource(
        &mut self,
        resource: &ResourceName,
        instances: Vec<(InstanceName, Identity)>,
    ) -> Result<(), Unreadable> {
        for (instance, identity) in instances {
            let mut address = resource.address(&instance);
            // Terraform's own words for it. It has no address of its own, and is a thing of its own in the cloud.
            if let Some(deposed) = &instance.deposed {
                address.push_str(&format!(" (deposed object {deposed})"));
            }
            if address.len() <= ADDRESS_BYTES_MAX {
                self.add(address, resource, &instance, identity)?;
            }
        }
        Ok(())
    }
}

impl Reading {
    fn add(
        &mut self,
        address: String,
        resource: &ResourceName,
        instance: &InstanceName,
        identity: Identity,
    ) -> Result<(), Unreadable> {
        let index_key = instance.index_key.as_ref().map(|key| match key {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        });
        let id = identity.id.filter(|_| !resource.kind.starts_with(IDS_ARE_VALUES));
        let provider = provider(&resource.provider);
        let words = [address.as_str(), provider].into_iter();
        let words = words.chain(id.as_deref()).chain(identity.arn.as_deref());
        let words: Vec<&str> = words.chain(identity.names.values().map(|text| &**text)).collect();
        let row = IndexedResource {
            haystack: words.join(" ").replace('\0', "").to_lowercase(),
            mode: if resource.mode == "data" { "data".into() } else { "managed".into() },
            kind: text(&resource.kind),
            name: text(&resource.name),
            module: resource.module.as_deref().map(text),
            provider: text(provider),
            index_key: index_key.as_deref().map(text),
            resource_id: id,
            arn: identity.arn,
            names: identity.names,
            address: address.replace('\0', ""),
        };
        let json = serde_json::to_string(&row).map_err(|_| Unreadable::Broken)?;
        let bytes = row.address.len() + json.len();
        if self.resources.len() == INDEXED_MAX || self.bytes + bytes > INDEX_BYTES_MAX {
            self.truncated = true;
            return Ok(());
        }
        self.bytes += bytes;
        self.resources.insert(row.address.into(), json.into());
        Ok(())
    }
}

impl Sensitive {
    /// A list of paths, each a list of steps: `[{"type":"get_attr","value":"password"}, …]`.
    fn read(value: &Copied<'_>) -> Self {
        #[derive(Deserialize)]
        struct Step {
            value: Value,
        }
        let Copied::Whole(json) = value else { return Self::Everything };
        let Ok(paths) = serde_json::from_slice::<Option<Vec<Vec<Step>>>>(json) else {
            return Self::Everything;
        };
        let mut names = BTreeSet::new();
        for path in paths.unwrap_or_default() {
            match path.into_iter().next().map(|step| step.value) {
                Some(Value::String(name)) => drop(names.insert(name)),
                _ => return Self::Everything,
            }
        }
        if names.is_empty() { Self::Nothing } else { Self::These(names) }
    }

    fn covers(&self, attribute: &str) -> bool {
        match self {
            Self::Nothing => false,
            Self::These(names) => names.contains(attribute),
            Self::Everything => true,
        }
    }
}

impl Identity {
    fn read(attributes: &[u8], sensitive: &Sensitive) -> Self {
        let Ok(attributes) = serde_json::from_slice::<BTreeMap<String, &RawValue>>(attributes) else {
            return Self::default();
        };
        let string = |raw: &RawValue| serde_json::from_str::<String>(raw.get()).ok();
        // What is hidden under one name is not shown under another.
        let hidden: BTreeSet<String> = attributes
            .iter()
            .filter(|(name, _)| sensitive.covers(name))
            .filter_map(|(_, raw)| string(raw))
            .collect();
        let known = |value: String| (!value.is_empty() && !hidden.contains(&value)).then(|| text(&value));
        let open = |name: &str| attributes.get(name).filter(|_| !sensitive.covers(name));
        let value_of = |name: &str| open(name).and_then(|raw| string(raw)).and_then(known);
        let mut names = BTreeMap::new();
        names.extend(NAMES.iter().filter_map(|name| Some(((*name).to_owned(), value_of(name)?))));
        for label in LABELS {
            let Some(map) = open(label) else { continue };
            let map: BTreeMap<String, Option<String>> = serde_json::from_str(map.get()).unwrap_or_default();
            for (key, value) in map {
                if let (true, Some(value)) = (key.eq_ignore_ascii_case("name"), value.and_then(known)) {
                    names.insert([label, ".", &key].concat(), value);
                }
            }
        }
        Self { id: value_of("id"), arn: value_of("arn"), names }
    }
}

/// `registry.terraform.io/hashicorp/aws` of `module.m.provider["registry.terraform.io/hashicorp/aws"].west`.
fn provider(written: &str) -> &str {
    match written.split_once("[\"").and_then(|(_, rest)| rest.split_once("\"]")) {
        Some((source, _)) => source,
        // `provider.aws`, as Terraform 0.12 wrote it.
        None => written.strip_prefix("provider.").unwrap_or(written),
    }
}

/// No text column can hold NUL.
fn text(value: &str) -> String {
    value.chars().filter(|char| *char != '\0').take(TEXT_LENGTH_MAX).collect()
}
