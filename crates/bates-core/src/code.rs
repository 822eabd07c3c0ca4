//! The one table of errors: a stable code, and how each front end shows it. `docs/errors.md` is generated from it.
//! A code never changes its meaning; a new meaning is a new code.

use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ErrorCode(&'static Row);

#[derive(Debug, PartialEq, Eq, Hash)]
struct Row {
    name: &'static str,
    http_status: u16,
    resp_prefix: &'static str,
    exit_code: u8,
    may_burn: bool,
    meaning: &'static str,
    remedy: &'static str,
}

impl ErrorCode {
    pub const fn name(self) -> &'static str {
        self.0.name
    }

    pub const fn http_status(self) -> u16 {
        self.0.http_status
    }

    pub const fn resp_prefix(self) -> &'static str {
        self.0.resp_prefix
    }

    /// 1: the answer is negative; 2: the call is wrong; 3: something outside failed.
    pub const fn exit_code(self) -> u8 {
        self.0.exit_code
    }

    /// Whether a number may have been taken that no caller got. It is then a gap, and never comes again.
    pub const fn may_burn(self) -> bool {
        self.0.may_burn
    }

    pub const fn meaning(self) -> &'static str {
        self.0.meaning
    }

    pub const fn remedy(self) -> &'static str {
        self.0.remedy
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name)
    }
}

macro_rules! table {
    ($($constant:ident: $name:literal, $http:literal, $resp:literal, exit $exit:literal, burns $burns:literal,
        $meaning:literal, $remedy:literal;)*) => {
        impl ErrorCode {
            $(
                #[doc = $meaning]
                pub const $constant: Self = Self(&Row {
                    name: $name,
                    http_status: $http,
                    resp_prefix: $resp,
                    exit_code: $exit,
                    may_burn: $burns,
                    meaning: $meaning,
                    remedy: $remedy,
                });
            )*

            pub const ALL: &[Self] = &[$(Self::$constant),*];
        }
    };
}

