//! `bates audit`: lists who took which numbers, when, and over which channel.

use bates_api::{AuditEntry, scope_text};
use clap::{Args, Subcommand};

use super::list::{self, ListArgs, PAGE};
use super::verify::VerifyArgs;
use crate::output::{Answer, Output, group_digits};

/// List who took which numbers of audited series, oldest first
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  \
    bates audit\n  \
    bates audit document project=PROJ type=9012\n  \
    bates audit --id PROJ-9012-1001\n  \
    bates audit document --who registry --since 2026-12-01 --until 2027-01-01\n  \
    bates audit document --csv > audit.csv\n  \
    bates audit verify",
    args_conflicts_with_subcommands = true
)]
pub(crate) struct AuditArgs {
    #[command(subcommand)]
    command: Option<AuditCommand>,

    /// Only the entry that contains this number
    #[arg(long)]
    id: Option<String>,

    /// Only entries of this caller: a token, an address, or "pool" and the key of a list
    #[arg(long)]
    who: Option<String>,

    /// Only entries from this time on; a date means its start in UTC
    #[arg(long, value_name = "TIME")]
    since: Option<String>,

    /// Only entries before this time; a date means its start in UTC
    #[arg(long, value_name = "TIME")]
    until: Option<String>,

    /// Stop after this many entries
    #[arg(long, value_name = "COUNT")]
    limit: Option<usize>,

    #[command(flatten)]
    list: ListArgs,
}

#[derive(Debug, Subcommand)]
enum AuditCommand {
    Verify(VerifyArgs),
}

impl AuditArgs {
    pub(crate) async fn run(&self, out: &mut Output) -> anyhow::Result<Answer> {
        if let Some(AuditCommand::Verify(args)) = &self.command {
            return args.run(out).await;
        }
        let ListArgs { series, parameters, period, server, .. } = &self.list;
        let entries = server.client()?.audit().page(self.limit.unwrap_or(PAGE).min(PAGE));
        let Self { id, who, since, until, .. } = self;
        let names = ["series", "period", "id", "who", "since", "until"];
        let filters = names.into_iter().zip([series, period, id, who, since, until]);
        let mut entries = list::add_filters(entries, filters, parameters)?;
        let format = self.list.format(AuditEntry::CSV_HEADER, AuditEntry::csv_row);
        let heads = ["AT", "WHO", "HOW", "SERIES", "SCOPE", "FIRST", "LAST", "COUNT"];
        list::print(out, &mut entries, self.limit, format, heads, |entry| vec![row(entry)]).await?;
        Ok(Answer::Yes)
    }
}

fn row(entry: AuditEntry) -> [String; 8] {
    let scope = scope_text(&entry.scope, entry.period.as_deref());
    let AuditEntry { at, who, how, series, first, last, count, .. } = entry;
    [at, who, how, series, scope, first, last, group_digits(count)]
}
