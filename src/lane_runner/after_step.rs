//! A callback that inspects the room after each step, before the next step starts.

use futures_util::future::BoxFuture;
use std::fmt;
use std::sync::Arc;

/// A callback that runs after each try of a step, with the name of the step. The lane waits for it.
#[derive(Clone)]
pub struct AfterStep(Arc<dyn Fn(String) -> BoxFuture<'static, ()> + Send + Sync>);

impl AfterStep {
    /// Creates the callback from a function.
    pub fn new(look: impl Fn(String) -> BoxFuture<'static, ()> + Send + Sync + 'static) -> Self {
        Self(Arc::new(look))
    }

    pub(super) async fn look(&self, step: &str) {
        (self.0)(step.to_owned()).await;
    }
}

impl fmt::Debug for AfterStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AfterStep")
    }
}
