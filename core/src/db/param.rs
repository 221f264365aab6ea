//! SQL parameters that know their Postgres type, so a statement is sent in one round trip without asking the server
//! what it expects.

use chrono::{DateTime, Utc};
use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

/// A value that can be sent to Postgres, with the type it is sent as.
pub trait Param: ToSql + Sync {
    /// The Postgres type of the parameter.
    fn pg_type(&self) -> Type;
}

/// A type whose Postgres type does not depend on the value; gives `Option<T>` and `Vec<T>` for free.
trait Fixed: ToSql + Sync {
    const TYPE: Type;
    const ARRAY: Type;
}

macro_rules! fixed {
    ($($rust:ty => $ty:ident, $array:ident;)*) => {$(
        impl Fixed for $rust {
            const TYPE: Type = Type::$ty;
            const ARRAY: Type = Type::$array;
        }
        impl Param for $rust {
            fn pg_type(&self) -> Type { <$rust as Fixed>::TYPE }
        }
        impl Param for Option<$rust> {
            fn pg_type(&self) -> Type { <$rust as Fixed>::TYPE }
        }
        impl Param for Vec<$rust> {
            fn pg_type(&self) -> Type { <$rust as Fixed>::ARRAY }
        }
        impl Param for Option<Vec<$rust>> {
            fn pg_type(&self) -> Type { <$rust as Fixed>::ARRAY }
        }
        impl Param for Vec<Option<$rust>> {
            fn pg_type(&self) -> Type { <$rust as Fixed>::ARRAY }
        }
        impl Param for &[$rust] {
            fn pg_type(&self) -> Type { <$rust as Fixed>::ARRAY }
        }
    )*};
}

fixed! {
    bool => BOOL, BOOL_ARRAY;
    i16 => INT2, INT2_ARRAY;
    i32 => INT4, INT4_ARRAY;
    i64 => INT8, INT8_ARRAY;
    f64 => FLOAT8, FLOAT8_ARRAY;
    String => TEXT, TEXT_ARRAY;
    &str => TEXT, TEXT_ARRAY;
    Uuid => UUID, UUID_ARRAY;
    Vec<u8> => BYTEA, BYTEA_ARRAY;
    &[u8] => BYTEA, BYTEA_ARRAY;
    serde_json::Value => JSONB, JSONB_ARRAY;
    DateTime<Utc> => TIMESTAMPTZ, TIMESTAMPTZ_ARRAY;
}

macro_rules! optional_ids {
    ($($id:ident)*) => {$(
        impl Param for Option<crate::ids::$id> {
            fn pg_type(&self) -> Type { Type::UUID }
        }
        impl Param for Vec<crate::ids::$id> {
            fn pg_type(&self) -> Type { Type::UUID_ARRAY }
        }
    )*};
}

optional_ids! {
    BusinessUnitId UserId WorkspaceId RunId TaskId ExecutorId StateVersionId QuarantinedStateId StateUploadId BlobId
    ArtifactId SessionId ApiKeyId TrustRuleId JwtSecretId IssuerKeyId GitCredentialId AwsAccountId AzureSubscriptionId
    GcpProjectId StateStoreId ClusterId VariableId VariableSetId
}
