//! Problems of the index of resources.

use plumbline_core::resources::{BadSearch, ResourceError};

use super::Problem;
use crate::body::invalid_field;

impl From<ResourceError> for Problem {
    fn from(error: ResourceError) -> Self {
        let sentence = error.to_string();
        match error {
            ResourceError::Access(error) => error.into(),
            ResourceError::BadSearch(BadSearch::Text(field)) => invalid_field(field, &sentence),
            ResourceError::BadSearch(BadSearch::Words) => invalid_field("q", &sentence),
            ResourceError::Db(error) => error.into(),
        }
    }
}
