//! Commands that need the store. `INCR`, `INCRBY`, `LPOP`, `RPOP`, `GET`, `LLEN`, `EXISTS` and `TYPE` name a scope by its
//! key; `BATES.NEXT`, `BATES.PEEK` and `BATES.VALIDATE` by its series and parameters.

use std::fmt::Display;
use std::sync::Arc;

use bates_core::{
    Actor, AllowanceError, Denial, ErrorCode, Machine, NextError, Numbers, Peek, Right, ScopeParams,
    SeriesEntry, Store,
};

use super::super::session::Session;
use super::lpop::{self, LIST_MAX};
use super::mget::Keys;
use super::target::Target;
use super::{Call, Outcome, Reply, incr, parse_count, printable, validate};
use crate::access::Caller;
use crate::defense::{COUNTED_ANSWER_MIN, answer_bytes};

pub(in super::super) enum Request {
    /// `MGET`.
    Counters(Keys),
    /// All others.
    Scope(ScopeRequest),
}

/// About one scope, or one series.
pub(in super::super) struct ScopeRequest {
    target: Target,
    action: Action,
    /// What the caller needs for the series; the table of commands sets it.
    right: Option<Right>,
}

pub(super) enum Action {
    /// Takes this many numbers, and answers with the last one.
    Take(u64),
    /// Takes one number, or a list of this many.
    Pop(Option<u64>),
    /// Shows the state of the scope, and never creates it.
    Inspect(fn(&mut Reply<'_>, &SeriesEntry, &Peek)),
    Validate(Box<[u8]>),
}

impl<'c> Call<'c> {
    /// The key. If it is not UTF-8, no series has it, and the error is answered.
    pub(super) fn key(&mut self) -> Option<&'c str> {
        let key = self.command.arg(1).unwrap_or_default();
        let text = std::str::from_utf8(key).ok();
        if text.is_none() {
            refuse_key(&mut self.reply(), key);
        }
        text
    }

    fn refuse(&mut self, code: ErrorCode, sentence: &str) -> Outcome {
        refuse(&mut self.reply(), code, sentence);
        Outcome::Answered
    }
}

impl Action {
    pub(super) fn defer(self, key: &str) -> Outcome {
        self.defer_of(Target::Key(key.into()))
    }

    fn defer_of(self, target: Target) -> Outcome {
        Outcome::Deferred(Request::Scope(ScopeRequest { target, action: self, right: None }))
    }

    /// Of a key that this node does not know. One that another caller may have is answered at once, as if it were known.
    pub(super) fn defer_unknown(self, key: &str, call: &mut Call<'_>) -> Outcome {
        if call.session.caller().permissions().owns_key(key) {
            return self.defer(key);
        }
        refuse_key(&mut call.reply(), key.as_bytes());
        Outcome::Answered
    }

    pub(super) fn defer_by_key(self, call: &mut Call<'_>) -> Outcome {
        call.key().map_or(Outcome::Answered, |key| self.defer(key))
    }

    /// Parses `series [COUNT n] [DATE day] [name value …]`; a command that validates has no further arguments.
    pub(super) fn defer_by_series(mut self, call: &mut Call<'_>) -> Outcome {
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
                ("count", Self::Pop(count)) => match parse_count(value.as_bytes()) {
                    Some(given @ 1..=LIST_MAX) => *count = Some(given),
                    _ => return call.refuse(ErrorCode::BAD_COUNT, &format!("count is 1 to {LIST_MAX}")),
                },
                ("date", _) => match value.parse() {
                    Ok(day) => date = Some(day),
                    Err(_) => return call.refuse(ErrorCode::BAD_DATE, "date is a day, YYYY-MM-DD"),
                },
                _ => parameters.push((name, value)),
            }
        }
        let name = command.arg(1).unwrap_or_default().into();
        let is_whole = matches!(self, Self::Validate(_));
        let target = Target::Series { name, parameters, date, is_whole };
        self.defer_of(target)
    }
}

impl Request {
    pub(super) fn needs(self, right: Option<Right>) -> Self {
        match self {
            Self::Scope(request) => Self::Scope(ScopeRequest { right, ..request }),
            Self::Counters(keys) => Self::Counters(keys),
        }
    }

    /// What making the answer holds.
    pub(in super::super) fn answer_bytes<S: Store>(&self, session: &Session, machine: &Machine<S>) -> usize {
        match self {
            Self::Scope(request) => request.answer_bytes(session, machine),
            // Some kilobytes.
            Self::Counters(_) => 0,
        }
    }

    pub(in super::super) async fn answer<S: Store>(
        self,
        session: &Session,
        machine: &Machine<S>,
        out: &mut Vec<u8>,
    ) {
        match self {
            Self::Scope(request) => request.answer(session, machine, out).await,
            Self::Counters(keys) => keys.answer(session, machine, out).await,
        }
    }
}

