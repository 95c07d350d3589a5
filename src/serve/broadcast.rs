//! News for all current listeners. A page uses them to know what to fetch again. They are not
//! stored; a listener that was too slow receives a reset.

use serde::Serialize;
use serde_json::Value;
use tokio::sync::broadcast::{self, Receiver, Sender, error::RecvError};

/// The number of news items that are buffered for slow listeners.
const KEPT: usize = 256;

/// The subject of a news item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Topic {
    /// A run began, progressed or ended.
    Run,
    /// The health of a monitor changed.
    Monitor,
    /// A job began or ended.
    Job,
    /// A run asks a question, or a question was answered.
    Confirmation,
    /// News items were missed: the listener must fetch everything again.
    Reset,
}

/// A news item in the form that clients receive.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ServerNews {
    /// The subject.
    #[serde(rename = "type")]
    pub topic: Topic,
    /// The details; null if none exist.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub data: Value,
}

/// The sender of news. Clones share their listeners.
#[derive(Debug, Clone)]
pub struct Broadcaster {
    all: Sender<ServerNews>,
}

impl Default for Broadcaster {
    fn default() -> Self {
        Self { all: broadcast::channel(KEPT).0 }
    }
}

impl Broadcaster {
    /// Sends a news item to all listeners. Having no listeners is not an error.
    pub fn ring(&self, topic: Topic, data: Value) {
        let _nobody_listens = self.all.send(ServerNews { topic, data });
    }

    /// Subscribes to news from now on.
    pub fn listen(&self) -> Subscription {
        Subscription { news: self.all.subscribe() }
    }

    /// Returns the number of listeners.
    pub fn listeners(&self) -> usize {
        self.all.receiver_count()
    }
}

/// A subscription to news.
#[derive(Debug)]
pub struct Subscription {
    news: Receiver<ServerNews>,
}

impl Subscription {
    /// Returns the next news item; `None` when the sender is gone. A listener that was too slow
    /// receives [`Topic::Reset`] in place of the missed items.
    pub async fn next_item(&mut self) -> Option<ServerNews> {
        match self.news.recv().await {
            Ok(news) => Some(news),
            Err(RecvError::Lagged(_)) => Some(ServerNews { topic: Topic::Reset, data: Value::Null }),
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
        let broadcaster = Broadcaster::default();
        broadcaster.ring(Topic::Run, json!({ "id": "before" }));
        let mut subscription = broadcaster.listen();
        (0..=KEPT).for_each(|number| broadcaster.ring(Topic::Job, json!({ "number": number })));
        let reset = subscription.next_item().await.unwrap();
        assert_eq!(serde_json::to_value(&reset).unwrap(), json!({ "type": "reset" }));
        let next = subscription.next_item().await.unwrap();
        assert_eq!(serde_json::to_value(&next).unwrap(), json!({ "type": "job", "data": { "number": 1 } }));
        assert_eq!(broadcaster.listeners(), 1);
        (0..KEPT - 1).for_each(|_| drop(subscription.news.try_recv()));
        drop(broadcaster);
        assert_eq!(subscription.next_item().await, None);
    }
}
