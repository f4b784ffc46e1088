import { startGce } from "../server.ts";

/** `node testing/gce/double/main.ts [port]`: the double on a port, until it is ended. What does not fit Google's documents is written out. */
const server = await startGce(Number(process.argv[2] ?? 0));
server.cloud.set({ capacity: [{ type: "n2-standard-8", most: 0 }] });
console.log(`listens ${server.url}`);
process.once("SIGTERM", async () => {
  await server.close();
  for (const one of server.cloud.violations) console.log(`violation ${one}`);
  process.exitCode = server.cloud.violations.length > 0 ? 1 : 0;
});
