//! Somebody who looks at a room whenever a step has ended, before anything else starts because of that.

use futures_util::future::BoxFuture;
use std::fmt;
use std::sync::Arc;

/// What is called with the name of a step each time that a try of it has ended; the lane waits for it.
#[derive(Clone)]
pub struct AfterStep(Arc<dyn Fn(String) -> BoxFuture<'static, ()> + Send + Sync>);

impl AfterStep {
    /// One that does this.
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
