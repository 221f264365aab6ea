//! One pass through a state.

use std::io::Read;

use serde_json::Value;

use super::Unreadable;
use super::facts::Contents;
use super::scanner::{Copied, Scanner};

/// Longest field of an instance that is read, in bytes: a longer one is only told from others.
const FIELD_BYTES_MAX: usize = 1 << 20;

/// What somebody wants to see of a state. Fields may come in any order, so what a visitor keeps of an instance is given
/// back to it when the resource's name is known.
pub(super) trait Visitor {
    /// What is kept of an instance until then.
    type Kept;

    /// Whether a field of instances is wanted.
    fn wants(&self, _field: &str) -> bool {
        false
    }

    /// A wanted field of the instance that is being read.
    fn field(&mut self, _name: &str, _value: &Copied<'_>) -> Result<(), Unreadable> {
        Ok(())
    }

    /// The instance is read.
    fn instance(&mut self) -> Self::Kept;

    /// All of a resource is read.
    fn resource(
        &mut self,
        _name: &ResourceName,
        _instances: Vec<(InstanceName, Self::Kept)>,
    ) -> Result<(), Unreadable> {
        Ok(())
    }

    /// Longest value of an output that is wanted, in bytes. `None`: outputs are passed over.
    fn output_bytes_max(&self) -> Option<usize> {
        None
    }

    /// A wanted output.
    fn output(&mut self, _name: &str, _output: &Output<'_>) -> Result<(), Unreadable> {
        Ok(())
    }

    /// Whether what comes after a field of the state is of no interest.
    fn has_enough(&self, _after: &str) -> bool {
        false
    }
}

/// Where a resource stands.
#[derive(Clone, Debug, Default)]
pub(super) struct ResourceName {
    pub(super) module: Option<String>,
    pub(super) mode: String,
    pub(super) kind: String,
    pub(super) name: String,
    /// As Terraform writes it: `provider["registry.terraform.io/hashicorp/aws"].west`.
    pub(super) provider: String,
}

/// Which of a resource's instances.
#[derive(Clone, Debug, Default)]
pub(super) struct InstanceName {
    /// A number under `count`, a text under `for_each`.
    pub(super) index_key: Option<Value>,
    /// Set for an object that was replaced and not destroyed yet.
    pub(super) deposed: Option<String>,
}

/// An output.
pub(super) struct Output<'a> {
    pub(super) value: Copied<'a>,
    pub(super) value_bytes: u64,
    pub(super) kind: Copied<'a>,
    pub(super) is_sensitive: bool,
}

impl ResourceName {
    /// The resource's address, of one instance.
    pub(super) fn address(&self, instance: &InstanceName) -> String {
        let mut address = String::new();
        if let Some(module) = &self.module {
            address.push_str(module);
            address.push('.');
        }
        if self.mode == "data" {
            address.push_str("data.");
        }
        address.push_str(&self.kind);
        address.push('.');
        address.push_str(&self.name);
        // Terraform writes keys of `for_each` as quoted strings: JSON's quoting is the same for what it allows.
        if let Some(key) = &instance.index_key {
            address.push_str(&format!("[{key}]"));
        }
        address
    }
}

/// Goes through a state.
pub(super) fn walk<V: Visitor>(source: impl Read, visitor: &mut V) -> Result<Contents, Unreadable> {
    let mut contents = Contents::default();
    let is_whole = walk_into(source, visitor, &mut contents)?;
    if contents.says.is_opaque && is_whole {
        return Err(Unreadable::Encrypted);
    }
    Ok(contents)
}

/// The same; what was read before an error stays in `contents`. Returns whether all was read.
pub(super) fn walk_into<V: Visitor>(
    source: impl Read,
    visitor: &mut V,
    contents: &mut Contents,
) -> Result<bool, Unreadable> {
    let mut scanner = Scanner::new(source);
    if scanner.peek()? != b'{' {
        return Err(Unreadable::NoState);
    }
    contents.is_object = true;
    let mut has_enough = false;
    let ended = scanner.object(|scanner, name| {
        let says = &mut contents.says;
        match name {
            "serial" => serial(scanner, contents)?,
            "version" => says.version = scanner.parse()?,
            "lineage" => says.lineage = scanner.parse()?,
            "terraform_version" => says.terraform_version = scanner.parse()?,
            "encrypted_data" => is_set(scanner, &mut says.is_opaque)?,
            "format_version" => is_set(scanner, &mut says.is_shown)?,
            "planned_values" | "resource_changes" => is_set(scanner, &mut says.is_plan)?,
            "resources" if scanner.peek()? == b'[' => {
                scanner.array(|scanner| {
                    contents.resource_count += resource(scanner, visitor)?;
                    Ok(())
                })?;
            }
            "outputs" if visitor.output_bytes_max().is_some() && scanner.peek()? == b'{' => {
                scanner.object(|scanner, name| output(scanner, visitor, name))?;
            }
            _ => scanner.skip()?,
        }
        has_enough = visitor.has_enough(name);
        // Ends the walk; told from a broken state below.
        if has_enough { Err(Unreadable::Broken) } else { Ok(()) }
    });
    if has_enough {
        return Ok(false);
    }
    ended?;
    if scanner.is_at_end() { Ok(true) } else { Err(Unreadable::Broken) }
}

