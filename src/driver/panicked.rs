//! The end of a run whose driver panicked: fledge kills all processes and still writes the report.

use super::drive::RunDrive;
use super::inbox::{Heed, InboxItem};
use crate::run::{Event, StateName};
use crate::verdict::Reason;

impl RunDrive<'_> {
    /// Kills all processes and ends the run with a report.
    pub(super) async fn after_panic(&mut self) {
        crate::process::kill_everything();
        self.end_after_panic().await;
    }

    /// Ends the run. If it was already reporting, answers that had arrived count.
    pub(super) async fn end_after_panic(&mut self) {
        let late = self.inbox.abort().await;
        if self.run.state() == StateName::Reporting {
            for event in late.into_iter().flat_map(|event| self.redactor.redact_event(event)).collect::<Vec<_>>() {
                self.decide_and_tell(event).await;
            }
            self.answer_lost().await;
        } else {
            self.decide_and_tell(Event::LimitReached { reason: Reason::Internal }).await;
        }
        while self.run.state() == StateName::Reporting {
            let InboxItem::Event(event) = self.inbox.next(None, self.stop, Heed::default()).await else { return };
            self.decide_and_tell(event).await;
        }
    }

    /// Answers for a delivery or a report that was shut down.
    async fn answer_lost(&mut self) {
        let (lost, is_delivery) = (self.inbox.is_empty(), self.run.label() == "Delivering");
        let message = || Reason::Internal.row().meaning.to_owned();
        for call in self.run.awaited().into_iter().filter(|_| lost) {
            self.decide_and_tell(match is_delivery {
                true => Event::Delivered { call, result: Err(message()), ways: None },
                false => Event::ReportFailed { call, message: message() },
            })
            .await;
        }
    }

    /// Decides and acts without the journal.
    async fn decide_and_tell(&mut self, event: Event) {
        if let Event::ReportFailed { .. } = event {
            self.effects.replace_report(&event, &self.run, true);
        }
        let actions = self.run.handle(self.moment(), event);
        self.perform(actions, false).await;
    }
}
