//! What the document says of an integration's bodies, made of the registry: names, types, bounds and words stand there
//! once.

use plumbline_core::config::{Integration, Kind, SecretView, Setting};
use utoipa::openapi::schema::{KnownFormat, SchemaFormat, SchemaType};
use utoipa::openapi::{ObjectBuilder, Ref, RefOr, Schema, Type};
use utoipa::{PartialSchema as _, ToSchema as _};

/// Describes a type as the change of an integration.
macro_rules! described_change {
    ($type:ident, $name:literal, $integration:expr) => {
        impl utoipa::ToSchema for $type {
            fn name() -> std::borrow::Cow<'static, str> {
                $name.into()
            }
        }
        impl utoipa::PartialSchema for $type {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
                crate::routes::integrations::schema::change($integration)
            }
        }
    };
}

/// Describes a type as what is seen of an integration.
macro_rules! described_view {
    ($type:ident, $name:literal, $integration:expr) => {
        impl utoipa::ToSchema for $type {
            fn name() -> std::borrow::Cow<'static, str> {
                $name.into()
            }
            fn schemas(schemas: &mut Vec<(String, utoipa::openapi::RefOr<utoipa::openapi::Schema>)>) {
                crate::routes::integrations::schema::referenced(schemas);
            }
        }
        impl utoipa::PartialSchema for $type {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
                crate::routes::integrations::schema::view($integration)
            }
        }
    };
}

pub(super) use {described_change, described_view};

/// Every field may be absent or null.
pub(super) fn change(integration: &Integration) -> RefOr<Schema> {
    let mut object =
        ObjectBuilder::new().additional_properties(Some(utoipa::openapi::schema::AdditionalProperties::<
            Schema,
        >::FreeForm(false)));
    for (name, setting) in integration.fields {
        object = object.property(*name, plain(setting, true));
    }
    object.into()
}

/// A secret is only told of; what has a default is never null.
pub(super) fn view(integration: &Integration) -> RefOr<Schema> {
    let limits = plumbline_core::limits::Limits::default();
    let mut object = ObjectBuilder::new();
    for (name, setting) in integration.fields {
        let field = if setting.is_secret() {
            RefOr::Ref(Ref::from_schema_name(SecretView::name()))
        } else {
            plain(setting, setting.default_value(&limits).is_none())
        };
        object = object.property(*name, field).required(*name);
    }
    let texts = |format: KnownFormat, description: &str| {
        ObjectBuilder::new()
            .schema_type(SchemaType::from_iter([Type::String, Type::Null]))
            .format(Some(SchemaFormat::KnownFormat(format)))
            .description(Some(description))
    };
    object
        .property("updated_by", texts(KnownFormat::Uuid, "Who changed one of them last."))
        .property("updated_at", texts(KnownFormat::DateTime, "When."))
        .into()
}

/// What [`view`] refers to.
pub(super) fn referenced(schemas: &mut Vec<(String, RefOr<Schema>)>) {
    schemas.push((SecretView::name().into_owned(), SecretView::schema()));
}

fn plain(setting: &Setting, nullable: bool) -> RefOr<Schema> {
    let kind = match setting.kind {
        Kind::Bool => Type::Boolean,
        Kind::Integer { .. } | Kind::Duration { .. } => Type::Integer,
        Kind::Word(_) | Kind::Text(_) | Kind::Url | Kind::Secret(_) => Type::String,
    };
    let bounds = setting.kind.bounds();
    let mut object = ObjectBuilder::new()
        .schema_type(if nullable { SchemaType::from_iter([kind, Type::Null]) } else { SchemaType::new(kind) })
        .description(Some(setting.doc.trim()))
        .minimum(bounds.map(|(min, _)| min))
        .maximum(bounds.map(|(_, max)| max));
    if let Kind::Word(words) = setting.kind {
        object = object.enum_values(Some(words.iter().copied()));
    }
    if setting.is_secret() {
        object = object.format(Some(SchemaFormat::KnownFormat(KnownFormat::Password)));
    }
    object.into()
}
