//! Lets through what is waited for: answers, and questions of the server as far as they are few. News are not listened to.

use rmcp::RoleClient;
use rmcp::model::ServerJsonRpcMessage;
use rmcp::service::TxJsonRpcMessage;
use rmcp::transport::Transport;
use std::sync::Arc;

/// Messages that may wait to be sent while the server asks something.
const WAITING: usize = 64;

/// A connection through which only that comes.
#[derive(Debug)]
pub(super) struct Sieve<T> {
    transport: T,
    /// One for each message on its way.
    sending: Arc<()>,
}

impl<T> Sieve<T> {
    pub(super) fn new(transport: T) -> Self {
        Self { transport, sending: Arc::new(()) }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Sieve<T> {
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
                // A server that asks and never listens would fill the memory with answers.
                ServerJsonRpcMessage::Request(_) if Arc::strong_count(&self.sending) > WAITING => {}
                message => return Some(message),
            }
        }
    }

    async fn close(&mut self) -> Result<(), T::Error> {
        self.transport.close().await
    }
}
