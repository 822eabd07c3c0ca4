//! A series by its name, for those that have no key or need more than a key can say: what `BATES.NEXT`, `BATES.PEEK` and
//! `BATES.VALIDATE` share.

use bates_core::{By, Code, Machine, ScopeName, Store};
use bates_pattern::Date;

use super::super::session::Session;
use super::key::refuse;
use super::lpop::{self, LIST_MAX};
use super::{Call, Outcome, Reply, Request, peek, shown, validate, whole};

/// A question about a series that has to wait for the store.
pub(in super::super) struct NamedRequest {
    pub(super) series: Box<[u8]>,
    pub(super) parameters: Vec<(String, String)>,
    pub(super) date: Option<Date>,
    pub(super) action: NamedAction,
}

/// What a command does with its series.
pub(super) enum NamedAction {
    /// Takes one number, or a list of as many.
    Next(Option<u64>),
    /// Looks at a scope, which is not created.
    Peek,
    /// Judges a text.
    Validate(Box<[u8]>),
}

impl NamedAction {
    /// Reads `series [COUNT n] [DATE day] [name value …]`.
    pub(super) fn read<S: Store>(mut self, call: &mut Call<'_, S>) -> Outcome {
        let command = call.command;
        // The name of the command, the series, and pairs.
        if !command.arg_count().is_multiple_of(2) {
            call.wrong_arguments();
            return Outcome::Answered;
        }
        let text = |at: usize| String::from_utf8_lossy(command.arg(at).unwrap_or_default()).into_owned();
        let (mut parameters, mut date) = (Vec::new(), None);
        for at in (2..command.arg_count()).step_by(2) {
            let (name, value) = (text(at), text(at + 1));
            match (&*name.to_ascii_lowercase(), &mut self) {
                ("count", Self::Next(count)) => match whole(value.as_bytes()) {
                    Some(given @ 1..=LIST_MAX) => *count = Some(given),
                    _ => return call.refused(Code::BAD_COUNT, &format!("count is 1 to {LIST_MAX}")),
                },
                ("date", _) => match value.parse::<Date>().ok().filter(|date| date.to_string() == value) {
                    Some(day) => date = Some(day),
                    None => return call.refused(Code::BAD_DATE, "date is a day, YYYY-MM-DD"),
                },
                _ => parameters.push((name, value)),
            }
        }
        let series = command.arg(1).unwrap_or_default().into();
        Outcome::Later(Request::Named(NamedRequest { series, parameters, date, action: self }))
    }
}

impl NamedRequest {
    /// Waits for the store, and answers.
    pub(super) async fn answer<S: Store>(
        self,
        session: &Session,
        machine: &Machine<S>,
        output: &mut Vec<u8>,
    ) {
        let mut reply = Reply::new(output, session.protocol);
        let Some(entry) = machine.named_anywhere(&String::from_utf8_lossy(&self.series)).await else {
            let sentence = format_args!("there is no series \"{}\"", shown(&self.series));
            return refuse(&mut reply, Code::UNKNOWN_SERIES, sentence);
        };
        let parameters: Vec<(&str, &str)> =
            self.parameters.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let name = ScopeName { parameters: &parameters, date: self.date };
        let outcome = match self.action {
            NamedAction::Next(count) => {
                let by = By::resp(session.caller().who());
                let numbers = machine.next(&entry, name, count.unwrap_or(1), by).await;
                numbers.map(|numbers| lpop::answer(&mut reply, count, &numbers))
            }
            NamedAction::Peek => {
                machine.peek(&entry, name).await.map(|found| peek::answer(&mut reply, &found))
            }
            NamedAction::Validate(text) => return validate::answer(&mut reply, &entry, &text),
        };
        if let Err(error) = outcome {
            refuse(&mut reply, error.code(), &error);
        }
    }
}

impl<S: Store> Call<'_, S> {
    fn refused(&mut self, code: Code, sentence: &str) -> Outcome {
        refuse(&mut self.reply(), code, sentence);
        Outcome::Answered
    }
}
