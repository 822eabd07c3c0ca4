// Checks an unmodified ioredis against Bates. Arguments: the port of a server without a secret, the port of one with a
// secret, and the secret. Prints "ok", or the check that failed.
"use strict";

const assert = require("node:assert");
const { Redis, ReplyError } = require("ioredis");

const [openPort, guardedPort, secret] = process.argv.slice(2);

async function takeNumbers(client, key) {
  assert.strictEqual(await client.incr(`counter:${key}`), 1);
  assert.strictEqual(await client.incrby(`counter:${key}`, 9), 10);
  assert.strictEqual(await client.get(`counter:${key}`), "10");
  assert.strictEqual(await client.get(`counter:${key}-never`), null);
  assert.strictEqual(await client.lpop(`id-pool:${key}:9012`), `${key}-9012-1001`);
  const two = [`${key}-9012-1002`, `${key}-9012-1003`];
  assert.deepStrictEqual(await client.lpop(`id-pool:${key}:9012`, 2), two);
  const pipeline = client.pipeline();
  for (let n = 0; n < 100; n++) pipeline.incr(`counter:${key}`);
  const expected = Array.from({ length: 100 }, (_, n) => [null, 11 + n]);
  assert.deepStrictEqual(await pipeline.exec(), expected);
  const transaction = client.multi().incr(`counter:${key}`).get(`counter:${key}-never`).lpop(`id-pool:${key}:9012`);
  assert.deepStrictEqual(await transaction.exec(), [[null, 111], [null, null], [null, `${key}-9012-1004`]]);
  await assert.rejects(client.multi().incr(`counter:${key}`).set(`counter:${key}`, 1).exec(), /EXECABORT/);
  assert.deepStrictEqual(await client.mget(`counter:${key}`, `counter:${key}-never`), ["111", null]);
}

async function checkRefusal(client, key) {
  await assert.rejects(client.set(`counter:${key}`, 1), (error) => {
    assert(error instanceof ReplyError, error);
    return /once and for all/.test(error.message);
  });
  assert.strictEqual(await client.incr(`counter:${key}`), 112);
}

async function checkWrongSecret(options) {
  // By default ioredis reconnects again and again.
  const client = new Redis({ port: guardedPort, retryStrategy: null, lazyConnect: true, ...options });
  client.on("error", () => {});
  await assert.rejects(async () => {
    await client.connect();
    await client.incr("counter:unauthenticated");
  });
  client.disconnect();
}

async function main() {
  for (const [name, options] of Object.entries({ IOdefault: {}, IOresp2: { protocol: 2 }, IOresp3: { protocol: 3 } })) {
    const client = new Redis({ port: openPort, ...options });
    await takeNumbers(client, name);
    await checkRefusal(client, name);
    assert.strictEqual(await client.client("SETNAME", "worker"), "OK");
    assert.strictEqual(await client.client("GETNAME"), "worker");
    await client.quit();
    const authenticated = new Redis({ port: guardedPort, password: secret, ...options });
    await takeNumbers(authenticated, name);
    await authenticated.quit();
    for (const bad of [{}, { password: "wrong" }, { username: "root", password: secret }]) await checkWrongSecret({ ...options, ...bad });
  }
  console.log("ok");
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
