//! Every column with sealed values. A new one is a line at the end of this file.

use uuid::Uuid;

use crate::secrets::{Domain, Place};

/// A column with sealed values, and the statements that a rekey needs for it.
#[derive(Clone, Copy, Debug)]
pub struct SealedColumn {
    /// The table.
    pub table: &'static str,
    /// The column, or the field of a JSON column: `payload.login_sealed`.
    pub column: &'static str,
    /// Whose key seals it.
    pub domain: Domain,
    /// What its values are bound to.
    bound_to: (&'static str, &'static str),
    /// Rows after `$1` under another root than the prefix `$2` names, up to `$3`, locked.
    pub(super) take: &'static str,
    /// Puts `$3` where `$2` still stands, in the rows `$1`.
    pub(super) put: &'static str,
}

impl SealedColumn {
    /// The place that a value of this column is bound to.
    pub(super) fn place(&self, row: Uuid) -> Place {
        let (table, column) = self.bound_to;
        Place { table, column, row }
    }
}

macro_rules! sealed_columns {
    ($({ $domain:ident $table:literal $column:literal, id $id:literal, row $row:literal, value $value:literal,
         set $set:literal, bound to $bound_table:literal $bound_column:literal })*) => {
        /// All of them.
        pub const SEALED_COLUMNS: &[SealedColumn] = &[$(SealedColumn {
            table: $table,
            column: $column,
            domain: Domain::$domain,
            bound_to: ($bound_table, $bound_column),
            // Whoever writes a value at this moment has its row: it is looked at again in the next pass.
            take: concat!(
                "SELECT ", $id, " AS id, ", $row, " AS place, ", $value, " AS sealed FROM ", $table,
                " WHERE ", $id, " > $1 AND ", $value, " IS NOT NULL AND NOT starts_with(", $value, ", $2) ORDER BY ",
                $id, " LIMIT $3 FOR NO KEY UPDATE SKIP LOCKED"
            ),
            // The old ciphertext is compared although the row is locked: no reordering of statements may lose a newer one.
            put: concat!(
                "UPDATE ", $table, " AS sealed_row SET ", $set,
                " FROM unnest($1::uuid[], $2::text[], $3::text[]) AS fresh (fresh_id, old, new) WHERE sealed_row.", $id,
                " = fresh.fresh_id AND sealed_row.", $value, " = fresh.old"
            ),
        }),*];

        /// Values under another root than the prefix `$1` names, of all columns at one moment, in the order of the list.
        pub(super) const COUNT: &str = concat!($(
            "SELECT '", $table, "' AS table_name, '", $column, "' AS column_name, count(*) AS remaining FROM ", $table,
            " WHERE ", $value, " IS NOT NULL AND NOT starts_with(", $value, ", $1) UNION ALL ",
        )* "SELECT NULL, NULL, NULL::bigint WHERE false");

        /// Under which roots other than those that `$1` names values of each column are, and how many.
        pub(super) const STRANGERS: &str = concat!($(
            "SELECT '", $table, "' AS table_name, '", $column, "' AS column_name, split_part(", $value, ", ':', 1) AS key_id, ",
            "count(*) AS values FROM ", $table, " WHERE ", $value, " IS NOT NULL AND split_part(", $value,
            ", ':', 1) <> ALL ($1) GROUP BY key_id UNION ALL ",
        )* "SELECT NULL, NULL, NULL, NULL::bigint WHERE false ORDER BY 3, 1, 2");
    };
}

// `set` names the fresh value `new`. A value is bound to the table and column that its feature seals it for, which for the
// history of tasks are those of the live ones.
sealed_columns! {
    { Variables "runs" "variables_sealed", id "id", row "id", value "variables_sealed",
      set "variables_sealed = fresh.new", bound to "runs" "variables_sealed" }
    { Variables "runs" "pinned_variables_sealed", id "id", row "id", value "pinned_variables_sealed",
      set "pinned_variables_sealed = fresh.new", bound to "runs" "pinned_variables_sealed" }
    { Variables "variables" "value_sealed", id "id", row "id", value "value_sealed",
      set "value_sealed = fresh.new", bound to "variables" "value_sealed" }
    { Aws "aws_accounts" "keys_sealed", id "id", row "id", value "keys_sealed",
      set "keys_sealed = fresh.new", bound to "aws_accounts" "keys_sealed" }
    { Azure "azure_subscriptions" "client_secret_sealed", id "id", row "id", value "client_secret_sealed",
      set "client_secret_sealed = fresh.new", bound to "azure_subscriptions" "client_secret_sealed" }
    { Gcp "gcp_projects" "service_account_sealed", id "id", row "id", value "service_account_sealed",
      set "service_account_sealed = fresh.new", bound to "gcp_projects" "service_account_sealed" }
    { Kubernetes "clusters" "kubeconfig_sealed", id "id", row "id", value "kubeconfig_sealed",
      set "kubeconfig_sealed = fresh.new", bound to "clusters" "kubeconfig_sealed" }
    { Git "git_credentials" "secret_sealed", id "id", row "id", value "secret_sealed",
      set "secret_sealed = fresh.new", bound to "git_credentials" "secret_sealed" }
    { Config "platform_config" "sealed", id "id", row "id", value "sealed",
      set "sealed = fresh.new", bound to "platform_config" "sealed" }
    { Config "unit_config" "sealed", id "id", row "id", value "sealed",
      set "sealed = fresh.new", bound to "unit_config" "sealed" }
    { Sessions "jwt_secrets" "sealed", id "id", row "id", value "sealed",
      set "sealed = fresh.new", bound to "jwt_secrets" "sealed" }
    { Issuer "issuer_keys" "private_sealed", id "id", row "id", value "private_sealed",
      set "private_sealed = fresh.new", bound to "issuer_keys" "private_sealed" }
    { Git "tasks" "payload.login_sealed", id "id", row "subject_id", value "payload ->> 'login_sealed'",
      set "payload = jsonb_set(sealed_row.payload, '{login_sealed}', to_jsonb(fresh.new))",
      bound to "tasks" "payload" }
    { Git "finished_tasks" "payload.login_sealed", id "id", row "subject_id", value "payload ->> 'login_sealed'",
      set "payload = jsonb_set(sealed_row.payload, '{login_sealed}', to_jsonb(fresh.new))",
      bound to "tasks" "payload" }
}
