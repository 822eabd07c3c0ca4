//! The keys of a pool in Redis, and the Lua scripts on them. Scripts that change a list compare the run and replication
//! ids of the server, and those of the lock its run id: they change with a restart or a failover, and lists may be old then.

use redis::Cmd;

/// The Redis keys of a pool. The others contain the key of the list as a hash tag, so a cluster keeps all in one slot.
pub(crate) struct Keys<'k> {
    pub(crate) list: &'k str,
    /// A hash: the epoch, the fence of the last push, the first position past all pushed ones (`to`), and the store.
    pub(crate) marker: String,
    /// The run id of the server, and the token of the filler that has the lock.
    pub(crate) lock: String,
    /// Where the list is while numbers are appended; exists only within a transaction.
    pub(crate) stage: String,
}

impl<'k> Keys<'k> {
    pub(crate) fn of(list: &'k str) -> Self {
        let marker = bates_api::marker_key(list);
        Self { list, lock: format!("{marker}:lock"), stage: format!("{marker}:stage"), marker }
    }
}

/// Sent as text, not by digest: an unknown digest would fail, and Redis would still run the commands after it.
pub(crate) fn script(text: &str, keys: &[&str]) -> Cmd {
    let mut command = redis::cmd("EVAL");
    command.arg(text).arg(keys.len()).arg(keys);
    command
}

/// Begins a push. Keys: list, marker, stage, lock. Arguments: epoch, run, replication, fence, from, to, token, store.
///
/// Moves the marker and renames the list to the stage, to which the commands that follow append; after a refusal there is no
/// stage. The marker is written first: if Redis has no memory left, that fails and nothing has changed. A list that an
/// earlier push left on the stage is moved back before all else.
pub(crate) const OPEN: &str = "
if redis.call('EXISTS', KEYS[1]) == 0 and redis.call('EXISTS', KEYS[3]) == 1 then
  redis.call('RENAME', KEYS[3], KEYS[1])
end
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
local replication = string.match(redis.call('INFO', 'replication'), 'master_replid:(%w+)')
if run ~= ARGV[2] or replication ~= ARGV[3] then return {'server', run, replication} end
local marker = redis.call('HMGET', KEYS[2], 'epoch', 'fence', 'to', 'store')
if marker[4] and marker[4] ~= ARGV[8] then return {'foreign'} end
if not marker[4] then return {'epoch', ''} end
if marker[1] ~= ARGV[1] then return {'epoch', marker[1] or ''} end
local kind = redis.call('TYPE', KEYS[1])['ok']
if kind ~= 'list' and kind ~= 'none' then return {'type'} end
local fence, from, to = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local last, reached = tonumber(marker[2]), tonumber(marker[3])
if not last or not reached then return {'epoch', ''} end
if fence == last and to <= reached then return {'again'} end
if fence < last or from < reached then return {'fenced'} end
if redis.call('GET', KEYS[4]) ~= run .. ' ' .. ARGV[7] then return {'fenced'} end
redis.call('HSET', KEYS[2], 'fence', ARGV[4], 'to', ARGV[6])
if kind == 'list' then redis.call('RENAME', KEYS[1], KEYS[3]) else redis.call('RPUSH', KEYS[3], '') end
return {'open'}";

/// `OPEN` without any comparison: a bug that tests must find.
pub(crate) const OPEN_UNFENCED: &str = "
redis.call('DEL', KEYS[3])
if redis.call('EXISTS', KEYS[1]) == 1 then redis.call('RENAME', KEYS[1], KEYS[3])
else redis.call('RPUSH', KEYS[3], '') end
return {'open'}";

/// Ends a push: renames the stage back to the list. Keys: list, stage. For an empty list, `OPEN` put an empty text on the
/// stage, which is removed here; no number is empty.
pub(crate) const CLOSE: &str = "
if redis.call('LINDEX', KEYS[2], 0) == '' then redis.call('LPOP', KEYS[2]) end
if redis.call('EXISTS', KEYS[2]) == 1 then redis.call('RENAME', KEYS[2], KEYS[1]) end
return 1";

/// Begins an epoch. Keys: list, marker, stage. Arguments: epoch, run, replication, store.
pub(crate) const RENEW: &str = "
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
local replication = string.match(redis.call('INFO', 'replication'), 'master_replid:(%w+)')
if run ~= ARGV[2] or replication ~= ARGV[3] then return {'server', run, replication} end
local store = redis.call('HGET', KEYS[2], 'store')
if store and store ~= ARGV[4] then return {'foreign'} end
local epoch = redis.call('HGET', KEYS[2], 'epoch')
if epoch and (tonumber(epoch) or 0) >= tonumber(ARGV[1]) then return {'epoch', epoch} end
local kind = redis.call('TYPE', KEYS[1])['ok']
if kind ~= 'list' and kind ~= 'none' then return {'type'} end
redis.call('UNLINK', KEYS[1], KEYS[2], KEYS[3])
redis.call('HSET', KEYS[2], 'epoch', ARGV[1], 'fence', 0, 'to', 0, 'store', ARGV[4])
return {'open'}";

/// Empties a list that has this epoch, an older one or none. Keys: list, marker. Arguments: epoch, run, replication, store.
pub(crate) const DISCARD: &str = "
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
local replication = string.match(redis.call('INFO', 'replication'), 'master_replid:(%w+)')
if run ~= ARGV[2] or replication ~= ARGV[3] then return 0 end
local store = redis.call('HGET', KEYS[2], 'store')
if store and store ~= ARGV[4] then return 0 end
local epoch = redis.call('HGET', KEYS[2], 'epoch')
if epoch and (tonumber(epoch) or 0) > tonumber(ARGV[1]) then return 0 end
if redis.call('TYPE', KEYS[1])['ok'] ~= 'list' then return redis.call('DEL', KEYS[2]) end
return redis.call('UNLINK', KEYS[1], KEYS[2])";

/// Keys: lock. Arguments: token, milliseconds. A lock with another run id is stale: a restart loaded it with older data.
pub(crate) const LOCK: &str = "
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
local found = redis.call('GET', KEYS[1])
if found and string.sub(found, 1, #run) ~= run then redis.call('DEL', KEYS[1]) end
return redis.call('SET', KEYS[1], run .. ' ' .. ARGV[1], 'NX', 'PX', ARGV[2])";

/// Keys: lock. Arguments: token, milliseconds.
pub(crate) const EXTEND: &str = "
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
if redis.call('GET', KEYS[1]) ~= run .. ' ' .. ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])";

/// Keys: lock. Arguments: token.
pub(crate) const UNLOCK: &str = "
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
if redis.call('GET', KEYS[1]) ~= run .. ' ' .. ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])";