table! {
    EXHAUSTED: "exhausted", 410, "ERR", exit 1, burns false,
        "The scope has no more numbers, or not as many as were asked for at once.",
        "Ask for fewer, or give the series a wider pattern under a new name.";
    HELD_ELSEWHERE: "held_elsewhere", 503, "ERR", exit 3, burns false,
        "The scope has no more to grant, and other nodes may still hold some of its last numbers.",
        "Try again, or ask another node; once they have given theirs out, the scope is exhausted.";
    ALL_REJECTED: "all_rejected", 410, "ERR", exit 1, burns false,
        "The rules of the series reject each of the next million positions.",
        "Loosen the rejection rules, or use a shuffled order.";
    BUSY: "busy", 503, "BUSY", exit 3, burns false,
        "The limit of callers that wait for this scope is reached.",
        "Try again in a moment; spread the load over scopes, or raise `waiters_max`.";
    TOO_MANY_SCOPES: "too_many_scopes", 429, "ERR", exit 3, burns false,
        "The series has reached its limit of scopes.",
        "Look for a client that makes scopes by mistake, or raise `scopes_max`.";
    STOPPING: "stopping", 503, "ERR", exit 3, burns false,
        "The numbering machine is stopping.",
        "Ask another node, or this one once it is open again.";
    STORE_UNAVAILABLE: "store_unavailable", 503, "ERR", exit 3, burns true,
        "The store cannot be written now: no space, or no connection.",
        "It recovers by itself once the cause is gone; free space, and check the store.";
    STORE_POISONED: "store_poisoned", 503, "ERR", exit 3, burns true,
        "The store cannot be trusted: a write may or may not be on disk, or the database was restored, failed over or moved. Nothing is issued.",
        "The error says which. After a failed write, check the disk and open the store again; after a restore, raise the cursors with bates floor and accept the database.";
    BAD_SCOPE: "bad_scope", 422, "ERR", exit 2, burns false,
        "The parameters are not those of the series, or a value breaks its rule.",
        "Give each parameter of the series once, with a value that its rule allows.";
    NO_SINK: "no_sink", 409, "ERR", exit 2, burns false,
        "The series has no sink, so its documents could not be delivered.",
        "Give the series a sink where it is described, or reserve a number and save the document yourself.";
    NO_POOL: "no_pool", 404, "ERR", exit 2, burns false,
        "The configuration gives the series no shared pool, or the scope cannot have one.",
        "Give the series a pool in the configuration; a value in the key of a pool holds letters, digits and _ - . : @.";
    POOL_ELSEWHERE: "pool_elsewhere", 409, "ERR", exit 3, burns false,
        "The Redis server that the caller sees is not the one that Bates sees.",
        "Ask Bates for numbers meanwhile; check that both use the address of the same server.";
    POOL_UNAVAILABLE: "pool_unavailable", 503, "ERR", exit 3, burns false,
        "The Redis server of the pool cannot be asked now, or the pool cannot be filled.",
        "Ask Bates for numbers meanwhile; it recovers by itself once Redis is back.";
    KEY_REUSED: "key_reused", 422, "ERR", exit 2, burns false,
        "The idempotency key was used in this series for another request.",
        "Use a new key for a new request; the same key only for the same request.";
    NOT_REPEATABLE: "not_repeatable", 422, "ERR", exit 2, burns false,
        "The request has an Idempotency-Key, but takes numbers without a document: repeated, it would get other numbers.",
        "Reserve the number with `POST /v1/series/{series}/reservations`, or send the document; both answer a repeated key with the same number. Or send no key.";
    BAD_DOCUMENT: "bad_document", 422, "ERR", exit 2, burns false,
        "The document is missing, is not JSON, or is too large.",
        "Send `{\"scope\": {…}, \"document\": {…}}`, a document of at most 1 MiB.";
    NOT_UNIQUE: "not_unique", 409, "ERR", exit 2, burns false,
        "The series is ordered or gapless: its numbers cannot be held in advance.",
        "Take them one by one, or use a `unique` series where the order does not matter.";
    UNKNOWN_LEASE: "unknown_lease", 404, "ERR", exit 1, burns false,
        "There is no lease with this id, or it has ended before.",
        "Do nothing: the lease was settled before, or never existed.";
    NOT_OF_LEASE: "not_of_lease", 422, "ERR", exit 2, burns false,
        "A range that was returned is not wholly within the lease. The lease stays open.",
        "Return only positions of the lease that were not used; the message names its ranges.";
    UNKNOWN_DOCUMENT: "unknown_document", 404, "ERR", exit 1, burns false,
        "There is no document or reservation with this number or id, or it was removed after its retention.",
        "Look it up by the number or the event id that was answered when it was numbered.";
    UNKNOWN_TOKEN: "unknown_token", 404, "ERR", exit 1, burns false,
        "The store has no token of this name that the caller may see.",
        "List the tokens; a token of the configuration file is changed there.";
    TOKEN_EXISTS: "token_exists", 409, "ERR", exit 2, burns false,
        "There is a token of this name already, or it was changed at the same time.",
        "Choose another name, or rotate or revoke the token.";
    BAD_TOKEN: "bad_token", 422, "ERR", exit 2, burns false,
        "The description of a token is invalid, or gives rights that the caller does not have.",
        "Correct what the message names.";
    TOO_MANY_POOLS: "too_many_pools", 429, "ERR", exit 3, burns false,
        "The series has as many shared pools as its operator allows.",
        "Use the pools that it has, or take numbers from Bates itself; the operator can raise lists_max.";
    TOO_MANY_TOKENS: "too_many_tokens", 429, "ERR", exit 2, burns false,
        "The store has as many tokens as it may have.",
        "Revoke tokens that are not used.";
    RATE_EXCEEDED: "rate_exceeded", 429, "BUSY", exit 3, burns false,
        "The caller takes numbers faster than the rate of its token, or makes more than 300 changes at once, or has used its quota of the day.",
        "Wait as long as Retry-After says, or raise the rate or quota of the token.";
    AMBIGUOUS_NUMBER: "ambiguous_number", 409, "ERR", exit 2, burns false,
        "Several documents have this number, in scopes that the pattern does not show.",
        "Ask by the event id, or name the series.";
    WRONG_STATE: "wrong_state", 409, "ERR", exit 1, burns false,
        "The document or reservation is in a state in which this cannot be decided.",
        "Look at its state; a reservation is confirmed or voided once, and before its deadline.";
    DELIVERY_UNDER_WAY: "delivery_under_way", 409, "ERR", exit 1, burns false,
        "The document is being delivered: the sink may take it, so it cannot be abandoned now.",
        "Try again when the delivery has ended; the message says when its claim ends at the latest.";
    BAD_DATE: "bad_date", 422, "ERR", exit 2, burns false,
        "The business date is not a date, or the pattern cannot show it.",
        "Write it as YYYY-MM-DD.";
    BAD_COUNT: "bad_count", 422, "ERR", exit 2, burns false,
        "The count is not a whole number from 1 to the limit, or more than the rate of the caller has in an hour or its quota in a day.",
        "Ask for fewer at a time.";
    BAD_KEY: "bad_key", 422, "ERR", exit 2, burns false,
        "No series has a key like this one.",
        "Compare the key with the `key` of the series: `GET /v1/series` shows them.";
    NOT_A_COUNT: "not_a_count", 422, "WRONGTYPE", exit 2, burns false,
        "The numbers of this series are texts and cannot be counted up.",
        "Use `LPOP` instead of `INCR`.";
    BAD_ARGUMENTS: "bad_arguments", 422, "ERR", exit 2, burns false,
        "The command has too few arguments, too many, or one that cannot be read.",
        "Compare the call with the documentation.";
    BAD_REQUEST: "bad_request", 400, "ERR", exit 2, burns false,
        "The request cannot be read: it is not JSON, or nested too deeply.",
        "Send one JSON object as the documentation shows it.";
    BAD_BODY: "bad_body", 422, "ERR", exit 2, burns false,
        "The body is not UTF-8, or has a field that is not known, is missing, or is of the wrong kind.",
        "Compare the body with `/docs`.";
    TOO_LARGE: "too_large", 413, "ERR", exit 2, burns false,
        "The body is larger than the limit.",
        "Send less at a time.";
    BAD_NAME: "bad_name", 422, "ERR", exit 2, burns false,
        "The name is not valid for a series, or the path is not UTF-8.",
        "A name is a lower-case letter, then up to 63 of a-z, 0-9, _, - and single dots.";
    CROSS_ORIGIN: "cross_origin", 403, "ERR", exit 2, burns false,
        "A page of another site made a browser send this request.",
        "Call the server from a program, or from a page that it serves itself.";
    UNKNOWN_HOST: "unknown_host", 403, "ERR", exit 2, burns false,
        "A request without a secret named the server by a host name that it does not know.",
        "Call it as localhost, add the name to `hosts`, or set a secret.";
    FORBIDDEN: "forbidden", 403, "NOPERM", exit 2, burns false,
        "The token of the caller lacks the right for this, or is limited to other series or scopes.",
        "Use another token, or let an operator add the right, the series or the scope to this one.";
    UNAUTHORIZED: "unauthorized", 401, "NOAUTH", exit 2, burns false,
        "The secret is missing or wrong.",
        "Send `Authorization: Bearer SECRET`, or `AUTH SECRET` in the Redis protocol.";
    TOO_MANY_REQUESTS: "too_many_requests", 429, "BUSY", exit 3, burns false,
        "Too many wrong secrets, or too many requests without a secret, came from the address of the caller. A secret was not checked.",
        "Wait as long as `Retry-After` says. Look for a program with an old secret; behind a proxy all callers have its address.";
    TOO_MANY_CONNECTIONS: "too_many_connections", 503, "BUSY", exit 3, burns false,
        "The server, or the address of the caller, has as many connections as it may.",
        "Close connections that are not used, or raise `connections_max` or `connections_per_address_max`.";
    OVERLOADED: "overloaded", 503, "BUSY", exit 3, burns false,
        "The memory for requests and answers that are under way, or for scopes, is used up.",
        "Try again in a moment; send less at a time, read answers, or raise `memory_max_mb` or `scopes_in_memory_max`.";
    NOT_FOUND: "not_found", 404, "ERR", exit 2, burns false,
        "Nothing is at this path.",
        "Compare the path with `/docs`.";
    METHOD_NOT_ALLOWED: "method_not_allowed", 405, "ERR", exit 2, burns false,
        "The path exists, but does not support this method.",
        "Compare the method with `/docs`.";
    UNKNOWN_SERIES: "unknown_series", 404, "ERR", exit 2, burns false,
        "There is no series with this name.",
        "Use a series that was opened or described; a server lists them with `GET /v1/series`.";
    UNKNOWN_SCOPE: "unknown_scope", 404, "ERR", exit 1, burns false,
        "The series never issued a number in this scope.",
        "Compare the parameters and the period with those of its scopes, which `GET /v1/series/{series}/scopes` lists.";
    UNKNOWN_ID: "unknown_id", 404, "ERR", exit 1, burns false,
        "The text is not an identifier of any series.",
        "`GET /v1/series/{series}/validate/{id}` gives the reasons.";
    BAD_SERIES: "bad_series", 422, "ERR", exit 2, burns false,
        "The description of the series cannot be kept: its pattern, key, start, rules or limits.",
        "The message names the field and the reason.";
    SERIES_EXISTS: "series_exists", 409, "ERR", exit 2, burns false,
        "A series of this name exists with another description.",
        "Choose another name; limits and rejection rules can be changed with PATCH.";
    SERIES_PINNED: "series_pinned", 409, "ERR", exit 2, burns false,
        "A series of this name had another pattern, parameters, order, start, reset or time zone before.",
        "Use the earlier settings, or choose another name: its numbers could come twice.";
    SERIES_IN_FILE: "series_in_file", 409, "ERR", exit 2, burns false,
        "The series is described in the configuration file and cannot be changed through the API.",
        "Change the file, and start the server again.";
    KEYS_MEET: "keys_meet", 409, "ERR", exit 2, burns false,
        "The key of the series could also be a key of another series.",
        "Give it another prefix.";
    TOO_MANY_SERIES: "too_many_series", 429, "ERR", exit 3, burns false,
        "The limit of series is reached.",
        "Use scopes of one series where the pattern is the same.";
    TOO_MANY_WORDS: "too_many_words", 429, "ERR", exit 3, burns false,
        "All series together would have more restricted words than the server keeps in memory.",
        "Restrict fewer words, or describe the series in the configuration file, which has no such limit.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_lower_case_words_and_unique() {
        for (at, code) in ErrorCode::ALL.iter().enumerate() {
            assert!(code.name().bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{code}");
            let mut earlier = ErrorCode::ALL[..at].iter();
            assert!(earlier.all(|other| other.name() != code.name()), "{code} is listed twice");
            assert!((400..600).contains(&code.http_status()) && (1..=3).contains(&code.exit_code()));
        }
    }

    #[test]
    fn only_a_failed_store_may_have_burned_a_number() {
        let burning = ErrorCode::ALL.iter().filter(|code| code.may_burn()).map(|code| code.name());
        assert_eq!(burning.collect::<Vec<_>>(), ["store_unavailable", "store_poisoned"]);
    }
}
