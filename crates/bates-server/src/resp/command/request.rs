//! Commands about a scope, which wait for the store. `INCR`, `INCRBY`, `LPOP`, `RPOP`, `GET`, `LLEN`, `EXISTS` and `TYPE`
//! name it by its key; `BATES.NEXT`, `BATES.PEEK` and `BATES.VALIDATE` by its series, where a key cannot say enough.

use std::fmt::Display;
use std::sync::Arc;

use bates_api::Day;
use bates_core::{Actor, ErrorCode, Machine, Peek, ScopeParams, SeriesEntry, Store};

use super::super::session::Session;
use super::lpop::{self, LIST_MAX};
use super::{Call, Outcome, Reply, incr, shown, validate, whole};

pub(in super::super) struct Request {
    target: Target,
    action: Action,
}

enum Target {
    Key(Box<str>),
    Series { name: Box<[u8]>, parameters: Vec<(String, String)>, date: Option<Day> },
}

/// What a command does with its scope.
pub(super) enum Action {
    /// Takes as many numbers, and answers with the last one.
    Take(u64),
    /// Takes one number, or a list of as many.
    Pop(Option<u64>),
    /// Looks at the scope, which is not created.
    Look(fn(&mut Reply<'_>, &SeriesEntry, &Peek)),
    Validate(Box<[u8]>),
}

impl<'c> Call<'c> {
    /// The key. `None`: it is not UTF-8 and so the key of no series, which is answered.
    pub(super) fn key(&mut self) -> Option<&'c str> {
        let key = self.command.arg(1).unwrap_or_default();
        let text = std::str::from_utf8(key).ok();
        if text.is_none() {
            no_such_key(&mut self.reply(), key);
        }
        text
    }

    fn refused(&mut self, code: ErrorCode, sentence: &str) -> Outcome {
        refuse(&mut self.reply(), code, sentence);
        Outcome::Answered
    }
}

impl Action {
    pub(super) fn later(self, key: &str) -> Outcome {
        Outcome::Later(Request { target: Target::Key(key.into()), action: self })
    }

    pub(super) fn by_key(self, call: &mut Call<'_>) -> Outcome {
        call.key().map_or(Outcome::Answered, |key| self.later(key))
    }

    /// Reads `series [COUNT n] [DATE day] [name value …]`; behind a text that is judged, nothing.
    pub(super) fn by_series(mut self, call: &mut Call<'_>) -> Outcome {
        let command = call.command;
        let end = if matches!(self, Self::Validate(_)) { 2 } else { command.arg_count() };
        // The name of the command, the series, and pairs.
        if !end.is_multiple_of(2) {
            return call.wrong_arguments();
        }
        let text = |at: usize| String::from_utf8_lossy(command.arg(at).unwrap_or_default()).into_owned();
        let (mut parameters, mut date) = (Vec::new(), None);
        for at in (2..end).step_by(2) {
            let (name, value) = (text(at), text(at + 1));
            match (&*name.to_ascii_lowercase(), &mut self) {
                ("count", Self::Pop(count)) => match whole(value.as_bytes()) {
                    Some(given @ 1..=LIST_MAX) => *count = Some(given),
                    _ => return call.refused(ErrorCode::BAD_COUNT, &format!("count is 1 to {LIST_MAX}")),
                },
                ("date", _) => match value.parse() {
                    Ok(day) => date = Some(day),
                    Err(_) => return call.refused(ErrorCode::BAD_DATE, "date is a day, YYYY-MM-DD"),
                },
                _ => parameters.push((name, value)),
            }
        }
        let name = command.arg(1).unwrap_or_default().into();
        Outcome::Later(Request { target: Target::Series { name, parameters, date }, action: self })
    }
}

impl Target {
    /// The series, also if another node has created it just now.
    async fn find<S: Store>(&self, machine: &Machine<S>) -> Option<Arc<SeriesEntry>> {
        match self {
            Self::Series { name, .. } => machine.series_or_sync(&String::from_utf8_lossy(name)).await,
            Self::Key(key) => {
                if let Some(entry) = machine.series_by_key(key) {
                    return Some(entry);
                }
                // A store that cannot be asked knows no more than this node. Others may have followed meanwhile.
                let _ = machine.sync_series().await;
                machine.series_by_key(key)
            }
        }
    }

    fn refuse(&self, reply: &mut Reply<'_>) {
        match self {
            Self::Key(key) => no_such_key(reply, key.as_bytes()),
            Self::Series { name, .. } => {
                let sentence = format_args!("there is no series \"{}\"", shown(name));
                refuse(reply, ErrorCode::UNKNOWN_SERIES, sentence);
            }
        }
    }

    fn parameters<'t>(&'t self, entry: &'t SeriesEntry) -> Vec<(&'t str, &'t str)> {
        match self {
            Self::Key(key) => {
                let pairs = entry.key().and_then(|template| template.read(key));
                pairs.map(Iterator::collect).unwrap_or_default()
            }
            Self::Series { parameters, .. } => {
                parameters.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
            }
        }
    }
}

impl Request {
    pub(in super::super) async fn answer<S: Store>(
        self,
        session: &Session,
        machine: &Machine<S>,
        output: &mut Vec<u8>,
    ) {
        let Self { target, action } = self;
        let mut reply = Reply::new(output, session.protocol);
        let Some(entry) = target.find(machine).await else { return target.refuse(&mut reply) };
        let date = if let Target::Series { date, .. } = target { date.map(Day::date) } else { None };
        let name = ScopeParams { parameters: &target.parameters(&entry), date };
        let by = Actor::resp(session.caller().name());
        let outcome = match action {
            Action::Take(_) if !entry.is_plain_count() => return not_a_count(&mut reply, &entry),
            // All or none: an addition that was made in part could not be answered.
            Action::Take(count) => {
                machine.take(&entry, name, count, by).await.map(|taken| incr::answer(&mut reply, &taken))
            }
            Action::Pop(count) => {
                let numbers = machine.next(&entry, name, count.unwrap_or(1), by).await;
                numbers.map(|numbers| lpop::answer(&mut reply, count, &numbers))
            }
            Action::Look(answer) => {
                machine.peek(&entry, name).await.map(|peek| answer(&mut reply, &entry, &peek))
            }
            Action::Validate(text) => return validate::answer(&mut reply, &entry, &text),
        };
        if let Err(error) = outcome {
            refuse(&mut reply, error.code(), &error);
        }
    }
}

/// A prefix that programs look at, the stable code, and the sentence.
pub(super) fn refuse(reply: &mut Reply<'_>, code: ErrorCode, sentence: impl Display) {
    reply.error(code.resp_prefix(), format_args!("{code}: {sentence}"));
}

fn no_such_key(reply: &mut Reply<'_>, key: &[u8]) {
    refuse(reply, ErrorCode::BAD_KEY, format_args!("no series has a key like \"{}\"", shown(key)));
}

pub(super) fn not_a_count(reply: &mut Reply<'_>, entry: &SeriesEntry) {
    let name = entry.series().name();
    let sentence = format_args!("series \"{name}\" gives texts, which cannot be counted up: use LPOP");
    refuse(reply, ErrorCode::NOT_A_COUNT, sentence);
}