/// Known before the value has been passed over: of what is cut off the rest never comes.
fn is_set<R: Read>(scanner: &mut Scanner<R>, is_set: &mut bool) -> Result<(), Unreadable> {
    *is_set |= scanner.peek()? != b'n';
    scanner.skip()
}

fn serial<R: Read>(scanner: &mut Scanner<R>, contents: &mut Contents) -> Result<(), Unreadable> {
    // With two, nobody can say which one a reader takes.
    if contents.serial_at.is_some() {
        return Err(Unreadable::NoState);
    }
    scanner.peek()?;
    let start = scanner.offset();
    contents.says.serial = scanner.parse()?;
    contents.serial_at = Some(start..scanner.offset());
    Ok(())
}

/// Returns how many objects it manages.
fn resource<R: Read, V: Visitor>(scanner: &mut Scanner<R>, visitor: &mut V) -> Result<u64, Unreadable> {
    let mut name = ResourceName::default();
    let mut instances = Vec::new();
    if scanner.peek()? != b'{' {
        return Err(Unreadable::NoState);
    }
    scanner.object(|scanner, field| {
        let text = |scanner: &mut Scanner<R>| Ok(scanner.parse::<String>()?.unwrap_or_default());
        match field {
            "module" => name.module = scanner.parse()?,
            "mode" => name.mode = text(scanner)?,
            "type" => name.kind = text(scanner)?,
            "name" => name.name = text(scanner)?,
            "provider" => name.provider = text(scanner)?,
            "instances" if scanner.peek()? == b'[' => {
                scanner.array(|scanner| {
                    instances.push(instance(scanner, visitor)?);
                    Ok(())
                })?;
            }
            _ => scanner.skip()?,
        }
        Ok(())
    })?;
    let managed = if name.mode == "data" { 0 } else { instances.len() as u64 };
    visitor.resource(&name, instances)?;
    Ok(managed)
}

fn instance<R: Read, V: Visitor>(
    scanner: &mut Scanner<R>,
    visitor: &mut V,
) -> Result<(InstanceName, V::Kept), Unreadable> {
    let mut name = InstanceName::default();
    let mut copy = Vec::new();
    if scanner.peek()? != b'{' {
        return Err(Unreadable::NoState);
    }
    scanner.object(|scanner, field| {
        match field {
            "index_key" => {
                name.index_key = scanner.parse::<Value>()?.filter(|key| key.is_string() || key.is_number());
            }
            "deposed" => name.deposed = scanner.parse()?,
            _ if visitor.wants(field) => {
                let value = scanner.copy(FIELD_BYTES_MAX, &mut copy)?;
                visitor.field(field, &value)?;
            }
            _ => scanner.skip()?,
        }
        Ok(())
    })?;
    Ok((name, visitor.instance()))
}

fn output<R: Read, V: Visitor>(
    scanner: &mut Scanner<R>,
    visitor: &mut V,
    name: &str,
) -> Result<(), Unreadable> {
    let bytes_max = visitor.output_bytes_max().unwrap_or(0);
    let (mut value, mut kind) = (b"null".to_vec(), b"null".to_vec());
    let (mut long, mut value_bytes, mut is_sensitive) = (None, 4, false);
    if scanner.peek()? != b'{' {
        return Err(Unreadable::NoState);
    }
    scanner.object(|scanner, field| {
        match field {
            "value" => {
                scanner.peek()?;
                let start = scanner.offset();
                long = match scanner.copy(bytes_max, &mut value)? {
                    Copied::Whole(_) => None,
                    Copied::Long(raw) => Some(raw),
                };
                value_bytes = scanner.offset() - start;
            }
            "type" => {
                // A type that long is no help to anybody.
                if let Copied::Long(_) = scanner.copy(bytes_max, &mut kind)? {
                    kind = b"null".to_vec();
                }
            }
            // Anything but a clear no hides the value.
            "sensitive" => {
                is_sensitive = scanner.parse::<Option<bool>>()?.unwrap_or(Some(true)) == Some(true)
            }
            _ => scanner.skip()?,
        }
        Ok(())
    })?;
    let value = long.map_or(Copied::Whole(&value), Copied::Long);
    visitor.output(name, &Output { value, value_bytes, kind: Copied::Whole(&kind), is_sensitive })
}
