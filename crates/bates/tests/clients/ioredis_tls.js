// Checks an unmodified ioredis against Bates over TLS. Arguments: the port, the file of the authority, and the secret.
// Prints "ok", or the check that failed.
"use strict";

const assert = require("node:assert");
const fs = require("node:fs");
const { Redis } = require("ioredis");

const [port, authority, password] = process.argv.slice(2);

async function main() {
  const client = new Redis({ host: "localhost", port, password, tls: { ca: fs.readFileSync(authority) } });
  const pipeline = client.pipeline();
  for (let n = 0; n < 1000; n++) pipeline.incr("counter:io");
  const expected = Array.from({ length: 1000 }, (_, n) => [null, 1 + n]);
  assert.deepStrictEqual(await pipeline.exec(), expected);
  await client.quit();
  const distrusting = new Redis({ host: "localhost", port, password, tls: {}, lazyConnect: true, retryStrategy: null });
  distrusting.on("error", () => {});
  await assert.rejects(distrusting.connect());
  console.log("ok");
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
