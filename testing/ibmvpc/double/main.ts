import { systemClock } from "@nodeyard/runtime";
import { listen } from "../../double-server.ts";
import { IbmCloud } from "./cloud.ts";

/** `node testing/ibmvpc/double/main.ts [port]`: the double on a port, until it is ended. What does not fit the SDK's models is written out. */
const cloud = new IbmCloud(systemClock);
const { url, close } = await listen(cloud, Number(process.argv[2] ?? 0));
cloud.url = url;
cloud.set({ startMs: 1_000, stopMs: 1_000, importMs: 1_000, capacity: [{ profile: "bx2-4x16", most: 0 }] });
console.log(`listens ${url}`);
process.once("SIGTERM", async () => {
  await close();
  for (const one of cloud.violations) console.log(`violation ${one}`);
  process.exitCode = cloud.violations.length > 0 ? 1 : 0;
});
