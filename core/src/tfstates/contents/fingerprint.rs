//! Numbers that tell values apart: what a comparison keeps of a value instead of the value.

use std::hash::{BuildHasher as _, RandomState};

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::Unreadable;
use super::scanner::Copied;
use crate::digest::{Sha256Digest, Sha256Hasher};

/// Of a text byte for byte, as it comes: for what is too long to be understood.
#[derive(Clone, Debug, Default)]
pub(super) struct Raw(Sha256Hasher);

impl Raw {
    pub(super) fn update(&mut self, piece: &[u8]) {
        self.0.update(piece);
    }

    fn finish(&self) -> Sha256Digest {
        self.0.clone().finish()
    }
}

/// Numbers of values that mean the same are the same, whatever the order of their fields and their white space. The keys
/// are made anew for each comparison, so nobody can look for two values with one number beforehand.
#[derive(Clone, Debug, Default)]
pub(super) struct Fingerprints(RandomState);

impl Fingerprints {
    /// Of a value.
    pub(super) fn of(&self, value: &Copied<'_>) -> Result<u64, Unreadable> {
        let json = match value {
            Copied::Whole(json) => json,
            Copied::Long(raw) => return Ok(self.0.hash_one((7_u8, raw.finish()))),
        };
        let mut deserializer = serde_json::Deserializer::from_slice(json);
        let fingerprint = Value(&self.0).deserialize(&mut deserializer).map_err(|_| Unreadable::Broken)?;
        deserializer.end().map_err(|_| Unreadable::Broken)?;
        Ok(fingerprint)
    }

    /// Of a field with its value; fields are added up, in any order.
    pub(super) fn field(&self, name: &str, value: u64) -> u64 {
        self.0.hash_one((name, value))
    }
}

struct Value<'a>(&'a RandomState);

impl<'de> DeserializeSeed<'de> for Value<'_> {
    type Value = u64;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<u64, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Value<'_> {
    type Value = u64;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<u64, E> {
        Ok(self.0.hash_one((0_u8, value)))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<u64, E> {
        Ok(self.0.hash_one((1_u8, i128::from(value))))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<u64, E> {
        Ok(self.0.hash_one((1_u8, i128::from(value))))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<u64, E> {
        Ok(self.0.hash_one((2_u8, value.to_bits())))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<u64, E> {
        Ok(self.0.hash_one((3_u8, value)))
    }

    fn visit_unit<E: Error>(self) -> Result<u64, E> {
        Ok(self.0.hash_one(4_u8))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<u64, A::Error> {
        let mut all = self.0.hash_one(5_u8);
        while let Some(item) = seq.next_element_seed(Value(self.0))? {
            all = self.0.hash_one((all, item));
        }
        Ok(all)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<u64, A::Error> {
        let mut all = 0_u64;
        while let Some(name) = map.next_key::<std::borrow::Cow<'de, str>>()? {
            let value = map.next_value_seed(Value(self.0))?;
            all = all.wrapping_add(self.0.hash_one((name, value)));
        }
        Ok(self.0.hash_one((6_u8, all)))
    }
}
