//! A filter for messages from a server. It passes answers, and passes requests of the server unless
//! too many replies are pending. It drops notifications.

use rmcp::RoleClient;
use rmcp::model::ServerJsonRpcMessage;
use rmcp::service::TxJsonRpcMessage;
use rmcp::transport::Transport;
use std::sync::Arc;

/// The number of messages that may wait to be sent before requests of the server are dropped.
const WAITING: usize = 64;

/// A connection with this filter.
#[derive(Debug)]
pub(super) struct FilteredTransport<T> {
    transport: T,
    /// The count of references minus one is the number of messages being sent.
    sending: Arc<()>,
}

impl<T> FilteredTransport<T> {
    pub(super) fn new(transport: T) -> Self {
        Self { transport, sending: Arc::new(()) }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for FilteredTransport<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        let (sending, sent) = (self.sending.clone(), self.transport.send(item));
        async move {
            let sent = sent.await;
            drop(sending);
            sent
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            match self.transport.receive().await? {
                ServerJsonRpcMessage::Notification(_) => {}
                // Otherwise, a server that sends requests and reads no replies would fill the
                // memory with replies.
                ServerJsonRpcMessage::Request(_) if Arc::strong_count(&self.sending) > WAITING => {}
                message => return Some(message),
            }
        }
    }

    async fn close(&mut self) -> Result<(), T::Error> {
        self.transport.close().await
    }
}