impl ScopeRequest {
    fn answer_bytes<S: Store>(&self, session: &Session, machine: &Machine<S>) -> usize {
        let Action::Pop(Some(count @ COUNTED_ANSWER_MIN..)) = self.action else { return 0 };
        // A series that is not known here has no numbers in memory. One of another caller counts as if it were not known.
        let may_use = |entry: &Arc<SeriesEntry>| {
            self.right.is_none_or(|right| self.target.check(session, right, entry).is_ok())
        };
        let number_bytes_max = self.target.known(machine).filter(may_use).and_then(|entry| {
            let parameters = self.target.parameters(&entry);
            let params = ScopeParams { parameters: &parameters, date: self.target.date() };
            machine.number_bytes_max(&entry, params).ok()
        });
        answer_bytes(count, number_bytes_max.unwrap_or(0))
    }

    async fn answer<S: Store>(self, session: &Session, machine: &Machine<S>, out: &mut Vec<u8>) {
        let Self { target, action, right } = self;
        let mut reply = Reply::new(out, session.protocol);
        let permissions = session.caller().permissions();
        let Some(entry) = target.find(permissions, right, machine).await else {
            return target.refuse(&mut reply);
        };
        if let Some(right) = right
            && let Err(denial) = target.check(session, right, &entry)
        {
            return target.deny(&mut reply, &denial);
        }
        let params = ScopeParams { parameters: &target.parameters(&entry), date: target.date() };
        if let Err(Refusal { code, sentence }) =
            action.run(&mut reply, session.caller(), machine, &entry, params).await
        {
            refuse(&mut reply, code, sentence);
        }
    }
}

impl Action {
    async fn run<S: Store>(
        self,
        reply: &mut Reply<'_>,
        caller: &Caller,
        machine: &Machine<S>,
        entry: &SeriesEntry,
        params: ScopeParams<'_>,
    ) -> Result<(), Refusal> {
        let actor = Actor::resp(caller.name());
        match self {
            Self::Take(_) if !entry.numbers_are_positions() => refuse_increment(reply, entry),
            // All or none: the answer is only the last number.
            Self::Take(count) => {
                let take = async {
                    check_valid(caller)?;
                    Ok::<_, Refusal>(machine.take(entry, params, count, actor).await?)
                };
                let taken = caller.take_within_allowance(machine, count, take, |_| count).await;
                incr::answer(reply, &taken?);
            }
            Self::Pop(count) => {
                let wanted = count.unwrap_or(1);
                let take = async {
                    check_valid(caller)?;
                    Ok::<_, Refusal>(machine.next(entry, params, wanted, actor).await?)
                };
                let got = |numbers: &Numbers| numbers.len() as u64;
                let numbers = caller.take_within_allowance(machine, wanted, take, got).await;
                lpop::answer(reply, count, &numbers?);
            }
            Self::Inspect(answer) => answer(reply, entry, &machine.peek(entry, params).await?),
            Self::Validate(text) => validate::answer(reply, entry, &text),
        }
        Ok(())
    }
}

/// The caller's secret may have ended while the request waited for the store.
fn check_valid(caller: &Caller) -> Result<(), Refusal> {
    if !caller.has_ended() {
        return Ok(());
    }
    let sentence = "the secret of this connection was revoked, replaced or has expired".to_owned();
    Err(Refusal { code: ErrorCode::UNAUTHORIZED, sentence })
}

/// Why a command was refused.
struct Refusal {
    code: ErrorCode,
    sentence: String,
}

impl From<NextError> for Refusal {
    fn from(error: NextError) -> Self {
        Self { code: error.code(), sentence: error.to_string() }
    }
}

impl From<AllowanceError> for Refusal {
    fn from(error: AllowanceError) -> Self {
        Self { code: error.code(), sentence: error.to_string() }
    }
}

pub(super) fn refuse(reply: &mut Reply<'_>, code: ErrorCode, sentence: impl Display) {
    reply.error(code.resp_prefix(), format_args!("{code}: {sentence}"));
}

/// A key of a series that the caller may not read is answered as one that no series has.
pub(super) fn deny_key(reply: &mut Reply<'_>, key: &str, denial: &Denial) {
    match denial {
        Denial::UnseenSeries(_) => refuse_key(reply, key.as_bytes()),
        denial => refuse(reply, denial.code(), denial),
    }
}

pub(super) fn refuse_key(reply: &mut Reply<'_>, key: &[u8]) {
    refuse(reply, ErrorCode::BAD_KEY, format_args!("no series has a key like \"{}\"", printable(key)));
}

pub(super) fn refuse_increment(reply: &mut Reply<'_>, entry: &SeriesEntry) {
    let name = entry.series().name();
    let sentence = format!("series \"{name}\" gives texts, which cannot be incremented: use LPOP");
    refuse(reply, ErrorCode::NOT_A_COUNT, sentence);
}
