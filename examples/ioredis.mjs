// Numbers from Bates with plain ioredis: every Redis client is a Bates client.
//
//   npm install ioredis
//   bates serve
//   node examples/ioredis.mjs            # or with another port: … 6380

import { Redis } from "ioredis";

// If the server has a secret: { port, password: "…" }. Do not resend a call without an answer: it may have taken a
// number, and sending it twice would skip one.
const port = Number(process.argv[2] ?? 6380);
const bates = new Redis({ port, autoResendUnfulfilledCommands: false });

// The key names a scope: one counter for each project and type. It starts with the first call.
console.log("document", await bates.lpop("id-pool:NODE:9012"));

// Many at once take one round trip. No other client gets any of them.
for (const number of await bates.lpop("id-pool:NODE:9012", 5)) {
  console.log("document", number);
}

// Calls that are awaited together share round trips, and commits on the server.
const messages = Array.from({ length: 100 }, () => bates.incr("seq:conv_node"));
console.log("messages", ...(await Promise.all(messages)));

// Numbers stay exact in JavaScript: none is above 2^53 - 1.
console.log("exact", Number.isSafeInteger(await bates.incrby("counter:node", 1_000_000)));

// Short keys that cannot be guessed.
console.log("short", ...(await bates.lpop("short", 3)));

// A series by its name, with its parameters, instead of by a key.
console.log("by name", ...(await bates.call("BATES.NEXT", "document", "COUNT", "2", "project", "NODE", "type", "9012")));

// A counter cannot be set back.
await bates.set("seq:conv_node", 1).catch((error) => console.log("refused", error.message));

await bates.quit();
