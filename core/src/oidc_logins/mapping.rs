//! What groups give: the setting `auth.oidc.role_mapping`, and what follows from it for somebody.
//!
//! ```json
//! { "Platform Admins": "superadmin", "payments-devs": { "payments": "operator", "shared": "viewer" } }
//! ```

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

use crate::access::Role;
use crate::business_units::check_slug;

/// Groups that a mapping may name.
const GROUPS_MAX: usize = 500;
/// Business units that one group may give a role in.
const UNITS_MAX: usize = 100;
const SUPERADMIN: &str = "superadmin";

/// Why a text is no mapping. Never says what stood there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MappingError {
    /// Not of the form that is asked for.
    #[error(
        "must be a JSON object whose names are groups, each with \"superadmin\" or an object from slugs of business \
         units to \"viewer\", \"operator\" or \"admin\""
    )]
    Shape,
    /// Upper and lower case are the same in a group's name.
    #[error("must name each group once, whatever its case, and each business unit once in a group")]
    Repeated,
    /// More than anybody needs.
    #[error("must name at most 500 groups, and at most 100 business units in each")]
    TooMany,
}

/// What one group gives.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Grant {
    Superadmin,
    Roles(BTreeMap<String, Role>),
}

/// What every group gives, by the group's name in lower case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoleMapping(BTreeMap<String, Grant>);

/// What somebody is given by their groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Granted {
    /// Whether they stand above all business units.
    pub superadmin: bool,
    /// Their role by the unit's slug.
    pub roles: BTreeMap<String, Role>,
}

impl RoleMapping {
    /// Reads the setting.
    pub fn parse(text: &str) -> Result<Self, MappingError> {
        let Ok(Node::Pairs(groups)) = serde_json::from_str(text) else { return Err(MappingError::Shape) };
        if groups.len() > GROUPS_MAX {
            return Err(MappingError::TooMany);
        }
        let mut mapping = BTreeMap::new();
        for (group, grant) in groups {
            let group = normal(&group);
            if group.is_empty() {
                return Err(MappingError::Shape);
            }
            if mapping.insert(group, read(grant)?).is_some() {
                return Err(MappingError::Repeated);
            }
        }
        Ok(Self(mapping))
    }

    /// What the groups of somebody give: the highest of all roles in a unit. `default` holds for those who are given
    /// nothing.
    pub fn given(&self, groups: &[String], default: Option<(&str, Role)>) -> Granted {
        let mut given = Granted::default();
        for grant in groups.iter().filter_map(|group| self.0.get(&normal(group))) {
            match grant {
                Grant::Superadmin => given.superadmin = true,
                Grant::Roles(roles) => {
                    for (slug, role) in roles {
                        let known = given.roles.entry(slug.clone()).or_insert(*role);
                        *known = (*known).max(*role);
                    }
                }
            }
        }
        if let Some((slug, role)) = default.filter(|_| !given.superadmin && given.roles.is_empty()) {
            given.roles.insert(slug.to_owned(), role);
        }
        given
    }
}

fn normal(group: &str) -> String {
    group.trim().to_lowercase()
}

fn read(grant: Node) -> Result<Grant, MappingError> {
    let roles = match grant {
        Node::Word(word) if word == SUPERADMIN => return Ok(Grant::Superadmin),
        Node::Word(_) => return Err(MappingError::Shape),
        Node::Pairs(roles) => roles,
    };
    if roles.len() > UNITS_MAX {
        return Err(MappingError::TooMany);
    }
    let mut read = BTreeMap::new();
    for (slug, role) in roles {
        let Node::Word(role) = role else { return Err(MappingError::Shape) };
        let role = Role::parse(&role).ok_or(MappingError::Shape)?;
        check_slug(&slug).map_err(|_| MappingError::Shape)?;
        if read.insert(slug, role).is_some() {
            return Err(MappingError::Repeated);
        }
    }
    Ok(Grant::Roles(read))
}

/// JSON of words and objects. A map would keep only the last of several equal names, and nobody would learn of the
/// others.
enum Node {
    Word(String),
    Pairs(Vec<(String, Node)>),
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Node;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a word or an object")
            }

            fn visit_str<E>(self, word: &str) -> Result<Node, E> {
                Ok(Node::Word(word.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Node::Pairs(pairs))
            }
        }
        from.deserialize_any(Reader)
    }
}
