//! What happens, for all who listen now: small news by which a page knows what to fetch anew. Nothing is kept: whoever was too slow hears
//! that it was.

use serde::Serialize;
use serde_json::Value;
use tokio::sync::broadcast::{self, Receiver, Sender, error::RecvError};

/// News that are kept for slow listeners.
const KEPT: usize = 256;

/// What news are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Topic {
    /// A run has begun, goes on, or is over.
    Run,
    /// The health of a monitor is another one.
    Monitor,
    /// A job has begun or is over.
    Job,
    /// Somebody is asked, or has answered.
    Confirmation,
    /// News were missed: everything is to be fetched anew.
    Reset,
}

/// One of them, as it is sent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct News {
    /// What it is about.
    #[serde(rename = "type")]
    pub topic: Topic,
    /// What has happened; null where there is no more to say.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub data: Value,
}

/// Where news are told. Clones are the same one.
#[derive(Debug, Clone)]
pub struct Bell {
    all: Sender<News>,
}

impl Default for Bell {
    fn default() -> Self {
        Self { all: broadcast::channel(KEPT).0 }
    }
}

impl Bell {
    /// Tells all who listen. That nobody does is no failure.
    pub fn ring(&self, topic: Topic, data: Value) {
        let _nobody_listens = self.all.send(News { topic, data });
    }

    /// Listens from now on.
    pub fn listen(&self) -> Ear {
        Ear { news: self.all.subscribe() }
    }

    /// How many listen.
    pub fn listeners(&self) -> usize {
        self.all.receiver_count()
    }
}

/// Somebody who listens.
#[derive(Debug)]
pub struct Ear {
    news: Receiver<News>,
}

impl Ear {
    /// The next news; `None` when the bell is gone. Whoever was too slow hears [`Topic::Reset`] instead of what was missed.
    pub async fn hear(&mut self) -> Option<News> {
        match self.news.recv().await {
            Ok(news) => Some(news),
            Err(RecvError::Lagged(_)) => Some(News { topic: Topic::Reset, data: Value::Null }),
            Err(RecvError::Closed) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[tokio::test]
    async fn who_was_too_slow_hears_that_everything_is_to_be_fetched_anew() {
        let bell = Bell::default();
        bell.ring(Topic::Run, json!({ "id": "before" }));
        let mut ear = bell.listen();
        (0..=KEPT).for_each(|number| bell.ring(Topic::Job, json!({ "number": number })));
        let reset = ear.hear().await.unwrap();
        assert_eq!(serde_json::to_value(&reset).unwrap(), json!({ "type": "reset" }));
        let next = ear.hear().await.unwrap();
        assert_eq!(serde_json::to_value(&next).unwrap(), json!({ "type": "job", "data": { "number": 1 } }));
        assert_eq!(bell.listeners(), 1);
        (0..KEPT - 1).for_each(|_| drop(ear.news.try_recv()));
        drop(bell);
        assert_eq!(ear.hear().await, None);
    }
}
