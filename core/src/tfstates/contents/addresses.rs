//! The addresses in a state.

use std::collections::BTreeSet;
use std::io::Read;

use super::walk::{InstanceName, ResourceName, Visitor, walk};
use super::{ADDRESSES_MAX, Unreadable};

/// The addresses of a state's resources.
pub type Addresses = BTreeSet<String>;

impl Visitor for Addresses {
    type Kept = ();

    fn instance(&mut self) {}

    fn resource(
        &mut self,
        name: &ResourceName,
        instances: Vec<(InstanceName, ())>,
    ) -> Result<(), Unreadable> {
        self.extend(instances.iter().map(|(instance, ())| name.address(instance)));
        if self.len() > ADDRESSES_MAX { Err(Unreadable::TooMany) } else { Ok(()) }
    }
}

/// All of them.
pub(in crate::tfstates) fn addresses(source: impl Read) -> Result<Addresses, Unreadable> {
    let mut addresses = Addresses::new();
    walk(source, &mut addresses)?;
    Ok(addresses)
}
