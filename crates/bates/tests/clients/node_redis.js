// Checks an unmodified node-redis against Bates. Arguments: the port of a server without a secret, the port of one with a
// secret, and the secret. Prints "ok", or the check that failed.
"use strict";

const assert = require("node:assert");
const { createClient } = require("redis");

const [openPort, guardedPort, secret] = process.argv.slice(2);

async function connect(port, options) {
  const client = createClient({ socket: { port, reconnectStrategy: false }, ...options });
  client.on("error", () => {});
  return client.connect();
}

async function takeNumbers(client, key) {
  const [counter, never, pool] = [`counter:${key}`, `counter:${key}-never`, `id-pool:${key}:9012`];
  assert.strictEqual(await client.incr(counter), 1);
  assert.strictEqual(await client.incrBy(counter, 9), 10);
  assert.strictEqual(await client.get(counter), "10");
  assert.strictEqual(await client.get(never), null);
  assert.strictEqual(await client.lPop(pool), `${key}-9012-1001`);
  assert.deepStrictEqual(await client.lPopCount(pool, 2), [`${key}-9012-1002`, `${key}-9012-1003`]);
  // Commands of one tick are one pipeline.
  const pipeline = await Promise.all(Array.from({ length: 100 }, () => client.incr(counter)));
  assert.deepStrictEqual(pipeline, Array.from({ length: 100 }, (_, n) => 11 + n));
  const transaction = await client.multi().incr(counter).get(never).lPop(pool).exec();
  assert.deepStrictEqual(transaction, [111, null, `${key}-9012-1004`]);
  await assert.rejects(client.multi().incr(counter).set(counter, "1").exec(), /once and for all/);
  assert.deepStrictEqual(await client.mGet([counter, never]), ["111", null]);
  await assert.rejects(client.set(counter, "1"), /once and for all/);
  assert.strictEqual(await client.incr(counter), 112);
}

async function main() {
  for (const [name, options] of Object.entries({ NRdefault: {}, NRresp2: { RESP: 2 }, NRresp3: { RESP: 3 } })) {
    const client = await connect(Number(openPort), { name: "worker", ...options });
    await takeNumbers(client, name);
    assert.strictEqual(await client.clientGetName(), "worker");
    await client.close();
    const authenticated = await connect(Number(guardedPort), { password: secret, ...options });
    await takeNumbers(authenticated, name);
    await authenticated.close();
    for (const bad of [{}, { password: "wrong" }, { username: "root", password: secret }]) {
      const refused = connect(Number(guardedPort), { ...options, ...bad }).then((it) => it.incr("counter:unauthenticated"));
      await assert.rejects(refused, /NOAUTH|WRONGPASS/);
    }
  }
  console.log("ok");
  process.exit(0);
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
