//! Running statements. Stores take `&impl Query`, so the same function serves a connection and a transaction.

use std::future::Future;

use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Row, Statement};

use super::{DbError, Param, PgMode};

/// Something that statements can be sent to.
pub trait Query: Sync {
    /// All rows.
    fn query(
        &self,
        sql: &str,
        params: &[&dyn Param],
    ) -> impl Future<Output = Result<Vec<Row>, DbError>> + Send;

    /// How many rows were touched.
    fn execute(&self, sql: &str, params: &[&dyn Param]) -> impl Future<Output = Result<u64, DbError>> + Send;

    /// The first row, if there is one.
    fn query_opt(
        &self,
        sql: &str,
        params: &[&dyn Param],
    ) -> impl Future<Output = Result<Option<Row>, DbError>> + Send {
        async move { Ok(self.query(sql, params).await?.into_iter().next()) }
    }

    /// The only row of a statement that always gives one.
    fn query_one(
        &self,
        sql: &str,
        params: &[&dyn Param],
    ) -> impl Future<Output = Result<Row, DbError>> + Send {
        async move {
            self.query_opt(sql, params)
                .await?
                .ok_or_else(|| DbError::Row("a statement that always gives a row gave none".into()))
        }
    }
}

/// A connection outside a transaction: each statement commits by itself.
pub struct Conn {
    pub(super) client: deadpool_postgres::Object,
    pub(super) mode: PgMode,
}

/// A transaction. Rolled back when dropped without `commit`.
pub struct Tx<'a> {
    tx: deadpool_postgres::Transaction<'a>,
    mode: PgMode,
}

impl Conn {
    /// Begins a transaction.
    pub async fn begin(&mut self) -> Result<Tx<'_>, DbError> {
        Ok(Tx { tx: self.client.transaction().await?, mode: self.mode })
    }

    /// Several statements without parameters: migrations and tests only.
    pub async fn batch(&self, sql: &str) -> Result<(), DbError> {
        Ok(self.client.batch_execute(sql).await?)
    }
}

impl Tx<'_> {
    /// Makes everything since `begin` durable.
    pub async fn commit(self) -> Result<(), DbError> {
        Ok(self.tx.commit().await?)
    }

    /// Several statements without parameters: migrations and tests only.
    pub async fn batch(&self, sql: &str) -> Result<(), DbError> {
        Ok(self.tx.batch_execute(sql).await?)
    }
}

fn types(params: &[&dyn Param]) -> Vec<Type> {
    params.iter().map(|param| param.pg_type()).collect()
}

fn typed<'p>(params: &[&'p dyn Param]) -> Vec<(&'p (dyn ToSql + Sync), Type)> {
    params.iter().map(|param| (*param as &(dyn ToSql + Sync), param.pg_type())).collect()
}

fn untyped<'p>(params: &[&'p dyn Param]) -> Vec<&'p (dyn ToSql + Sync)> {
    params.iter().map(|param| *param as &(dyn ToSql + Sync)).collect()
}

macro_rules! implement_query {
    ($target:ty, $field:ident) => {
        impl Query for $target {
            async fn query(&self, sql: &str, params: &[&dyn Param]) -> Result<Vec<Row>, DbError> {
                Ok(match self.mode {
                    PgMode::Direct => {
                        let statement: Statement =
                            self.$field.prepare_typed_cached(sql, &types(params)).await?;
                        self.$field.query(&statement, &untyped(params)).await?
                    }
                    PgMode::Pooled => self.$field.query_typed(sql, &typed(params)).await?,
                })
            }

            async fn execute(&self, sql: &str, params: &[&dyn Param]) -> Result<u64, DbError> {
                Ok(match self.mode {
                    PgMode::Direct => {
                        let statement: Statement =
                            self.$field.prepare_typed_cached(sql, &types(params)).await?;
                        self.$field.execute(&statement, &untyped(params)).await?
                    }
                    PgMode::Pooled => self.$field.execute_typed(sql, &typed(params)).await?,
                })
            }
        }
    };
}

implement_query!(Conn, client);
implement_query!(Tx<'_>, tx);
