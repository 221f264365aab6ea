//! Bodies of any size: begin, upload to the object store, commit; and the sweep over those that were left behind.

use serde_json::json;

use super::writes::{Settled, discard_body, judge, settle};
use super::{StateActor, find_row, key_of, lock_row};
use crate::Deps;
use crate::access::{Actor, Ctx, Role, Scope};
use crate::ids::{StateUploadId, StateVersionId, WorkspaceId};
use crate::ports::UploadTerms;
use crate::protocol::{StateUploadAnswer, StateUploadBegin, StateUploadCommit};
use crate::tfstates::store::{self, NewUpload, NewVersion, UploadRow, UploadStatus};
use crate::tfstates::{StateError, Write, WriteFence, WriteOutcomeOfUpload};
