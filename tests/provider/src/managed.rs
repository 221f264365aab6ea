//! What the resources here have in common, so that each file says only what is special about its own.

use std::collections::HashMap;

use async_trait::async_trait;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tf_provider::schema::{Attribute, AttributeConstraint, AttributeType, Block, Schema};
use tf_provider::value::{Value, ValueEmpty};
use tf_provider::{AttributePath, Diagnostics, Resource};

/// One kind of resource.
#[async_trait]
pub(crate) trait Kind: Send + Sync + 'static {
    /// Its attributes.
    type State: Serialize + DeserializeOwned + Send;

    /// The schema of the attributes.
    fn attributes(&self) -> HashMap<String, Attribute>;

    /// Marks what only the creation will tell.
    fn forget(&self, state: &mut Self::State);

    /// Attributes whose change needs a new resource.
    fn replacing(&self, _prior: &Self::State, _proposed: &Self::State) -> Vec<AttributePath> {
        Vec::new()
    }

    /// What is there now; `None` if it is gone.
    async fn read(&self, state: Self::State) -> Option<Self::State> {
        Some(state)
    }

    /// Makes it. With an error and a state, terraform keeps the state and calls the resource tainted.
    async fn create(&self, diags: &mut Diagnostics, planned: Self::State) -> Option<Self::State>;

    /// Changes it.
    async fn update(&self, _diags: &mut Diagnostics, planned: Self::State) -> Option<Self::State> {
        Some(planned)
    }

    /// Removes it.
    async fn destroy(&self, _diags: &mut Diagnostics, _state: Self::State) -> Option<()> {
        Some(())
    }
}

/// Makes a resource of a kind.
pub(crate) struct Managed<K>(pub(crate) K);

#[async_trait]
impl<K: Kind> Resource for Managed<K> {
    type State<'a> = K::State;
    type PrivateState<'a> = ValueEmpty;
    type ProviderMetaState<'a> = ValueEmpty;

    fn schema(&self, _: &mut Diagnostics) -> Option<Schema> {
        Some(schema(self.0.attributes()))
    }

    async fn read<'a>(
        &self,
        _: &mut Diagnostics,
        state: K::State,
        private: ValueEmpty,
        _: ValueEmpty,
    ) -> Option<(K::State, ValueEmpty)> {
        self.0.read(state).await.map(|state| (state, private))
    }

    async fn plan_create<'a>(
        &self,
        _: &mut Diagnostics,
        mut proposed: K::State,
        _: K::State,
        _: ValueEmpty,
    ) -> Option<(K::State, ValueEmpty)> {
        self.0.forget(&mut proposed);
        Some((proposed, Value::Null))
    }

    async fn plan_update<'a>(
        &self,
        _: &mut Diagnostics,
        prior: K::State,
        proposed: K::State,
        _: K::State,
        private: ValueEmpty,
        _: ValueEmpty,
    ) -> Option<(K::State, ValueEmpty, Vec<AttributePath>)> {
        let replacing = self.0.replacing(&prior, &proposed);
        Some((proposed, private, replacing))
    }

    async fn plan_destroy<'a>(
        &self,
        _: &mut Diagnostics,
        _: K::State,
        private: ValueEmpty,
        _: ValueEmpty,
    ) -> Option<ValueEmpty> {
        Some(private)
    }

    async fn create<'a>(
        &self,
        diags: &mut Diagnostics,
        planned: K::State,
        _: K::State,
        private: ValueEmpty,
        _: ValueEmpty,
    ) -> Option<(K::State, ValueEmpty)> {
        self.0.create(diags, planned).await.map(|state| (state, private))
    }

    async fn update<'a>(
        &self,
        diags: &mut Diagnostics,
        _: K::State,
        planned: K::State,
        _: K::State,
        private: ValueEmpty,
        _: ValueEmpty,
    ) -> Option<(K::State, ValueEmpty)> {
        self.0.update(diags, planned).await.map(|state| (state, private))
    }

    async fn destroy<'a>(
        &self,
        diags: &mut Diagnostics,
        state: K::State,
        _: ValueEmpty,
        _: ValueEmpty,
    ) -> Option<()> {
        self.0.destroy(diags, state).await
    }
}

/// A schema without blocks.
pub(crate) fn schema(attributes: HashMap<String, Attribute>) -> Schema {
    Schema { version: 1, block: Block { version: 1, attributes, ..Block::default() } }
}

/// An attribute that people must give.
pub(crate) fn given(attr_type: AttributeType) -> Attribute {
    Attribute { attr_type, constraint: AttributeConstraint::Required, ..Attribute::default() }
}

/// An attribute that people may give.
pub(crate) fn wished(attr_type: AttributeType) -> Attribute {
    Attribute { attr_type, constraint: AttributeConstraint::Optional, ..Attribute::default() }
}

/// An attribute that the provider tells.
pub(crate) fn told(attr_type: AttributeType) -> Attribute {
    Attribute { attr_type, constraint: AttributeConstraint::Computed, ..Attribute::default() }
}
