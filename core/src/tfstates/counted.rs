//! How many objects a state manages, counted while it is read for something else.
//!
//! Whatever else stands where resources should be counts for nothing and is no error: what a state may contain is
//! Terraform's to say.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// The objects in `resources`, those that data sources read left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Resources(pub(super) u64);

/// The objects of one resource.
#[derive(Default)]
struct Resource(u64);

/// The length of a list.
#[derive(Default)]
struct Length(u64);

/// Whether a value is the word `data`.
#[derive(Default)]
struct IsData(bool);

/// What is made of a value of the right kind; of any other the default is.
trait Lenient<'de>: Default {
    fn of_list<A: SeqAccess<'de>>(mut list: A) -> Result<Self, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Self::default())
    }

    fn of_object<A: MapAccess<'de>>(mut object: A) -> Result<Self, A::Error> {
        while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Self::default())
    }

    fn of_text(_text: &str) -> Self {
        Self::default()
    }
}

impl<'de> Lenient<'de> for Resources {
    fn of_list<A: SeqAccess<'de>>(mut list: A) -> Result<Self, A::Error> {
        let mut count = 0;
        while let Some(Read(Resource(objects), ..)) = list.next_element()? {
            count += objects;
        }
        Ok(Self(count))
    }
}

impl<'de> Lenient<'de> for Resource {
    fn of_object<A: MapAccess<'de>>(mut object: A) -> Result<Self, A::Error> {
        let (mut objects, mut is_data) = (0, false);
        while let Some(name) = object.next_key::<Cow<'de, str>>()? {
            match &*name {
                "mode" => is_data = object.next_value::<Read<IsData>>()?.0.0,
                "instances" => objects = object.next_value::<Read<Length>>()?.0.0,
                _ => drop(object.next_value::<IgnoredAny>()?),
            }
        }
        Ok(Self(if is_data { 0 } else { objects }))
    }
}

impl<'de> Lenient<'de> for Length {
    fn of_list<A: SeqAccess<'de>>(mut list: A) -> Result<Self, A::Error> {
        let mut length = 0;
        while list.next_element::<IgnoredAny>()?.is_some() {
            length += 1;
        }
        Ok(Self(length))
    }
}

impl Lenient<'_> for IsData {
    fn of_text(text: &str) -> Self {
        Self(text == "data")
    }
}

impl<'de> Deserialize<'de> for Resources {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Read::deserialize(deserializer)?.0)
    }
}

struct Read<T>(T);

impl<'de, T: Lenient<'de>> Deserialize<'de> for Read<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any(PhantomData)).map(Self)
    }
}

struct Any<T>(PhantomData<T>);

impl<'de, T: Lenient<'de>> Visitor<'de> for Any<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E: Error>(self, _value: bool) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_i64<E: Error>(self, _value: i64) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_u64<E: Error>(self, _value: u64) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_f64<E: Error>(self, _value: f64) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<T, E> {
        Ok(T::of_text(value))
    }

    fn visit_unit<E: Error>(self) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<T, A::Error> {
        T::of_list(list)
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<T, A::Error> {
        T::of_object(object)
    }
}
